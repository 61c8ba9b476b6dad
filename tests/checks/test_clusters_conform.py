"""Cluster adapters conform; a toy is found by its folder alone; each rule catches a fault."""

from __future__ import annotations

import importlib
import os
import signal
import sys
from dataclasses import replace
from itertools import count
from pathlib import Path

import pytest

import toy_queue
from foresail.checks import clusters
from foresail.checks.clusters import (
    RULES,
    check_adapter,
    check_cluster,
    hears_what_is_wished,
    reports_what_was_submitted_to_it,
)
from foresail.checks.rules import NonconformityError, breaches, rule_sentence
from foresail.live import adapters
from foresail.live.command_job import CommandJob
from foresail.live.run_directory import RunDirectory, RunSettings
from foresail.model import registry
from foresail.model.adapter import Capabilities
from foresail.model.decision import Preempt, Start, Withdraw
from foresail.model.errors import InputError
from foresail.model.event import (
    Began,
    Cancelled,
    Ended,
    EndedBecause,
    Held,
    JobChanged,
    NodeDown,
    NotStarted,
    Outcome,
    Released,
    Submitted,
)
from foresail.model.registry import entries, find
from foresail.scenario.by_daemon import run_commands

FOLDER = Path(__file__).parent / "toy_adapters"
registry._ENTRIES.pop(("cluster", "toyqueue"), None)  # it is no plug-in of other tests


def forget_what_was_found():
    for found in (registry._modules, registry._discover, registry._named_in_text):
        found.cache_clear()


@pytest.fixture
def toy(monkeypatch):
    """The module of the toy, put where adapters are; it is gone afterwards."""
    monkeypatch.setattr(adapters, "__path__", [*adapters.__path__, str(FOLDER)])
    forget_what_was_found()
    yield importlib.import_module("foresail.live.adapters.toy.cluster")
    registry._ENTRIES.pop(("cluster", "toy"))
    for name in ("foresail.live.adapters.toy.cluster", "foresail.live.adapters.toy"):
        del sys.modules[name]
    del adapters.toy
    forget_what_was_found()


@pytest.mark.parametrize(
    "entry",
    [each for each in entries("cluster") if each.name not in ("slurm", "kubernetes")],
    ids=lambda entry: entry.name,
)
def test_cluster_conforms(entry):
    """Every registered cluster that takes instructions keeps every rule."""
    check_cluster(entry)


def test_an_adapter_is_one_folder(toy):
    """It is found by name and among all others, and it conforms."""
    assert {"local", "toy"} <= {entry.name for entry in entries("cluster")}
    check_cluster(find("cluster", "toy"))


def test_the_daemon_drives_any_cluster(toy, tmp_path):
    """Jobs of the toy wait for one another, are too many for its two cpus, and all complete."""
    settings = RunSettings("test", None, "fcfs,requested", "toy(seconds=0.02)", None)
    jobs = [
        CommandJob(f"j{n}", "job", "false", "/", requested_seconds=9.0, after=("j0",) * (n == 3))
        for n in range(5)
    ]
    run = RunDirectory.create(tmp_path / "run", settings, jobs)
    result = run_commands(run, Silent())
    assert result.exit_status == 0
    table = result.schedule.jobs
    assert table["job_id"].to_list() == [job.job_id for job in jobs]
    runtimes = table["end_seconds"] - table["start_seconds"]
    assert runtimes.to_list() == pytest.approx([0.02] * 5, abs=1e-4)
    assert table["start_seconds"][3] >= table["end_seconds"][0]


def test_what_cannot_be_stopped_is_waited_for(toy, monkeypatch, tmp_path):
    """A cluster that stops no jobs is not asked to; it is said, and the job completes."""

    class Impatient(Silent):
        def started(self, job, attempt):
            os.kill(os.getpid(), signal.SIGTERM)

        def note(self, sentence):
            notes.append(sentence)

    notes = []
    monkeypatch.setattr(toy.ToyAdapter, "capabilities", Capabilities())
    settings = RunSettings("test", None, "fcfs,requested", "toy(seconds=0.05)", None)
    run = RunDirectory.create(tmp_path / "run", settings, [CommandJob("j", "job", "false", "/")])
    assert run_commands(run, Impatient()).exit_status == 0
    assert notes[-1] == "this cluster stops no jobs: 1 are waited for"


