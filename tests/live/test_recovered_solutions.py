"""Recovery of a run whose scheduler says how long it took: what is said of that is not repeated."""

from __future__ import annotations

from contextlib import closing
from dataclasses import dataclass
from itertools import count

import pytest

from foresail.control.loop import Controller
from foresail.live.run_log import recover
from foresail.model.cluster import Cluster
from foresail.model.event import Submitted, Tick
from foresail.model.job import Job
from foresail.record.log_text import read_log
from foresail.record.records import Manifest, Solved
from toys import Constant, Doubling, Easy

MANIFEST = Manifest("toy", Cluster.of_processors(4))


@dataclass(frozen=True)
class Report:
    """As a scheduler that plans ahead tells it."""

    cycle_seconds: float
    value: float = 2.0
    bound: float = 3.0
    gap: float = 0.5
    columns: int = 7
    solver_failure: str = ""
    left_out: int = 0


class Timed(Easy):
    """Takes another time at every decision that is ever made."""

    clock = count(1)

    def decide(self, view):
        self.last = Report(float(next(self.clock)))
        return Easy.decide(self, view)

    last: Report | None = None


def build(log):
    return Controller(MANIFEST.cluster, Timed(), Constant(50.0), Doubling(), log=log)


@pytest.mark.parametrize("cut", [0, 1, 200, 500])
def test_a_log_with_solutions_is_recovered(tmp_path, cut):
    """Whole or torn, also within a solution: the steps are taken again, and the log goes on."""
    path = tmp_path / "events.jsonl"
    controller, log = recover(path, MANIFEST, build)
    with closing(log):
        for number in range(4):
            now = float(number)
            controller.step(now, [Submitted(now, Job.gang(str(number), now, 3))])
    whole = path.read_bytes()
    path.write_bytes(whole[: len(whole) - cut])
    again, log = recover(path, MANIFEST, build)
    with closing(log):
        known = [pending.job.job_id for pending in again.pending]
        assert known == ["1", "2", "3"][: len(known)]
        assert len(known) >= 2
        again.step(9.0, [Tick(9.0)])
    solved = [record for record in read_log(path) if isinstance(record, Solved)]
    assert [record.time for record in solved] == [*range(len(known) + 1), 9]
    assert {(record.value, record.columns, record.failure) for record in solved} == {(2.0, 7, "")}
