"""The mix of purchasing options that a workload needs, in hindsight and at a stated risk."""
