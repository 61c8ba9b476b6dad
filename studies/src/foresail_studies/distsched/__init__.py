"""Studies of DistSched: jobs packed by distributions of what their tasks use."""
