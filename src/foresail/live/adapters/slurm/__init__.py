"""Slurm: its queue, nodes and accounting, read with nothing but the commands any user may call."""
