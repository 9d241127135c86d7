"""From bytes to upright pictures: which frames a file has and when, and the pictures of chosen ones."""
