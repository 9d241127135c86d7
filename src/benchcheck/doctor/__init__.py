"""The doctor: whether a model and its serving stack can be trusted, before GPU-hours are spent."""
