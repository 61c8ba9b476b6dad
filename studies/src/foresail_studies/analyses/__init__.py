"""Analyses of tasks and of measured use, as publications have them."""
