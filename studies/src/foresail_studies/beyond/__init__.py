"""Studies of planning beyond the published systems: risk, chains of jobs, fair shares."""
