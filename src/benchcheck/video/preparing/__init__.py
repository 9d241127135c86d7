"""Every video looked at once: hash, probe, fingerprint, one form for all, ids by content."""
