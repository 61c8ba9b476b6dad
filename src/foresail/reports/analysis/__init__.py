"""The report on what workloads are like."""
