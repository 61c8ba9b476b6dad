"""Reservations in RDL: text, and the STRL that is derived from them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from foresail.model.errors import InputError
from foresail.model.resources import Resources
from foresail.model.value import DeadlineValue
from foresail.strl.rdl import Atom, Window, derive, format_window, parse_window
from foresail.strl.requests import StartWindow
from foresail.strl.text import format_expression
from foresail.strl.values import SoonerValue

ALL = frozenset({"M1", "M2", "M3", "M4"})
GPU = frozenset({"M1", "M2"})
CONTAINER = Resources(cpus=8.0, memory_bytes=16e9)
SOURCE = "Window(s=0, f=3, Atom(b=<16GB, 8c>, k=2, gang=2, dur=3))"


def text(window, value=None, plan=None, **options):
    expression = derive(
        window,
        value or DeadlineValue(3.0),
        plan or StartWindow(0.0, 96.0, 1.0),
        ALL,
        **options,
    )
    return None if expression is None else format_expression(expression, {"all": ALL, "GPU": GPU})


def test_the_sources_example():
    """Section 4.4: the reservation's text, and exactly the expression printed there."""
    window = parse_window(SOURCE)
    assert window == Window(0.0, 3.0, Atom(CONTAINER, 2, 2, 3.0))
    assert format_window(window) == SOURCE
    assert text(window, preferred=[GPU], slowdown=1.5) == (
        "max(nCk(all, 2, 0, 3, 1), max(nCk(GPU, 2, 0, 2, 1), nCk(GPU, 2, 1, 2, 1)))"
    )


def test_sooner_is_better():
    """H3 with falling values: 1 less a thousandth of the completion (T-5)."""
    value = SoonerValue(DeadlineValue(3.0), 0.0, 1.0, share=0.001)
    assert text(parse_window(SOURCE), value, preferred=[GPU], slowdown=1.5) == (
        "max(nCk(all, 2, 0, 3, 0.997), max(nCk(GPU, 2, 0, 2, 0.998), nCk(GPU, 2, 1, 2, 0.997)))"
    )


def test_the_window_meets_the_plan():
    """Starts lie in the window and in the plan; all containers start at once (T-4)."""
    window = parse_window("Window(4, 12, Atom(<16GB, 8c>, 3, 1, 3))")
    plan = StartWindow(5.0, 2.0, 1.0)
    late = DeadlineValue(12.0)
    assert (
        text(window, late, plan)
        == "max(nCk(all, 3, 5, 3, 1), nCk(all, 3, 6, 3, 1), nCk(all, 3, 7, 3, 1))"
    )
    assert text(window, late, StartWindow(0.0, 4.0, 1.0)) == "nCk(all, 3, 4, 3, 1)"
    assert text(window, late, StartWindow(10.0, 96.0, 1.0)) is None
    assert text(window, late, StartWindow(0.0, 3.0, 1.0)) is None


def test_other_forms():
    """Positional arguments, the source's own brackets, units, line ends, sizes in any order."""
    written = "window(0, 2min, atom(⟨8c, 1.5GiB, 2gpu⟩,\n k=2, gang=1, dur=1m))  # comment"
    request = Resources(8.0, 1.5 * 2**30, 2.0)
    assert parse_window(written) == Window(0.0, 120.0, Atom(request, 2, 1, 60.0))
    assert parse_window("Window(-5, 0, Atom(<1c>, 1, 1, 1))").start_seconds == -5.0


@pytest.mark.parametrize(
    ("written", "column", "expected"),
    [
        ("Atom(<1c>,1,1,1)", 1, "Window"),
        ("Window(0, 0, Atom(<1c>,1,1,1))", 11, "later than the start, 0"),
        ("Window(0, 9, Atom(<1c>,0,1,1))", 24, "at least 1"),
        ("Window(0, 9, Atom(<1c>,2,3,1))", 26, "from 1 to 2"),
        ("Window(0, 9, Atom(<1c>,2,2,0))", 28, "above 0"),
        ("Window(0, 9, Atom(<1c>,2,2))", 27, "',' and dur"),
        ("Window(0, 9, Atom(<1c, 2c>,2,2,1))", 24, "sizes such as 16GB, 8c or 1gpu"),
        ("Window(0, 9, Atom(<1x>,2,2,1))", 20, "sizes such as 16GB, 8c or 1gpu"),
        ("Window(0, 9, Atom(<1c>,1.5,1,1))", 24, "how many"),
        ("Window(0, 9, Atom(<1c>,1,1,1)) more", 32, "the end of the text"),
        ("", 1, "Window"),
    ],
)
def test_errors_have_their_place(written, column, expected):
    """What is wrong is said with line, column and what would do."""
    with pytest.raises(InputError) as caught:
        parse_window(written, "job.rdl")
    assert (caught.value.line, caught.value.column) == (1, column)
    assert caught.value.expected == expected


SIZES = st.one_of(st.just(0.0), st.integers(1, 2**60).map(float), st.floats(0, 1e15))


@given(
    st.builds(Resources, SIZES, SIZES, SIZES),
    st.integers(1, 9),
    st.floats(-1e6, 1e6),
    st.floats(0.001, 1e6),
)
def test_reservations_survive_their_text(request, count, start, duration):
    """Printed and parsed again, a reservation is the same."""
    window = Window(start, start + duration, Atom(request, count, (count + 1) // 2, duration))
    assert parse_window(format_window(window)) == window


def refusal(written):
    """The column of what is wrong with a text of one line; 0 if it can be read."""
    try:
        parse_window(written)
    except InputError as error:
        return error.column
    return 0


@given(st.integers(0, len(SOURCE)), st.text(max_size=5), st.integers(0, 5))
def test_whatever_the_text_there_is_an_answer(begin, put_in, cut_out):
    """A damaged text is read, or refused with line and column; nothing else happens."""
    for rest in ("", SOURCE[begin + cut_out :]):
        assert refusal(SOURCE[:begin] + put_in + rest) is not None


def test_a_slowdown_below_one_is_refused():
    """Preferred nodes are those where a job is faster."""
    with pytest.raises(InputError, match="slowdown"):
        text(parse_window(SOURCE), preferred=[GPU], slowdown=0.5)
