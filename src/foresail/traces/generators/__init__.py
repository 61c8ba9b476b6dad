"""Seeded generators of realistic workloads. One file each."""
