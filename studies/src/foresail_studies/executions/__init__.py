"""Executions of simulated jobs beside that of the product, of fixed runtimes."""
