"""Quality of predictions: replayed in order of submission, scored against the truth."""
