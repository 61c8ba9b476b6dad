"""``foresail strl solve``, as a user meets it."""

import json
from functools import partial

import pytest

FIGURE_4 = """\
nodes {M1, M2, M3}
slot 10s
every = {M1, M2, M3}
first = nCk(every, 2, 0, 10, 1)
second = max(nCk(every, 1, 0, 20, 1), nCk(every, 1, 10, 20, 1), nCk(every, 1, 20, 20, 1))
third = max(nCk(every, 3, 0, 10, 1), nCk(every, 3, 10, 10, 1))
"""


@pytest.fixture
def foresail(foresail):
    return partial(foresail, "strl", "solve")


@pytest.fixture
def figure_4(tmp_path):
    path = tmp_path / "figure4.strl"
    path.write_text(FIGURE_4)
    return path


def test_a_table_to_read(foresail, figure_4):
    """Who gets which nodes when, the value with its bound, and the program's size."""
    status, out, _ = foresail(figure_4)
    lines = out.splitlines()
    assert status == 0
    assert [line.split()[0] for line in lines[1:4]] == ["first", "third", "second"]
    assert lines[2].split() == ["third", "3:", "M[1-3]", "10", "s", "20", "s", "1"]
    assert "3 of 3 requests are given nodes" in lines
    assert "value 3, at most 3 (optimal, gap 0.00%); quick plan 2" in lines
    assert any(line.startswith("9 variables, ") for line in lines)


def test_json(foresail, figure_4):
    """One record with everything, for programs."""
    status, out, _ = foresail(figure_4, "--format", "json", "--solver", "highs")
    found = json.loads(out)
    assert status == 0
    assert found["value"] == found["bound"] == 3.0
    assert found["slot_seconds"] == 10.0
    assert [row["start_seconds"] for row in found["given"]] == [0.0, 10.0, 20.0]
    assert found["given"][1]["nodes"] == ["M1", "M2", "M3"]


def test_nothing_fits(foresail, tmp_path):
    """A request that cannot be met is no error; the slot is made from the requests."""
    path = tmp_path / "requests.strl"
    path.write_text("nodes {a}\nbusy {a} until 100s\nnCk({a}, 1, 6, 15, 2)\n")
    status, out, _ = foresail(path)
    assert status == 0
    assert out.startswith("0 of 1 requests are given nodes")
    assert "slots of 3 s" in out


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--solver", "hihgs"), "did you mean 'highs'"),
        (("--time-limit", "0"), "above 0"),
        (("--slot", "-1"), "above 0"),
    ],
)
def test_bad_options(foresail, figure_4, options, said):
    """One line on standard error, and status 2."""
    status, out, err = foresail(figure_4, *options)
    assert (status, out) == (2, "")
    assert said in err
