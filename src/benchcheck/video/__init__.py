"""Videos: find and check a local file, draw the grid of frames from it, keep the frames (protocol 3)."""
