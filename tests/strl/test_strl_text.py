"""STRL as text: the paper's forms, files that stand alone, round trips, errors with their place."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from drawn_expressions import expressions
from foresail.model.errors import InputError
from foresail.strl.expression import (
    Barrier,
    LinearNChooseK,
    Maximum,
    Minimum,
    NChooseK,
    Scale,
    Sum,
    Supply,
)
from foresail.strl.parser import examine, parse, read
from long_series import of_a_series
from printed import format_expression

GPU = frozenset({"M1", "M2"})
ALL = frozenset({"M1", "M2", "M3", "M4"})

FIGURE_4 = """\
# TetriSched, Figure 4
nodes {M[1-3]}
slot 10s
all = {M[1-3]}
job1 = nCk(all, 2, 0, 10s, 1)
job2 = max(
    nCk(all, k=1, start=0, dur=20, v=1),   # each on a line of its own
    nCk(all, k=1, start=10, dur=20, v=1),
    nCk(all, k=1, start=20, dur=20, v=1))
job3 = max(nCk(all, 3, 0, 10, 1), nCk(all, 3, 10, 10, 1))
"""


def test_the_papers_own_text():
    """Section 4.4 as printed: named arguments, nested max."""
    text = """max(nCk({M1, M2, M3, M4}, k=2, s=0, dur=3, v=1),
              max(nCk({M1, M2}, k=2, s=0, dur=2, v=1),
                  nCk({M1, M2}, k=2, s=1, dur=2, v=1)))"""
    inner = Maximum((NChooseK(GPU, 2, 0, 2, 1), NChooseK(GPU, 2, 1, 2, 1)))
    assert parse(text).expression == Maximum((NChooseK(ALL, 2, 0, 3, 1), inner))


def test_all_operators():
    """Every operator has its text, whatever the case of its letters."""
    leaf = NChooseK(GPU, 1, 0, 1, 2)
    linear = LinearNChooseK(GPU, 2, -1.5, 1, 2)
    assert parse("NCK({M[1-2]}, 1, 0, 1, 2)").expression == leaf
    assert parse("LnCk({M1,M2}, 2, -1.5, 1, 2)").expression == linear
    for word, kind in (("max", Maximum), ("min", Minimum), ("sum", Sum)):
        text = f"{word}(nCk({{M1,M2}},1,0,1,2), LnCk({{M1,M2}},2,-1.5,1,2))"
        assert parse(text).expression == kind((leaf, linear))
    assert parse("scale(nCk({M1,M2},1,0,1,2), s=.5)").expression == Scale(leaf, 0.5)
    assert parse("barrier(nCk({M1,M2},1,0,1,2), 1e1)").expression == Barrier(leaf, 10.0)


def test_a_file_stands_alone():
    """Sets, comments, requests over several lines, and what there is."""
    document = parse(FIGURE_4)
    assert list(document.requests) == ["job1", "job2", "job3"]
    assert document.supply == Supply(frozenset({"M1", "M2", "M3"}), {}, 10.0)
    assert document.expression == Sum(tuple(document.requests.values()))
    assert document.requests["job2"].children[2].start_seconds == 20.0


def test_sets_are_added_and_taken_away():
    """Sets are made of sets; a name may also be used within an expression."""
    document = parse("a = {m[1-4]}\nb = a - {m1} + {m9}\nnCk(b - {m2}, 1, 0, 1, 1)\n")
    assert document.node_sets["b"] == {"m2", "m3", "m4", "m9"}
    assert document.requests["request1"].nodes == {"m3", "m4", "m9"}


def test_what_others_use_is_no_request():
    """Only expressions that no other one is made of are asked for; the only one stands alone."""
    document = parse("fast = nCk({m1}, 1, 0, 1, 2)\nany = max(fast, nCk({m2}, 1, 0, 2, 1))\n")
    assert list(document.requests) == ["any"]
    assert document.expression == document.requests["any"]


def test_nodes_are_those_mentioned_where_none_are_declared():
    """Without a ``nodes`` line, all nodes that the file names exist."""
    supply = parse("busy {m9} until 2min\nx = {m8}\nnCk({m1}, 1, 0, 1, 1)").supply
    assert supply.nodes == {"m1", "m8", "m9"}
    assert supply.busy_until == {"m9": 120.0}


def test_the_later_end_of_a_busy_node_counts():
    """A node that two lines call busy is free when the last of them says so."""
    assert parse("busy {a, b} until 5\nbusy {a} until 3\nbusy {b} until 8").supply.busy_until == {
        "a": 5.0,
        "b": 8.0,
    }


@pytest.mark.parametrize(
    ("text", "seconds"), [("90", 90), ("90s", 90), ("1.5h", 5400), ("2d", 172800), ("250ms", 0.25)]
)
def test_times_have_units(text, seconds):
    """Starts and durations may be written with a unit."""
    leaf = parse(f"nCk({{m}}, 1, {text}, {text}, 1)").expression
    assert (leaf.start_seconds, leaf.duration_seconds) == (seconds, seconds)


@pytest.mark.parametrize(
    ("text", "line", "column", "found", "expected"),
    [
        ("nCk({m1}, 0, 0, 1, 1)", 1, 11, 0, "at least 1"),
        ("nCk({}, 1, 0, 1, 1)", 1, 5, "{}", "at least one node"),
        ("nCk({m1}, 1, 0, 0, 1)", 1, 17, 0.0, "above 0"),
        ("nCk({m1}, 1, 0, 1, -1)", 1, 20, -1.0, "not negative"),
        ("nCk({m1}, 1.5, 0, 1, 1)", 1, 11, "1.5", "how many nodes"),
        ("nCk({m1}, 1, 0, 1x, 1)", 1, 17, "1x", "seconds, or a number with ms, s, sec, m, min"),
        ("nCk({m1}, 1, 0, 1, 1s)", 1, 20, "1s", "a number without a unit"),
        ("nCk({m1}, 1, 0, 1)", 1, 18, ")", "',' and the value"),
        ("nCk({m1}, 1, 0, 1, 1, 1)", 1, 23, "1", "')'"),
        ("nCk({m1}, 1, 0, 1, k=1)", 1, 20, "k", "v or value"),
        ("nCk({m1}, 1, 0, 1, w=1)", 1, 20, "w", "v or value"),
        ("nCk({m1}, 1, 0, 1, 1", 1, 4, "(", None),
        ("nCk({m1},", 1, 4, "(", None),
        ("nCk(", 1, 4, "(", None),
        ("nCk({m1 m2}, 1, 0, 1, 1)", 1, 9, "m2", "',' or '}'"),
        ("nCk({n[2-1]}, 1, 0, 1, 1)", 1, 6, "n[2-1]", "a run that goes upwards, as in [1-2]"),
        ("nCk(gpu, 1, 0, 1, 1)", 1, 5, "gpu", "a set such as {m1, m2} or {n[1-8]}"),
        ("max()", 1, 5, ")", "nCk, LnCk, max, min, sum, scale or barrier"),
        ("max(nCk({m},1,0,1,1) nCk({m},1,0,1,1))", 1, 22, "nCk", "',' or ')'"),
        ("scale(nCk({m},1,0,1,1))", 1, 23, ")", "',' and the factor"),
        ("scale(nCk({m},1,0,1,1), -2)", 1, 25, -2.0, "not negative"),
        ("barrier(nCk({m},1,0,1,1), v=?)", 1, 29, "?", "a number"),
        ("nCk({m},1,0,1,1) nCk", 1, 18, "nCk", "a new line"),
        ("\n  x = {a}\n  x = {b}", 3, 3, "x", "a name that is not taken"),
        ("max = {a}", 1, 1, "max", "a word of letters, digits and . _ - that means nothing else"),
        ("1st = {a}", 1, 1, "1st", "a word of letters"),
        ("x = ", 1, 5, "the end of the text", "a set such as"),
        ("busy {a} 5", 1, 10, "5", "'until' and a time"),
        ("slot 0", 1, 6, "0", "a time above 0"),
        ("nodes all", 1, 7, "all", "a set such as"),
        ("nCk({m},1,0,1e999,1)", 1, 13, "1e999", "a number"),
        ("\t§", 1, 2, "§", "nCk, LnCk"),
    ],
)
def test_errors_say_where_what_and_what_instead(text, line, column, found, expected):
    """Line, column, what was found and what would do."""
    with pytest.raises(InputError) as caught:
        parse(text, "jobs.strl")
    error = caught.value
    assert (error.source, error.line, error.column) == ("jobs.strl", line, column)
    assert error.value == found
    assert (error.expected or "").startswith(expected or "")
    assert str(error).startswith(f"jobs.strl, line {line}, column {column}: ")


def test_a_minus_without_spaces_is_part_of_a_name():
    """Since node names have hyphens, taking a set away needs spaces; the error says so."""
    with pytest.raises(InputError, match=r"found 'a-b'.*a minus has spaces around it"):
        parse("a = {m}\nb = {m}\nc = a-b")


def test_every_statement_has_its_first_error():
    """One wrong statement hides no other, and what only depends on a wrong one is not reported."""
    reading = examine(
        "a = {m1\n}}\n"
        "b = nCk(a, 1, 0, 1, 1)\n"
        "c = max(\n  nCk({m1}, 0, 0, 1, 1),\n  nCk({m1}, 0, 0, 1, 1))\n"
        "max(c, b)\n"
        "d = nCk({m1}, 1, 0, 1, 1)\n"
        "e = nCk({m1}, 1, 0, 1\n"
        "f = nCk({m1}, 1, 0, 1, 1)\n"
    )
    assert [(error.line, error.column) for error in reading.errors] == [(2, 2), (5, 13), (10, 1)]
    assert list(reading.document.requests) == ["d", "f"]


def test_depth_and_size_have_limits():
    """Deep nesting and names that multiply are refused before they exhaust anything."""
    deep = "max(" * 101 + "nCk({m},1,0,1,1)" + ")" * 101
    with pytest.raises(InputError, match="nested too deeply"):
        parse(deep)
    assert parse(deep[4:-1]).expression.children
    doubling = "x0 = nCk({m},1,0,1,1)\n"
    doubling += "".join(f"x{n} = sum(x{n - 1}, x{n - 1})\n" for n in range(1, 60))
    with pytest.raises(InputError, match="too much is asked for"):
        parse(doubling)


@given(expressions)
def test_expressions_survive_their_text(expression):
    """Printed and parsed again, an expression is the same."""
    assert parse(format_expression(expression)).expression == expression


@given(
    st.floats(allow_nan=False, allow_infinity=False),
    st.floats(0, allow_infinity=False, exclude_min=True, width=32),
    st.floats(0, allow_infinity=False),
)
def test_numbers_survive_their_text(start, duration, value):
    """Every finite number is printed exactly."""
    leaf = NChooseK(GPU, 1, start, duration, value)
    assert parse(format_expression(leaf)).expression == leaf


def test_names_are_printed_instead_of_nodes_and_long_lines_are_broken():
    """A named set is written by its name; lines end at 100 columns where there is a comma."""
    leaf = NChooseK(ALL, 2, 0, 3, 1)
    assert format_expression(leaf, {"all": ALL}) == "nCk(all, 2, 0, 3, 1)"
    expression = Scale(Barrier(Sum((leaf,) * 6), 4.0), 2.5)
    text = format_expression(expression, {"all": ALL}, "job")
    assert max(map(len, text.splitlines())) <= 100
    assert text.startswith("job = scale(\n    barrier(\n")
    assert parse(f"all = {{M[1-4]}}\n{text}").requests["job"] == expression


WORDS = "nCk max( ( ) { } , = + - m1 n[1-3] n[ k= 1 2h nodes busy until slot a {m1} # x"
PIECES = st.one_of(
    st.sampled_from(re.findall(r"\S+", WORDS)).map(lambda word: word + " "),
    st.sampled_from(["a = ", "nCk({m1},1,0,1,1)", '"', "\n"]),
)


@st.composite
def damaged(draw):
    """A good file with some pieces cut out and others put in, or cut short."""
    text = FIGURE_4 + 'x = scale(barrier(min(LnCk(all - {M1, "a b"}, 2, -1, 1h, 2)), 2), s=3)'
    for _ in range(draw(st.integers(1, 3))):
        begin = draw(st.integers(0, len(text)))
        end = draw(st.one_of(st.just(len(text)), st.integers(begin, min(begin + 6, len(text)))))
        text = text[:begin] + draw(st.one_of(st.just(""), PIECES)) + text[end:]
    return text


@settings(max_examples=of_a_series(400, short=100))
@given(
    st.one_of(st.text(max_size=40), st.lists(PIECES, max_size=20).map("".join), damaged()),
)
def test_whatever_the_text_there_is_an_answer(text):
    """No text makes the parser fail otherwise than by errors that have a place in the text."""
    reading = examine(text)
    lines = text.split("\n")
    for error in reading.errors:
        assert 1 <= error.line <= len(lines)
        assert 1 <= error.column <= len(lines[error.line - 1]) + 1


def test_reading_a_file(tmp_path):
    """A file is read as UTF-8; one that cannot be is an error that names it."""
    path = tmp_path / "jobs.strl"
    path.write_text(FIGURE_4)
    assert read(path) == parse(FIGURE_4)
    path.write_text("\ufeff" + FIGURE_4.replace("\n", "\r\n"), newline="")
    assert read(path) == parse(FIGURE_4)
    path.write_bytes(b"\xff\xfe")
    with pytest.raises(InputError, match="not text"):
        read(path)
    with pytest.raises(InputError, match="cannot be read"):
        read(tmp_path)


def test_nothing_asked_for():
    """A file without requests has no expression."""
    with pytest.raises(InputError, match="nothing is asked for"):
        parse("nodes {a}").expression  # noqa: B018 - the property raises


def test_the_documented_examples_can_be_read():
    """What the reference page shows is STRL."""
    page = Path(__file__).parents[2] / "docs" / "reference" / "strl.md"
    file, _ = re.findall(r"```text\n(.*?)```", page.read_text("utf-8"), re.DOTALL)
    assert list(parse(file).requests) == ["job1", "job2", "job3"]
