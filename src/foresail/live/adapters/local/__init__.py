"""The cpus of one machine: commands as processes, each with a shim that outlives the daemon."""
