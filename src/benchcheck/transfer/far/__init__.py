"""Folders far away: disks, buckets and hub datasets, each file verified."""
