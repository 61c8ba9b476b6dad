"""Analyses of a workload that replay predictions; found by name as those of ``analysis`` are."""
