"""One record of what is run, and the one place that decides which engine carries it out."""
