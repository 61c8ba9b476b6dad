"""Saved and loaded, a predictor goes on as if nothing had been; merged, shards know all."""

import json
import os
import pickle
import subprocess
import sys
import zipfile
from dataclasses import replace

import numpy as np
import pytest

from foresail.distributions.summary import summarise
from foresail.kernels.columns import USER
from foresail.model.errors import InputError
from foresail.model.registry import entries, find
from foresail.predictors.clairvoyant import Clairvoyant
from foresail.predictors.history import History, HistoryParameters
from foresail.predictors.saving import (
    VERSION,
    StateHeader,
    load_state,
    merged,
    read_header,
    save_state,
)
from foresail.predictors.stepped import SteppedPredictor
from random_history import END, START, SUBMIT, random_history

KEPT = [entry.name for entry in entries("predictor") if issubclass(entry.build, SteppedPredictor)]
VARIANTS = [
    *((name, {}) for name in KEPT),
    ("history", {"features": ("user", "program_version", "user+cpus")}),
    ("history", {"false_alarm_jobs": 20, "feature_values": 30}),
    ("similar", {"classes": 20}),
]


def built(name, changes):
    entry = find("predictor", name)
    return entry.build(entry.parameters(**changes))


def told(predictor, past, events):
    """Summary rows of what was predicted in the course of these events."""
    rows = []
    for now, kind, i in events:
        if kind == SUBMIT:
            rows.append(summarise(predictor.predict(past.jobs[i], now)))
        elif kind == START:
            predictor.started(past.jobs[i], now)
        elif kind == END:
            predictor.observe(past.jobs[i], past.outcome(i))
    return np.array(rows)


def versioned(past):
    """The same history, with a further attribute of half of its jobs."""
    for i in range(0, len(past.jobs), 2):
        past.jobs[i] = replace(past.jobs[i], attributes={"program_version": str(i % 3)})
    return past


@pytest.mark.parametrize(("name", "changes"), VARIANTS)
def test_goes_on_after_loading(name, changes, tmp_path):
    """Saved in the midst of things, jobs in flight and all: the same predictions as without."""
    past = versioned(random_history(seed=41, jobs=300, users=20))
    middle = len(past.events) // 2
    whole, first, second = (built(name, changes) for _ in range(3))
    expected = told(whole, past, past.events)
    begin = told(first, past, past.events[:middle])
    save_state(tmp_path / "state", first, StateHeader(name))
    load_state(tmp_path / "state", second, name)
    assert first.snapshot().in_flight
    end = told(second, past, past.events[middle:])
    assert np.array_equal(np.concatenate((begin, end)), expected)


GOES_ON = """
import pickle, sys
predictor, job = pickle.loads(sys.stdin.buffer.read())
print(predictor.predict(job, 1e6).mean())
"""


@pytest.mark.parametrize("name", ["history", "combined"])
def test_a_pickled_copy_goes_on_in_another_process(name):
    """Where its steps, and those of its members, are at other addresses."""
    past = random_history(seed=43, jobs=60)
    predictor = built(name, {})
    told(predictor, past, past.events)
    job = replace(past.jobs[0], job_id="next", submit_seconds=1e6)
    sent = pickle.dumps((predictor, job))
    command = [sys.executable, "-c", GOES_ON]
    answer = subprocess.run(command, input=sent, capture_output=True, check=True).stdout
    assert float(answer) == predictor.predict(job, 1e6).mean()


def test_the_header_says_what_it_is(tmp_path):
    """Predictor, writer and version of the package."""
    header = StateHeader("history", "run 7", "1.2.3")
    save_state(tmp_path / "state", History(HistoryParameters()), header)
    assert read_header(tmp_path / "state") == header
    assert [path.name for path in tmp_path.iterdir()] == ["state"]


