"""Each rule of the suites catches a plug-in that breaks it, and only then."""

from __future__ import annotations

from dataclasses import replace
from itertools import count
from types import MappingProxyType

import numpy as np
import polars as pl
import pytest

from foresail.checks import predictors, readers, schedulers
from foresail.checks.predictors import CORRECTION_RULES, PREDICTOR_RULES, check_correction
from foresail.checks.rules import NonconformityError, breaches, rule_sentence
from foresail.checks.schedulers import RULES as SCHEDULER_RULES
from foresail.distributions.basic import Point
from foresail.distributions.quantiles import Quantiles
from foresail.model.decision import Decision, Placement, Reason, ReasonCode, Start
from foresail.model.errors import InputError
from foresail.model.event import EndedBecause
from foresail.model.registry import Entry, NoParameters
from foresail.schedulers.of_tasks.queues import TaskFifo
from toys import Doubling, Easy, Fcfs, Requested


def broken(rules, make) -> list[str]:
    """Names of the rules that a plug-in breaks."""
    sentences = {rule_sentence(rule): rule.__name__ for rule in rules}
    return [sentences[breach.rule] for breach in breaches(make, rules)]


class Told(Fcfs):
    """FCFS: conforms, and is what the faulty ones below are made from."""


class Silent(Told):
    def decide(self, view) -> Decision:
        return replace(super().decide(view), reasons={})


class Unspeakable(Told):
    def decide(self, view) -> Decision:
        decision = super().decide(view)
        return replace(
            decision, reasons={job: Reason(ReasonCode.BEHIND) for job in decision.reasons}
        )


class Halves(Told):
    def decide(self, view) -> Decision:
        decision = super().decide(view)
        half = Placement.whole("all", 1)
        return replace(
            decision, starts=tuple(Start(start.job_id, half) for start in decision.starts)
        )


class Greedy(Told):
    def decide(self, view) -> Decision:
        every = (Start(p.job.job_id, Placement.whole("all", p.job.tasks)) for p in view.pending)
        return Decision(tuple(every))


class Idle(Told):
    def decide(self, view) -> Decision:
        reason = Reason(ReasonCode.NOT_CHOSEN, {"ahead": 0.0})
        return Decision(reasons={each.job.job_id: reason for each in view.pending})


class Moody(Told):
    turns = count()

    def decide(self, view) -> Decision:
        decision = super().decide(view)
        return decision if next(self.turns) % 2 else replace(decision, starts=())


class Timeless(Told):
    ignores_time = True

    def decide(self, view) -> Decision:
        decision = super().decide(view)
        return decision if view.now < 100 else replace(decision, starts=())


class LastFirst(Told):
    def decide(self, view) -> Decision:
        return super().decide(replace(view, pending=view.pending[::-1]))


class Scribbling(Told):
    def decide(self, view) -> Decision:
        decision = super().decide(view)
        view.free["all"] = view.free["all"] * 0.5
        return decision


class Unpicklable(Told):
    def __init__(self) -> None:
        self.proxy = MappingProxyType({})


class Ghostly(Told):
    def decide(self, view) -> Decision:
        decision = super().decide(view)
        ghost = Start("ghost", Placement.whole("all", 1))
        return decision if view.pending else replace(decision, starts=(ghost,))


class ByTask(TaskFifo):
    """Starts tasks in order: conforms, and is what the faulty ones below are made from."""

    def __init__(self) -> None:
        super().__init__(NoParameters())


class Twice(ByTask):
    def decide(self, view) -> Decision:
        decision = super().decide(view)
        return replace(decision, starts=decision.starts + decision.starts[:1])


class FirstStages(ByTask):
    def decide(self, view) -> Decision:
        decision = super().decide(view)
        starts = tuple(each for each in decision.starts if each.stage != "second")
        return replace(decision, starts=starts)


class MoodyByTask(ByTask):
    turns = count()

    def decide(self, view) -> Decision:
        decision = super().decide(view)
        is_late = any(each.stage for each in decision.starts) and next(self.turns) % 3 == 1
        return replace(decision, starts=decision.starts[:1]) if is_late else decision


