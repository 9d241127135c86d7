"""Files on disk or of the hub as records, one at a time: nothing here knows what a spec says of them."""
