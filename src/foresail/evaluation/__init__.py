"""How good predictions are: replayed in order of submission, scored against the truth."""
