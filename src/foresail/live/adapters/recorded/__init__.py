"""The cluster of a run that is over, from the log of that run."""
