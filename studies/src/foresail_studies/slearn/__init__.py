"""Studies of SLearn: runtimes learned from pilot tasks instead of history."""

from foresail_studies.policies import TASKS as NAMED_POLICIES

__all__ = ["NAMED_POLICIES"]
