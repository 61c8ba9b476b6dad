"""What is measured: one file per workload, found by being here."""
