"""A study's config as a pool: its files found and cut into tasks, mapped by many processes, written whole."""
