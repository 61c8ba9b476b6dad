"""Every way in which a job can end has a sentence, and none says what did not happen."""

import pytest

from foresail.explain.reason_words import end_words
from foresail.model.event import EndedBecause, Outcome
from foresail.model.job import Job

JOB = Job.gang("7", 0.0, 2, 1800.0, "ann/train")

ENDS = [
    ("completed", 0, 60.0, "", "", None),
    ("failed", 4, 60.0, "", "", "exit code 4"),
    ("failed", 126, 0.0, "", "", "exit code 126: a command may not be executed"),
    (
        "failed",
        127,
        0.0,
        "",
        "",
        "exit code 127: a command was not found; standard error says which",
    ),
    ("failed", -9, 60.0, "", "", "ended by signal 9 (SIGKILL)"),
    ("failed", 137, 60.0, "", "", "exit code 137: as after signal 9 (SIGKILL)"),
    ("failed", 200, 60.0, "", "", "exit code 200"),
    ("failed", -40, 60.0, "", "", "ended by signal 40"),
    ("failed", None, 60.0, "given up: lost 3 times", "", "given up: lost 3 times"),
    ("failed", None, 60.0, "", "", "how it ended was not recorded"),
    ("limit", -15, 1800.4, "", "", "its time limit of 30 min was over"),
    ("limit", -15, 20.0, "", "", "it held more memory than it may have"),
    ("cancelled", -15, 60.0, "", "ann", "cancelled by its user"),
    ("cancelled", -15, 60.0, "", "", "cancelled by its user"),
    ("cancelled", -15, 60.0, "", "bob", "cancelled by bob"),
    ("preempted", -15, 60.0, "", "", "stopped to make room for another"),
    ("lost", None, 60.0, "", "", "lost: what watched it, or the machine, went down"),
    ("revoked", None, 60.0, "", "", "what it ran on was taken back"),
]


@pytest.mark.parametrize(("because", "code", "ran", "reason", "by", "words"), ENDS)
def test_each_end_has_its_sentence(because, code, ran, reason, by, words):
    """By what the cluster reports of it."""
    outcome = Outcome("7", 100.0, 100.0 + ran, EndedBecause(because), code, reason=reason)
    assert end_words(outcome, JOB, by) == words


def test_all_ends_are_in_the_table():
    """A new kind of end has to be put into words."""
    assert {because for because, *_ in ENDS} == {str(each) for each in EndedBecause}
