"""Schedulers from outside that do not decide: refused with their name and what they did."""

from __future__ import annotations

import pytest

from foresail.control.policy import parse_policy
from foresail.model.errors import InputError
from foresail.model.registry import load_plugin
from foresail.traces.workload import Workload, WorkloadMeta, jobs_table
from made_scenarios import simulate

PLUG_IN = '''\
from foresail.model.decision import Decision, Placement, Start
from foresail.model.protocols import Scheduler
from foresail.model.registry import register


class Bad(Scheduler):
    """Decides as it should not."""

    def __init__(self, how):
        self.how = how

    def decide(self, view):
        if self.how == "raises":
            return 1 / 0
        if self.how == "exits":
            raise SystemExit(0)
        if self.how == "nothing":
            return Decision()
        if self.how == "misplaces":
            place = Placement.whole("nowhere", 1)
            return Decision(starts=tuple(Start(each.job.job_id, place) for each in view.pending))
        if self.how == "odd":
            return Decision(starts=tuple(each.job.job_id for each in view.pending))
        return None


for how in ("raises", "exits", "none", "nothing", "misplaces", "odd"):

    def make(_, how=how):
        return Bad(how)

    make.__doc__ = "Decides as it should not."
    register("scheduler", f"bad-{how}")(make)
'''


@pytest.fixture
def plug_in(tmp_path):
    path = tmp_path / "bad.py"
    path.write_text(PLUG_IN)
    load_plugin(path)


@pytest.mark.parametrize(
    ("how", "words"),
    [
        ("raises", r"scheduler Bad of bad.py fails at 0 s in line 14: ZeroDivisionError"),
        ("exits", r"scheduler Bad of bad.py fails at 0 s in line 16: SystemExit"),
        ("none", r"scheduler Bad of bad.py decides nothing that can be read at 0 s.*a Decision"),
        ("nothing", r"scheduler Bad of bad.py started none of 2 jobs; expected"),
        (
            "misplaces",
            r"Bad of bad.py started none of 2 jobs; .* job 'a': .*partition 'nowhere'",
        ),
        ("odd", r"scheduler Bad of bad.py fails at 0 s: AttributeError.*each with a Placement"),
    ],
)
def test_a_plug_in_that_does_not_decide_is_named(plug_in, how, words):
    """Which scheduler, of which file, when, and what it did."""
    jobs = jobs_table(
        {
            "job_id": ["a", "b"],
            "submit_seconds": [0.0, 5.0],
            "runtime_seconds": [10.0, 10.0],
            "requested_seconds": [10.0, 10.0],
            "tasks": [1, 1],
        }
    )
    with pytest.raises(InputError, match=words):
        simulate(
            Workload(jobs, WorkloadMeta("made", "made", 4)), parse_policy(f"bad-{how},requested")
        )


def test_a_plug_in_that_takes_no_parameters_is_refused(tmp_path):
    """When its file is loaded, with what would be taken."""
    path = tmp_path / "bare.py"
    path.write_text(
        "from foresail.model.registry import register\n\n"
        '@register("scheduler", "bare")\nclass Bare:\n    """Has no constructor."""\n'
    )
    with pytest.raises(InputError, match=r"bare.py.*scheduler 'bare'.*one argument, the record"):
        load_plugin(path)