@pytest.mark.parametrize(
    ("make", "rules"),
    [
        (Twice, ["tasks_run_once_and_in_order"]),
        (FirstStages, ["tasks_run_once_and_in_order"]),
        (MoodyByTask, ["same_parts_same_decision"]),
        (Silent, ["job_too_wide", "every_job_has_a_reason"]),
        (Unspeakable, ["every_job_has_a_reason"]),
        (Halves, ["fits_the_cluster", "runs_to_the_end"]),
        (Greedy, ["job_too_wide", "fits_the_cluster", "long_queue", "runs_to_the_end"]),
        (Idle, ["lone_job", "runs_to_the_end"]),
        (Moody, ["same_view_same_decision", "survives_pickling"]),
        (Timeless, ["ignores_time_if_it_says_so"]),
        (LastFirst, ["equal_jobs_in_order"]),
        (Scribbling, ["view_unchanged"]),
        (Unpicklable, ["survives_pickling"]),
        (Ghostly, ["empty_queue", "fits_the_cluster"]),
    ],
)
def test_scheduler_rules_catch(make, rules):
    """A scheduler with one fault breaks the rules that forbid it."""
    assert set(rules) <= set(broken(SCHEDULER_RULES, make))


def test_a_sound_scheduler_breaks_no_rule():
    """FCFS with reasons conforms, so what the rules catch is the fault."""
    assert broken(SCHEDULER_RULES, Told) == []
    assert broken(SCHEDULER_RULES, ByTask) == []


def test_a_slow_scheduler_is_caught(monkeypatch):
    """The time limit of the long queue is a limit."""
    monkeypatch.setattr(schedulers, "_LONG_QUEUE_SECONDS", 0.0)
    assert broken([schedulers.long_queue], Told) == ["long_queue"]


class NanBelief(Point):
    def mean(self) -> float:
        return float("nan")


class Upside(Point):
    def quantile(self, level: float) -> float:
        return self.value * (1 - level)


class Rising(Point):
    def survival(self, values):
        return np.linspace(0.0, 1.0, np.asarray(values).size)


class Forgetful(Point):
    def given(self, elapsed: float) -> Point:
        return Point(self.value + 1.0) if elapsed == 0 else self


class Believing(Requested):
    """Believes whatever distribution it was made with."""

    def __init__(self, belief) -> None:
        self.belief = belief

    def predict(self, job, now):
        return self.belief


class FriendsOnly(Requested):
    def __init__(self) -> None:
        self.known: set[str] = set()

    def predict(self, job, now):
        if not job.user.startswith("u"):
            raise KeyError(job.user)
        return super().predict(job, now)


class OnlyItsOwn(Requested):
    def __init__(self) -> None:
        self.asked: set[str] = set()

    def predict(self, job, now):
        self.asked.add(job.job_id)
        return super().predict(job, now)

    def observe(self, job, outcome) -> None:
        self.asked.remove(job.job_id)


class Dicing(Requested):
    throws = count(1)

    def predict(self, job, now):
        return Point(float(next(self.throws)))


class Credulous(Requested):
    """Believes the last attempt, however it ended."""

    last = 3600.0

    def predict(self, job, now):
        return Point(self.last)

    def observe(self, job, outcome) -> None:
        self.last = outcome.runtime_seconds


class Prudent(Credulous):
    def observe(self, job, outcome) -> None:
        if outcome.ended_because is not EndedBecause.PREEMPTED:
            super().observe(job, outcome)


class Meddling(Requested):
    def predict(self, job, now):
        object.__setattr__(job, "user", "me")
        return super().predict(job, now)


class Suggestible(Prudent):
    """Takes being asked again for a sign that jobs get longer."""

    def refreshed(self, job, now):
        self.last *= 2.0
        return self.predict(job, now)

    def observe(self, job, outcome) -> None:
        if job.job_id != "victim":
            super().observe(job, outcome)


class Amnesiac(Prudent):
    """Says that it can be restored and can absorb, and forgets."""

    def snapshot(self) -> float:
        return self.last

    def restore(self, known) -> None:
        self.last = 0.5 * known

    def forget_in_flight(self) -> None:
        pass

    def absorb(self, other) -> None:
        self.last = 2.0 * other.last


@pytest.mark.parametrize(
    ("make", "rules"),
    [
        (lambda: Believing(NanBelief(3.0)), ["finite_belief", "strangers"]),
        (lambda: Believing(Upside(3.0)), ["monotone_quantiles"]),
        (lambda: Believing(Point(-3.0)), ["finite_belief", "monotone_quantiles"]),
        (lambda: Believing(Rising(3.0)), ["survival_falls"]),
        (lambda: Believing(Forgetful(3.0)), ["given_nothing", "given_elapsed"]),
        (FriendsOnly, ["strangers"]),
        (OnlyItsOwn, ["history_of_others"]),
        (Dicing, ["deterministic"]),
        (Credulous, ["preempted_attempts"]),
        (Meddling, ["input_unchanged"]),
        (Suggestible, ["asked_again"]),
        (Amnesiac, ["restored", "absorbed"]),
    ],
)
def test_predictor_rules_catch(make, rules):
    """A predictor with one fault breaks the rules that forbid it."""
    assert set(rules) <= set(broken(PREDICTOR_RULES, make))


