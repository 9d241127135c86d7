"""Where a video lies: files, archives, manifests and hub datasets, and how its bytes are read."""
