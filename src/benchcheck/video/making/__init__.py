"""The frames of a study: what is missing is made, by as many processes and runs as there are."""
