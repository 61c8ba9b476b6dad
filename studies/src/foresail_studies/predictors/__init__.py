"""Predictors of the publications: beliefs wrong on purpose, or of so many samples."""
