"""Workloads on disk and in memory: schema, readers, filters, generators, validation."""
