"""``foresail strl check`` as a user meets it."""

from __future__ import annotations

import json

import pytest
from typer.testing import CliRunner

from foresail.cli.strl import app

GOOD = """\
nodes {m[1-4]}
busy {m1} until 90s
gpu = {m1, m2}
all = {m[1-4]}
fast = max(nCk(gpu, 2, 0, 2h, 4), nCk(gpu, 2, 2min, 2h, 3))
job1 = max(nCk(all, 2, 0, 3h, 3), fast)
job2 = scale(barrier(sum(LnCk(gpu, 2, 0, 60, 2), LnCk(all - gpu, 2, 0, 60, 2)), 3), 10)
"""
BAD = """\
gpu = {m1, m2}
unused = {m9}
job1 = nCk(gpu, 3, 0, 10, 1)
job2 = nCk(gpu, 0, 0, 10, 1)
job3 = nCk(cpu, 1, 0, 10, 1)
"""


@pytest.fixture
def written(tmp_path):
    def write(text):
        path = tmp_path / "jobs.strl"
        path.write_text(text)
        return path

    return write


def run(*arguments: object):
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


def test_check_counts(written):
    """A file that can be read: what is odd with its place, status 0."""
    result = run("check", written(GOOD))
    assert result.exit_code == 0
    assert result.stdout.splitlines() == [
        "odd: line 5, column 24: 2 of 2 nodes is never given at 0 s: 1 free by then",
        "2 requests of 4 nodes: 0 errors, 1 remark",
    ]


def test_check_reports_all_that_is_wrong(written):
    """Every error and every oddity with its place; status 2."""
    path = written(BAD)
    result = run("check", path)
    assert result.exit_code == 2
    assert result.stdout.splitlines()[:5] == [
        f"error: {path}, line 4, column 17: a count that cannot be (found 0); expected at least 1",
        f"error: {path}, line 5, column 12: an unknown name (found 'cpu'); expected a set such as "
        "{m1, m2} or {n[1-8]}, or the name of one",
        "odd: line 2, column 1: the set unused is used nowhere",
        "odd: line 3, column 17: 3 of 2 nodes is never given",
        "odd: job1 can never be worth anything",
    ]


def test_check_as_json(written):
    """The same for programs."""
    content = json.loads(run("check", written(BAD), "--format", "json").stdout)
    assert [(each["line"], each["column"]) for each in content["errors"]] == [(4, 17), (5, 12)]
    assert content["remarks"][-1] == {
        "line": None,
        "column": None,
        "text": "job1 can never be worth anything",
    }
    assert content["requests"] == ["job1"]


@pytest.mark.parametrize(
    ("line", "remark"),
    [
        ("nCk({m9}, 1, 0, 1, 1)", "line 2, column 5: not among the nodes there are: m9"),
        ("LnCk({m1}, 2, 0, 1, 1)", "line 2, column 12: 2 of 1 node is never given in full"),
        ("nCk({m1}, 1, -5, 1, 1)", "line 2, column 14: begins before now (0 s)"),
        ("nCk({m1}, 1, 0, 1, 0)", "line 2, column 20: is worth nothing"),
        ("max(nCk({m1}, 1, 0, 1, 1))", None),
    ],
)
def test_what_is_odd(written, line, remark):
    """What can be read but can hardly be meant."""
    output = run("check", written(f"nodes {{m1}}\n{line}")).stdout
    assert output.startswith(f"odd: {remark}\n" if remark else "1 request of 1 node: 0 errors")


def test_a_file_without_requests(written):
    """Nothing asked for is nothing wrong."""
    result = run("check", written("# nothing yet\n"))
    assert result.exit_code == 0
    assert result.stdout == "0 requests of 0 nodes: 0 errors, 0 remarks\n"
