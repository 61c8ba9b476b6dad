"""A toy cluster, the shortest complete one."""
