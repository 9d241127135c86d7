"""What a study found, as tables (assemble) and as one page (page)."""
