"""A spec for files that nobody described: a sample, a guess with its reasons, a trial, the file to keep."""
