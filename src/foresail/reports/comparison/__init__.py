"""The report that compares policies on a workload."""