class Silent:
    """An observer that shows nothing."""

    refresh_seconds = float("inf")

    def started(self, job, attempt):
        pass

    def ended(self, job, outcome):
        pass

    def withdrawn(self, job, because):
        pass

    def note(self, sentence):
        pass

    def refreshed(self, controller, jobs):
        pass


def faulty(adapter):
    """Adapters with one fault each, by name, and the rule that each breaks."""

    class StartsAgain(adapter):
        def carry_out(self, instruction, now):
            key = instruction.job_id, instruction.attempt
            if isinstance(instruction, Start) and key not in self.running:
                self.world.known.discard(key)
            super().carry_out(instruction, now)

    class ReportsTwice(adapter):
        def end(self, key, end):
            self.again = super().end(key, end)
            return self.again

        def reports(self, now):
            again = self.__dict__.pop("again", None)
            return [replace(again, time=now)] if again else super().reports(now)

    class Deaf(adapter):
        def carry_out(self, instruction, now):
            if not isinstance(instruction, Preempt):
                super().carry_out(instruction, now)

    class StopsAnyAttempt(adapter):
        def carry_out(self, instruction, now):
            if isinstance(instruction, Preempt):
                for job_id, attempt in self.running:
                    if job_id == instruction.job_id:
                        instruction = replace(instruction, attempt=attempt)
            super().carry_out(instruction, now)

    class Hasty(adapter):
        def reports(self, now):
            return super().reports(now + 0.1)

    class Fast(adapter):
        def __init__(self, world, seconds):
            world.seconds = dict.fromkeys(world.seconds, 0.0)
            super().__init__(world, seconds)

        def start(self, start, now):
            self.world.seconds[start.job_id] = 0.0
            super().start(start, now)

    class Forgetful(adapter):
        def resume(self, running, known, now):
            return ()

    class Restarting(adapter):
        def resume(self, running, known, now):
            for start in running:
                self.world.known.discard((start.job_id, start.attempt))
            return super().resume(running, known, now)

    class Bold(adapter):
        capabilities = Capabilities(preempts=True, changes_nodes=True)

        def carry_out(self, instruction, now):
            if isinstance(instruction, Start):
                placement = replace(instruction.placement, tasks_by_node=())
                instruction = replace(instruction, placement=placement)
            super().carry_out(instruction, now)

    class TellsNothing(adapter):
        def node_events(self, now):
            self.told = len(self.world.changes)
            return []

    class TellsTwice(adapter):
        def node_events(self, now):
            return [again for event in super().node_events(now) for again in (event, event)]

    class ShowsTheOldCluster(adapter):
        def node_events(self, now):
            at_first = self.cluster
            events, self.cluster = super().node_events(now), at_first
            return events

    class Undeclared(adapter):
        capabilities = Capabilities(places=True, preempts=True)

        def reports(self, now):
            was = super().reports(now)
            return [*was, NodeDown(now, "toy-1")] if was else was

    class ForgetsWhatRan(adapter):
        def node_events(self, now):
            return [each for each in super().node_events(now) if not isinstance(each, Ended)]

    class LosesTooLate(adapter):
        def node_events(self, now):
            later, self.later = getattr(self, "later", []), []
            events = super().node_events(now)
            self.later = [each for each in events if isinstance(each, Ended)]
            return [*later, *(each for each in events if not isinstance(each, Ended))]

    class HidesRefusals(adapter):
        def reports(self, now):
            return [each for each in super().reports(now) if not isinstance(each, NotStarted)]

    class LosesWhatItRefuses(adapter):
        def reports(self, now):
            lost = EndedBecause.LOST
            return [
                Ended(now, Outcome(each.job_id, now, now, lost, None, each.attempt))
                if isinstance(each, NotStarted)
                else each
                for each in super().reports(now)
            ]

    class HidesBeginnings(adapter):
        def reports(self, now):
            return [each for each in super().reports(now) if not isinstance(each, Began)]

    class ClaimsBeginnings(adapter):
        def begin(self, now):
            return [replace(each, ours=True) for each in super().begin(now)]

    return {
        "reports_what_began_by_itself": HidesBeginnings,
        "reports_what_began_by_itself ": ClaimsBeginnings,
        "reports_what_it_did_not_start": HidesRefusals,
        "reports_what_it_did_not_start ": LosesWhatItRefuses,
        "starts_once": StartsAgain,
        "reports_every_end_once": ReportsTwice,
        "stops_what_it_is_to_stop": Deaf,
        "stops_what_it_is_to_stop ": StopsAnyAttempt,
        "reports_every_end_once ": Hasty,
        "takes_its_time": Fast,
        "loses_nothing": Forgetful,
        "loses_nothing ": Restarting,
        "refuses_what_it_cannot": Bold,
        "reports_what_its_nodes_do": TellsNothing,
        "reports_what_its_nodes_do ": TellsTwice,
        "reports_what_its_nodes_do  ": ShowsTheOldCluster,
        "reports_what_its_nodes_do   ": Undeclared,
        "loses_what_nodes_take_along": ForgetsWhatRan,
        "loses_what_nodes_take_along ": LosesTooLate,
    }