def saved(path, seed=42):
    """A state that has learned something."""
    predictor = History(HistoryParameters())
    past = random_history(seed=seed, jobs=60)
    told(predictor, past, past.events)
    save_state(path, predictor, StateHeader("history"))
    return predictor


def rewritten(path, **changes):
    """The same archive with another header."""
    with zipfile.ZipFile(path) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    header = json.loads(members["header.json"]) | changes
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in members.items():
            text = json.dumps(header).encode() if name == "header.json" else content
            archive.writestr(name, text)


def truncated(path):
    path.write_bytes(path.read_bytes()[:-200])


def flipped(path):
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 0xFF
    path.write_bytes(content)


DAMAGES = {
    "truncated": (truncated, "damaged"),
    "flipped": (flipped, "damaged"),
    "empty": (lambda path: path.write_bytes(b""), "damaged"),
    "text": (lambda path: path.write_text("hello"), "damaged"),
    "newer": (lambda path: rewritten(path, version=VERSION + 1), "newer version"),
    "older": (lambda path: rewritten(path, version=VERSION - 1), "older version"),
    "format": (lambda path: rewritten(path, format="cake"), "damaged"),
    "other": (lambda path: rewritten(path, predictor="similar"), "another predictor"),
    "parameters": (lambda path: rewritten(path, predictor="history(bins=9)"), "other parameters"),
    "shapes": (lambda path: rewritten(path, shapes={}), "damaged"),
    "negative": (lambda path: rewritten(path, shapes={"model": [-1]}), "damaged"),
    "jobs": (lambda path: rewritten(path, in_flight=["a"]), "damaged"),
    "names": (lambda path: rewritten(path, names={"3": []}), "damaged"),
    "gone": (os.unlink, "cannot be read"),
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_what_cannot_be_used_is_refused(damage, tmp_path):
    """The file is named and left as it was; the predictor knows what it knew."""
    path = tmp_path / "state"
    saved(path)
    harm, words = DAMAGES[damage]
    harm(path)
    before = path.read_bytes() if path.exists() else None
    predictor = saved(tmp_path / "other", seed=43)
    known = predictor.snapshot()
    with pytest.raises(InputError, match=words) as error:
        load_state(path, predictor, "history")
    assert error.value.source == path
    assert (path.read_bytes() if path.exists() else None) == before
    assert np.array_equal(predictor.snapshot().model, known.model)


def test_a_folder_that_is_not_there_cannot_be_written(tmp_path):
    """And nothing is left behind."""
    with pytest.raises(InputError, match="cannot be written"):
        save_state(tmp_path / "no" / "state", History(HistoryParameters()), StateHeader("history"))
    assert not list(tmp_path.iterdir())


def test_a_predictor_without_arrays_has_nothing_to_save(tmp_path):
    """An oracle, for one."""
    with pytest.raises(InputError, match="nothing to save"):
        save_state(tmp_path / "state", Clairvoyant(None), StateHeader("clairvoyant"))


@pytest.mark.parametrize("name", ["history", "jvu", "similar", "requested"])
def test_shards_by_user_merge_into_the_whole(name):
    """Each shard saw other users: about these the merged one believes what the whole would."""
    past = random_history(seed=44, jobs=300, users=8, unknown=0.0)
    changes = {"features": ("user", "user+cpus")} if name in ("history", "jvu") else {}
    close = 0.05 if name == "similar" else 1e-9  # what all users share decays job by job
    whole = built(name, changes)
    told(whole, past, past.events)
    parts = []
    for shard in range(3):
        part = built(name, changes)
        mine = [e for e in past.events if int((past.jobs[e[2]].user or "user0")[4:]) % 3 == shard]
        told(part, past, mine)
        parts.append(part)
    together = merged(parts, built(name, changes))
    for user in range(8):
        job = replace(past.jobs[0], job_id=f"next{user}", user=f"user{user}", submit_seconds=1e6)
        expected = summarise(whole.predict(job, 1e6))
        assert summarise(together.predict(job, 1e6)) == pytest.approx(expected, rel=close)


@pytest.mark.parametrize("changes", [{}, {"feature_values": 3}])
def test_shards_of_the_same_classes_add_up(changes):
    """Counts, sums and last values of every feature-value are those of one that saw all."""
    past = random_history(seed=45, jobs=200, users=3)
    features = {"features": ("user",)}
    whole = History(HistoryParameters(**features | changes))
    parts = [History(HistoryParameters(**features | changes)) for _ in range(2)]
    ends = [event for event in past.events if event[1] == END]
    told(whole, past, ends)
    for shard, part in enumerate(parts):
        told(part, past, [event for event in ends if event[2] % 2 == shard])
    together = merged(parts, History(HistoryParameters(**features | changes)))
    assert together.memory().learned == whole.memory().learned == len(ends)
    if "feature_values" in changes:
        assert sum(together.memory().feature_values.values()) == 3
        return
    assert together.memory().feature_values == whole.memory().feature_values
    for user in range(3):
        job = replace(past.jobs[0], job_id="next", user=f"user{user}", requested_seconds=None)
        now = 1.0 + max(end for end, _, _ in ends)
        belief, expected = together.predict(job, now), whole.predict(job, now)
        assert belief.mean() == pytest.approx(expected.mean())
    for_user = {}
    for predictor in (whole, together):
        codes = {code: name for name, code in predictor._codes[USER].items()}
        for row in predictor.rows():
            if row[0] == 0.0:
                for_user.setdefault(codes[int(row[1])], []).append(row[5:12])
    for rows in for_user.values():
        assert rows[1] == pytest.approx(rows[0], rel=1e-6)


def test_merging_into_other_codes():
    """Names are what counts: shards that met users in another order."""
    parts = []
    for users in (("a", "b"), ("b", "a", "c")):
        past = random_history(seed=46, jobs=len(users))
        part = History(HistoryParameters(features=("user",)))
        for job, user, i in zip(past.jobs, users, range(len(users)), strict=True):
            job = replace(job, user=user)
            outcome = replace(past.outcome(i), end_seconds=past.start[i] + 100.0 * ord(user))
            part.observe(job, outcome)
        parts.append(part)
    together = merged(parts, History(HistoryParameters(features=("user",))))
    for user in "abc":
        job = replace(past.jobs[0], job_id="x", user=user, requested_seconds=None)
        assert together.predict(job, 1e9).mean() == 100.0 * ord(user)


@pytest.mark.parametrize("name", ["regression", "quantile_regression", "recent"])
def test_what_has_no_meaning_merged_says_so(name):
    """Models that depend on the order of ends."""
    with pytest.raises(InputError, match="no meaning"):
        merged([built(name, {})], built(name, {}))


def test_a_saved_state_is_as_large_as_what_it_holds(tmp_path):
    """A table for a hundred thousand feature-values with a few in it is a few kilobytes."""
    saved(tmp_path / "state")
    assert (tmp_path / "state").stat().st_size < 300_000


@pytest.mark.parametrize("name", ["history", "regression"])
def test_jobs_in_flight_can_be_forgotten(name):
    """They teach nothing; the same ids may come again, of other jobs."""
    past = random_history(seed=47, jobs=100)
    predictor, untouched = built(name, {}), built(name, {})
    for each in (predictor, untouched):
        told(each, past, past.events)
    running = [replace(past.jobs[0], job_id=f"new{i}", submit_seconds=1e6) for i in range(100)]
    for job in running:
        predictor.predict(job, 1e6)
    predictor.started(running[0], 1e6)
    predictor.forget_in_flight()
    assert predictor.snapshot().in_flight == ()
    again = replace(past.jobs[1], job_id="new0", submit_seconds=1e6)
    expected = summarise(untouched.predict(again, 1e6))
    assert np.array_equal(summarise(predictor.predict(again, 1e6)), expected)
