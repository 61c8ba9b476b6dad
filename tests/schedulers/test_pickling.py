"""Parts of a policy whose steps are compiled can be handed to another process."""

from __future__ import annotations

import pickle
import subprocess
import sys

import pytest

from foresail.control.policy import parse_policy
from foresail.model.cluster import Cluster

IN_ANOTHER_PROCESS = """
import pickle, sys
from foresail.kernels.steps import step_address
scheduler, correction = pickle.load(sys.stdin.buffer)
assert step_address(scheduler.compiled().one_pass) > 0.0
assert step_address(correction.compiled()[0]) > 0.0
"""


@pytest.mark.parametrize("policy", ["easy", "in_order", "easy,requested,incremental"])
def test_pickled_steps_are_found_by_name(policy):
    """Machine code is one process's: the other compiles, or finds, its own."""
    scheduler, _, correction = parse_policy(policy).build()
    subprocess.run(
        [sys.executable, "-c", IN_ANOTHER_PROCESS],
        input=pickle.dumps((scheduler, correction)),
        check=True,
    )


def test_a_pickled_scheduler_compares_with_the_same():
    """What EASY would have done is worked out anew, with the shares that were asked for."""
    scheduler, _, _ = parse_policy("guarded(patience=0.5,bound=0.7)").build()
    copied = pickle.loads(pickle.dumps(scheduler))
    assert copied.compiled().shares == scheduler.compiled().shares == (0.5, 0.7)
    assert copied.reference(Cluster.of_processors(4)).found(10.0) == []
