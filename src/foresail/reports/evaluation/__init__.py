"""The report on how good predictions are."""
