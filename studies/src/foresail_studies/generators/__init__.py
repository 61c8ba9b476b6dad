"""Workloads of the publications, one file each; they register under the family ``generator``."""
