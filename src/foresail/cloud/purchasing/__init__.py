"""Which mix of purchasing options a workload needs: the optimum in hindsight, and a policy."""
