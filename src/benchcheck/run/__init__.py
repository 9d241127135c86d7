"""Running a study: what is left to ask, one unit of work, the loop over steps, and where units run."""
