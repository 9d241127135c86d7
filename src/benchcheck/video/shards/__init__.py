"""Frames as tar shards, out and in again (protocol 3)."""
