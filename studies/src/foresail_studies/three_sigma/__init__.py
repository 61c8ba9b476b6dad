"""Studies of 3Sigma: whole distributions of runtimes against single estimates."""

from foresail_studies.policies import PLANNING_AHEAD as NAMED_POLICIES

__all__ = ["NAMED_POLICIES"]
