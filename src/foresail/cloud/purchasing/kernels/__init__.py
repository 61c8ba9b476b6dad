"""Compiled stacks of demand."""
