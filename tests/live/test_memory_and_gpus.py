"""Jobs on this machine that ask for memory and gpus: never more at a time than there are."""

from __future__ import annotations

import os
import time
from itertools import pairwise

import pytest

from foresail.control.loop import Controller
from foresail.control.policy import parse_policy
from foresail.live.adapters.local.attempts import Attempt
from foresail.live.adapters.local.cluster import LocalCluster, LocalParameters
from foresail.live.command_job import CommandJob
from foresail.model.decision import Start
from foresail.model.event import Ended, EndedBecause, Submitted
from local_runs import LocalRun
from until import until

SHOWS_GPUS = 'echo "$CUDA_VISIBLE_DEVICES $CUDA_DEVICE_ORDER"'


class Machine(LocalRun):
    """The machine under a policy, for a few commands; like the daemon, without its log."""

    def __init__(self, folder, policy="foresail", **parameters):
        super().__init__(folder, cpus=len(os.sched_getaffinity(0)), **parameters)
        self.controller = Controller(self.adapter.cluster, *parse_policy(policy).build())
        self.outcomes = {}

    def submit(self, *jobs):
        self.commands |= {job.job_id: job for job in jobs}
        now = time.time()
        self.step(now, [Submitted(now, job.specification(now)) for job in jobs])

    def step(self, now, events):
        for instruction in self.controller.step(now, events):
            if isinstance(instruction, Start):
                self.adapter.carry_out(instruction, now)

    def work(self, until_ended):
        """Until so many have ended."""
        while len(self.outcomes) < until_ended:
            ended = until(lambda: self.adapter.reports(time.time()))
            self.step(time.time(), ended)
            self.outcomes |= {each.outcome.job_id: each.outcome for each in ended}


def command(job_id, text, **asked):
    return CommandJob(job_id, "alike", text, "/", requested_seconds=60.0, **asked)


@pytest.mark.parametrize("policy", ["foresail", "easy", "3sigma"])
def test_two_jobs_of_most_of_the_memory_never_overlap(policy, tmp_path):
    """Cpus there are for both, and for a third beside them, which waits for neither."""
    machine = Machine(tmp_path, policy, memory="1GiB", nodes=1)
    asked = {"memory_bytes": 0.6 * 2**30}
    jobs = [command(each, "sleep 0.3", **asked) for each in "abc"]
    machine.submit(*jobs, command("small", "sleep 0.1", memory_bytes=2.0**26))
    assert {"small"} < {*machine.controller.running}
    assert len(machine.controller.running) == 2
    machine.work(4)
    spans = sorted(
        (each.start_seconds, each.end_seconds)
        for each in machine.outcomes.values()
        if each.job_id != "small"
    )
    assert all(begin >= end - 0.05 for (_, end), (begin, _) in pairwise(spans))  # as measured
    assert all(each.ended_because == EndedBecause.COMPLETED for each in machine.outcomes.values())
    machine.adapter.close()


def test_three_jobs_on_two_gpus_each_have_one_to_themselves(tmp_path):
    """The third has that of the one that ends first; a job without gpus is shown none."""
    machine = Machine(tmp_path, gpus=2)
    machine.submit(command("a", f"{SHOWS_GPUS}; sleep 0.2", gpus=1))
    machine.submit(command("b", f"{SHOWS_GPUS}; sleep 1", gpus=1))
    machine.submit(command("none", f'{SHOWS_GPUS}; echo "${{CUDA_VISIBLE_DEVICES-unset}}"'))
    machine.submit(command("c", SHOWS_GPUS, gpus=1))
    assert "c" not in machine.controller.running
    machine.work(4)
    assert machine.log("a") == "0 PCI_BUS_ID\n"
    assert machine.log("b") == "1 PCI_BUS_ID\n"
    assert machine.log("c") == "0 PCI_BUS_ID\n"
    assert machine.log("none") == " PCI_BUS_ID\n\n"
    assert machine.outcomes["c"].start_seconds >= machine.outcomes["a"].end_seconds
    machine.adapter.close()


def test_gpus_are_still_a_jobs_own_when_another_daemon_has_come(tmp_path):
    """What an adopted job holds is known from its claim."""
    first = Machine(tmp_path, gpus=2)
    first.submit(command("b", "sleep 1", gpus=1), command("a", "true", gpus=1))
    first.work(1)
    claim = until(Attempt("b", 1, tmp_path / "attempts").claim, 20.0)
    assert claim.gpus == ("0",)
    running = list(first.controller.running.values())
    first.adapter.close()
    second = LocalCluster(LocalParameters(gpus=2)).connect(first.context)
    starts = [Start(each.job.job_id, each.placement) for each in running]
    assert second.resume(starts, (), time.time()) == []
    first.commands["c"] = command("c", SHOWS_GPUS, gpus=1)
    second.carry_out(Start("c", running[0].placement), time.time())
    ended: list[Ended] = []
    while len(ended) < 2:
        ended += until(lambda: second.reports(time.time()))
    assert first.log("c") == "1 PCI_BUS_ID\n"
    second.close()
