"""Compiled measures of workloads."""
