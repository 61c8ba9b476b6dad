"""Studies of DistSched: jobs packed by distributions of what their tasks use."""

from foresail_studies.policies import PACKING as NAMED_POLICIES

__all__ = ["NAMED_POLICIES"]
