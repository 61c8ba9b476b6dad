"""Live runs: the daemon, what it writes and recovers, and the adapters that drive real machines."""