@pytest.mark.parametrize(
    "make",
    [
        Requested,
        Prudent,
        lambda: (
            Believing(Quantiles.of_pairs(((0.1, 5.0), (0.9, 500.0))))
            if hasattr(Quantiles, "of_pairs")
            else Believing(Point(5.0))
        ),
    ],
)
def test_a_sound_predictor_breaks_no_rule(make):
    """Believing the request, or the last completed attempt, conforms."""
    assert broken(PREDICTOR_RULES, make) == []


def correction(answer):
    """A correction that answers with a function of (job, current, count)."""

    class Answering:
        def correct(self, job, prediction, initial, current, count) -> float:
            return answer(job, current, count)

    return Answering


throws = count(1)


@pytest.mark.parametrize(
    ("make", "rules"),
    [
        (correction(lambda job, current, count: current), ["rises", "catches_up"]),
        (correction(lambda job, current, count: current + 60), ["keeps_the_limit", "catches_up"]),
        (correction(lambda job, current, count: 2 * current), ["rises"]),
        (correction(lambda job, current, count: float("inf")), ["rises", "keeps_the_limit"]),
        (correction(lambda job, current, count: current + next(throws)), ["same_correction"]),
    ],
)
def test_correction_rules_catch(make, rules):
    """A correction with one fault breaks the rules that forbid it."""
    assert set(rules) <= set(broken(CORRECTION_RULES, make))


def test_all_breaches_are_told_at_once():
    """The error names the plug-in and every rule that it breaks, in words."""
    entry = Entry(
        "correction",
        "same",
        lambda _: correction(lambda job, current, count: current)(),
        NoParameters,
    )
    with pytest.raises(NonconformityError) as error:
        check_correction(entry)
    message = str(error.value)
    assert message.startswith("correction 'same' breaks 2 rules\n  The next estimate is later")
    assert len(error.value.breaches) == 2


GOOD = "4 2\n7 1\n"


class LineReader:
    """Reads ``submit tasks`` lines; what it does with others is for its children to say."""

    def recognises(self, sample) -> bool:
        words = sample.text.split("\n")[0].split()
        return len(words) == 2 and all(word.isdigit() for word in words)

    def bad(self, notes) -> None:
        notes.repair("dropped_bad_line")

    def chunks(self, notes):
        text = notes.path.read_bytes().decode("utf-8", errors="replace")
        if not self.recognises(type("Sample", (), {"text": text})):
            raise InputError("not a list of jobs", source=notes.path)
        rows = []
        for line in text.splitlines():
            words = line.split()
            if len(words) == 2 and all(word.isdigit() for word in words):
                rows.append((float(words[0]), int(words[1])))
            else:
                self.bad(notes)
        yield pl.DataFrame(
            {
                "job_id": [str(number) for number in range(len(rows))],
                "submit_seconds": [submit for submit, _ in rows],
                "tasks": [tasks for _, tasks in rows],
            }
        )


class SilentReader(LineReader):
    def bad(self, notes) -> None:
        pass


class FallingReader(LineReader):
    def recognises(self, sample) -> bool:
        return int(sample.text.split()[0]) >= 0


class EagerReader(LineReader):
    def recognises(self, sample) -> bool:
        return True


@pytest.mark.parametrize(
    ("make", "seen"),
    [
        (LineReader, []),
        (SilentReader, ["never dropped in silence", "InputError when strict"]),
        (FallingReader, ["InputError: empty, blank", "says no instead of failing"]),
        (EagerReader, ["says no instead of failing"]),
    ],
)
def test_reader_rules_catch(make, seen, monkeypatch):
    """A reader with one fault breaks the rules that forbid it; the sound one breaks none."""
    entry = Entry("reader", "lines", lambda _: make(), NoParameters)
    monkeypatch.setattr("foresail.traces.reading.find", lambda family, name: entry)
    if not seen:
        readers.check_reader(entry, GOOD)
        return
    with pytest.raises(NonconformityError) as error:
        readers.check_reader(entry, GOOD)
    for words in seen:
        assert words in str(error.value)


def test_easy_and_doubling_of_the_tests_are_what_they_say():
    """The toys that other tests lean on conform, but for Easy's missing reasons."""
    assert broken(SCHEDULER_RULES, Easy) == ["job_too_wide", "every_job_has_a_reason"]
    assert broken(CORRECTION_RULES, Doubling) == ["rises"]
    assert broken([predictors.finite_belief], Requested) == []
