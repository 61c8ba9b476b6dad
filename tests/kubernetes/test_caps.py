"""Bounds of namespaces: what counts of worth and deadlines, and whose jobs they are."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import msgspec
import pytest

from foresail.model import event as news
from foresail.model.errors import InputError
from foresail.model.job import DeadlineValue
from foresail.model.registry import find
from foresail_kubernetes.caps import Cap, Caps
from foresail_kubernetes.records import Pod
from test_observing_pods import CREATED, NOW, Watcher, made
from test_pods_and_nodes import node

BEGIN = datetime.fromisoformat(CREATED).timestamp()


def due(hours: float, worth: str = "9") -> Pod:
    """A pod of the namespace ``lab`` that is due so long after its creation."""
    at = datetime.fromtimestamp(BEGIN + 3600.0 * hours, UTC).isoformat()
    return made(annotations={"foresail.io/deadline": at, "foresail.io/worth": worth})


@pytest.mark.parametrize(
    ("caps", "hours", "worth"),
    [
        ({}, 2.0, 9.0),
        ({"other": Cap(worth=1.0)}, 2.0, 9.0),
        ({"lab": Cap(worth=3.0)}, 2.0, 3.0),
        ({"*": Cap(worth=3.0)}, 2.0, 3.0),
        ({"*": Cap(worth=3.0), "lab": Cap()}, 2.0, 9.0),
        ({"lab": Cap(soonest_hours=24.0)}, 24.0, 9.0),
        ({"lab": Cap(soonest_hours=1.0)}, 2.0, 9.0),
        ({"lab": Cap(worth=0.0)}, None, None),
    ],
)
def test_what_counts(caps: dict[str, Cap], hours: float | None, worth: float | None) -> None:
    """The bounds of a namespace, or those of all others; what is within them counts as it is."""
    found = Caps(caps).value(due(2.0))
    assert found == (
        None if hours is None or worth is None else DeadlineValue(BEGIN + 3600.0 * hours, worth)
    )


def test_jobs_are_whose_the_file_says(tmp_path: Path) -> None:
    """A service's users know a namespace's jobs as theirs, bounded."""
    file = tmp_path / "caps"
    file.write_text('[lab]\nworth = 2\nuser = "anna"\n["lab/train"]\nuser = "ben"\n')
    watcher = Watcher(tmp_path, node("n1"), caps=Caps.read(str(file)))
    watcher.adapter.resume((), (), NOW)
    watcher.mirror.put(due(2.0))
    (submitted,) = watcher.look()
    assert isinstance(submitted, news.Submitted)
    assert submitted.job.user == "anna"
    assert submitted.job.value == DeadlineValue(BEGIN + 7200.0, 2.0)
    caps = Caps.read(str(file))
    of_account = msgspec.structs.replace(due(2.0), account="train")
    assert caps.user(of_account) == "ben"
    assert caps.value(of_account) == DeadlineValue(BEGIN + 7200.0, 9.0)
    assert caps.user(msgspec.structs.replace(of_account, namespace="other")) == "other"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[lab]\nworth = 11\n", r"\[lab\]: Expected .* at `\$.worth` .found .'worth': 11"),
        ("[lab]\nworth = -1\n", "worth"),
        ("[lab]\nworth = nan\n", "worth"),
        ("[lab]\nsoonest_hours = inf\n", "soonest_hours"),
        ("[lab]\nworht = 1\n", "worht"),
        ('[lab]\nuser = "a/b"\n', "user"),
        ('[lab]\nuser = ""\n', "user"),
        ('["La b"]\nworth = 1\n', r"\[La b\]: is the name of no namespace"),
        ('["lab/train/x"]\nworth = 1\n', "is the name of no namespace"),
        ("worth = 1\n", "worth"),
        ("[lab\n", "cannot be read: .*line 1"),
        (None, "No such file"),
    ],
)
def test_a_file_that_is_none_is_refused(tmp_path: Path, text: str | None, said: str) -> None:
    """With what is wrong in it, before anything is connected to."""
    file = tmp_path / "caps"
    if text is not None:
        file.write_text(text)
    entry = find("cluster", "kubernetes")
    with pytest.raises(InputError, match=said) as error:
        entry.build(entry.parameters(caps=str(file)))
    assert "caps" in str(error.value)
