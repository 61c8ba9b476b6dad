"""``foresail predict train``, ``merge`` and ``show``: what was learned, as files."""

import json
from functools import partial

import pytest

from foresail.predictors.saving import read_header

LOG = "; MaxProcs: 8\n" + "".join(
    f"{i} {100 * i} 5 {60 + i % 3} 2 -1 -1 2 120 -1 1 {1 + i % 2} 1 -1 1 -1 -1 -1\n"
    for i in range(1, 21)
)


@pytest.fixture
def foresail(foresail, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "log.swf").write_text(LOG)
    return partial(foresail, "predict")


def train(foresail, output, predictor="history(features=[user])"):
    """A state that has learned the log."""
    return foresail("train", "log.swf", "--predictor", predictor, "--output", output)


def test_train_and_show(foresail, tmp_path):
    """A log's jobs are learned; the state says by whom, how many, and where they went."""
    status, out, err = train(foresail, "state", "history")
    assert status == 0, err
    assert "state: history after 20 jobs" in out
    assert read_header(tmp_path / "state").predictor == "history"
    status, out, _ = foresail("show", "state")
    assert status == 0
    assert "learned" in out
    assert "user+cpus" in out
    status, out, _ = foresail("show", "state", "--format", "json")
    told = json.loads(out)
    assert told["learned"] == 20
    assert told["feature_values"]["user"] == 2
    assert told["used_bytes"] == told["row_bytes"] * sum(told["feature_values"].values())
    assert told["best_experts"]["user"].split()[0] in ("mean", "median", "rolling", "recent")


@pytest.mark.parametrize("predictor", ["similar", "regression"])
def test_show_any_predictor(foresail, predictor):
    """States of others say less."""
    assert train(foresail, "state", predictor)[0] == 0
    status, out, _ = foresail("show", "state")
    assert status == 0
    assert predictor in out


def test_merge(foresail):
    """Two states of the same predictor become one that knows both."""
    for name in ("one", "other"):
        assert train(foresail, name)[0] == 0
    status, out, _ = foresail("merge", "one", "other", "--output", "both")
    assert status == 0
    assert "of 2 states" in out
    assert json.loads(foresail("show", "both", "--format", "json")[1])["learned"] == 40


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["train", "log.swf", "--predictor", "clairvoyant", "--output", "x"], "nothing to save"),
        (
            ["train", "log.swf", "--predictor", "history(features=[usr])", "--output", "x"],
            "did you mean 'user'",
        ),
        (["train", "log.swf", "--predictor", "histry", "--output", "x"], "did you mean 'history'"),
        (["train", "log.swf", "--predictor", "jvu", "--output", "no/x"], "no such folder"),
        (["train", "absent", "--predictor", "jvu", "--output", "state"], "absent"),
        (["show", "log.swf"], "not a learned state"),
        (["show", "absent"], "cannot be read"),
        (["merge", "state", "--output", "x"], "two or more"),
        (["merge", "state", "similar", "--output", "x"], "another predictor"),
        (["merge", "regression", "regression", "--output", "x"], "no meaning"),
    ],
)
def test_bad_input_is_one_sentence_and_status_2(foresail, tmp_path, arguments, words):
    """No file is made, and those that are there stay as they are."""
    for name, predictor in (("state", "history"), ("similar", "similar")):
        assert train(foresail, name, predictor)[0] == 0
    assert train(foresail, "regression", "regression")[0] == 0
    before = {path: path.read_bytes() for path in tmp_path.iterdir()}
    status, _, err = foresail(*arguments)
    assert status == 2
    assert words in err
    assert {path: path.read_bytes() for path in tmp_path.iterdir()} == before