def faulty_queues(adapter):
    """Adapters with a queue of its own, each with one fault."""

    class SubmitsAgain(adapter):
        def resume(self, running, known, now):
            return super().resume(running, (), now)

    class HidesWhoLeft(adapter):
        def reports(self, now):
            return [each for each in super().reports(now) if not isinstance(each, Cancelled)]

    class HidesWhoCame(adapter):
        def resume(self, running, known, now):
            found = super().resume(running, known, now)
            return [each for each in found if not isinstance(each, Submitted)]

    class WithoutItsName(adapter):
        def reports(self, now):
            return [
                replace(each, job=replace(each.job, job_id=each.job.job_id.partition(":")[2]))
                if isinstance(each, Submitted)
                else each
                for each in super().reports(now)
            ]

    def deaf_to(*kinds):
        class Deaf(adapter):
            def carry_out(self, instruction, now):
                if not isinstance(instruction, kinds):
                    super().carry_out(instruction, now)

        return Deaf

    class KeepsHolds(adapter):
        def resume(self, running, known, now):
            holds = [replace(each, held=True) for each in known]
            return super().resume(running, holds, now)

    submits, wished = reports_what_was_submitted_to_it, hears_what_is_wished
    yield from ((each, submits) for each in (SubmitsAgain, HidesWhoLeft, HidesWhoCame))
    yield WithoutItsName, submits
    yield KeepsHolds, wished
    yield from ((deaf_to(kind), wished) for kind in (Held, Released, JobChanged, Cancelled))
    yield deaf_to(Withdraw), wished


def test_a_queue_of_its_own_conforms(tmp_path):
    """A cluster to which people submit; one that hides what becomes of their jobs does not."""
    numbers = count()

    def breaks(adapter, *rules):
        def trial():
            queue = toy_queue.Queue(tmp_path / str(next(numbers)))
            return toy_queue.Trial(adapter, queue)

        return {each.rule for each in breaches(trial, rules or RULES)}

    assert breaks(toy_queue.QueueAdapter) == set()
    for adapter, rule in faulty_queues(toy_queue.QueueAdapter):
        assert breaks(adapter, rule) == {rule_sentence(rule)}, adapter


def broken(toy, adapter):
    sentences = {rule_sentence(rule): rule.__name__ for rule in RULES}
    found = breaches(lambda: toy.Trial(adapter, 0.05), RULES)
    return {sentences[each.rule] for each in found}


def test_rules_catch(toy, monkeypatch):
    """An adapter with one fault breaks the rule that forbids it."""
    monkeypatch.setattr(clusters, "_PATIENCE_SECONDS", 0.2)
    for rule, adapter in faulty(toy.ToyAdapter).items():
        assert rule.strip() in broken(toy, adapter), adapter.__name__


def test_a_sound_adapter_that_stops_nothing_breaks_no_rule(toy):
    """What it does not declare it is not asked for, but to refuse it."""

    class Sound(toy.ToyAdapter):
        capabilities = Capabilities()

    check_adapter("sound", lambda: toy.Trial(Sound, 0.05))
    with pytest.raises(InputError, match="stops no jobs"):
        Sound(toy.World(), 1.0).carry_out(Preempt("one"), 0.0)


def test_a_breach_is_told(toy, monkeypatch):
    """The error names the cluster and the rule that it breaks, in words."""
    monkeypatch.setattr(clusters, "_PATIENCE_SECONDS", 0.2)
    adapter = faulty(toy.ToyAdapter)["stops_what_it_is_to_stop"]
    with pytest.raises(NonconformityError, match="cluster 'deaf' breaks 1 rule") as error:
        check_adapter("deaf", lambda: toy.Trial(adapter, 0.05))
    assert "Require that a preempted attempt stops" in str(error.value)
