"""The pool: annotation files become items that can be trusted."""
