"""Packages of the original layout come into a study, and their verdicts are replayed (protocol 8)."""
