"""The run at a moment: what runs, what is planned, what waits, and a node over time."""
