"""Studies of transient capacity: services and batch jobs on machines that may be revoked."""
