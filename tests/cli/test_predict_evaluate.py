"""``foresail predict evaluate``, as a user meets it."""

from __future__ import annotations

import json
from functools import partial

import polars as pl
import pytest

from foresail.traces.swf_writer import write_swf
from made_evaluations import random_jobs


@pytest.fixture(scope="module")
def log(tmp_path_factory):
    """A log of ten weeks, with one job that never ran."""
    path = tmp_path_factory.mktemp("log") / "cluster.swf"
    workload = random_jobs(500, seed=2, weeks=10.0)
    write_swf(workload, path)
    lines = path.read_text().splitlines()
    lines.append("501 6050000 0 -1 2 -1 -1 2 100 -1 0 1 -1 -1 -1 -1 -1 -1")
    path.write_text("\n".join(lines) + "\n")
    return path


@pytest.fixture
def foresail(foresail):
    return partial(foresail, "predict", "evaluate")


def test_a_table_to_read(foresail, log):
    """A row per predictor within 100 characters, the best value marked, what was dropped said."""
    code, out, err = foresail(log, "--predictor", "requested", "--predictor", "similar(classes=64)")
    assert code == 0
    lines = out.splitlines()
    assert max(len(line.rstrip()) for line in lines) <= 100
    assert lines[0].startswith("cluster.swf: runtime")
    assert [line.split()[0] for line in lines[3:5]] == ["requested", "similar(classes=64)"]
    assert "*" in out
    assert "500 jobs, learned on completion; * best of its column" in out
    assert "drop_no_runtime 1" in err


def test_json_for_programs(foresail, log):
    """An object per log and predictor, with all scores and all tables."""
    code, out, _ = foresail(log, "--predictor", "recent(k=1)", "--format", "json")
    (told,) = json.loads(out)["predictors"]
    assert code == 0
    assert told["predictor"] == "recent(k=1)"
    assert told["jobs"] == 500
    assert 0.0 < told["within_factor_two"]["low"] < told["within_factor_two"]["value"] < 1.0
    assert len(told["error_histogram"]) == 21
    assert sum(row["jobs"] for row in told["error_histogram"]) == 500
    assert [row["stretch"] for row in told["learning_curve"]] == list(range(1, 11))
    assert told["experts"] == []
    assert [row["stretch"] for row in told["coverage_by_week"]] == list(range(1, 11))
    assert {"user", "jobs", "covered_50", "covered_95"} <= set(told["coverage_by_user"][0])
    assert set(told["coverage"]) == {"50", "80", "90", "95"}


def test_the_standard_set_learned_in_order(foresail, log):
    """Without a predictor a standard set is evaluated; the way of learning is said."""
    code, out, _ = foresail(log, "--learning", "in_order")
    assert code == 0
    assert "learned in order" in out
    assert "quantile_regression" in out


def test_a_report_for_each_log(foresail, log, tmp_path):
    """Several logs get a table each, and a folder each with the report and its numbers."""
    again = tmp_path / "again.swf"
    again.write_text(log.read_text())
    where = tmp_path / "result"
    code, out, err = foresail(log, again, "--predictor", "similar", "--output", where)
    assert code == 0
    assert "cluster.swf: runtime" in out
    assert "again.swf: runtime" in out
    for name in ("cluster", "again"):
        assert (where / name / "report.html").stat().st_size > 100_000
        assert pl.read_csv(where / name / "scores.csv")["predictor"].to_list() == ["similar"]
        assert f"report: {where / name / 'report.html'}" in err


def test_a_plugin_and_a_quantity(foresail, log, tmp_path):
    """A predictor of one's own is scored like all others, on whatever the log knows."""
    plugin = tmp_path / "always.py"
    plugin.write_text(
        "from foresail.distributions.basic import Point\n"
        "from foresail.model.protocols import Predictor\n"
        "from foresail.model.registry import NoParameters, register\n"
        "@register('predictor', 'always_one')\n"
        "class Always(Predictor):\n"
        "    '''One.'''\n"
        "    def __init__(self, parameters: NoParameters): pass\n"
        "    def predict(self, job, now): return Point(1.0)\n"
        "    def observe(self, job, outcome): pass\n"
    )
    arguments = ["--plugin", plugin, "--predictor", "always_one", "--quantity", "cpu_time"]
    code, out, _ = foresail(log, *arguments, "--format", "json")
    (told,) = json.loads(out)["predictors"]
    assert code == 0
    assert (told["quantity"], told["unit"]) == ("cpu_time", "core seconds")
    assert told["errors"]["under"] > 0.99
    assert told["state_bytes"] is None


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--predictor", "similr"], "did you mean 'similar'"),
        (["--quantity", "cpus"], "unknown quantity 'cpus'"),
        (["--quantity", "memory_max"], "no job whose memory max is known"),
        (["--predictor", "recent(k=0)"], "k"),
        (["--filter", "keep_users(users=[nobody])"], "no job"),
    ],
    ids=["predictor", "quantity", "unknown of all", "parameter", "nothing left"],
)
def test_bad_input(foresail, log, arguments, words):
    """One line on standard error that says what to do, exit status 2, and nothing printed."""
    code, out, err = foresail(log, *arguments)
    assert (code, out) == (2, "")
    assert words in err.splitlines()[-1]


def test_two_logs_of_one_name(foresail, log, tmp_path):
    """Reports of different logs must not overwrite each other."""
    code, _, err = foresail(log, log, "--output", tmp_path / "result")
    assert code == 2
    assert "same name" in err
    assert not (tmp_path / "result").exists()
