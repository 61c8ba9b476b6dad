"""Reservations: what cannot be one, and the STRL that is derived from them."""

from __future__ import annotations

import pytest

from foresail.model.errors import InputError
from foresail.model.resources import Resources
from foresail.model.value import DeadlineValue
from foresail.strl.rdl import Atom, Window, derive
from foresail.strl.requests import StartWindow
from printed import format_expression

ALL = frozenset({"M1", "M2", "M3", "M4"})
GPU = frozenset({"M1", "M2"})
CONTAINER = Resources(cpus=8.0, memory_bytes=16e9)
WINDOW = Window(0.0, 3.0, Atom(CONTAINER, 2, 2, 3.0))


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
    """Section 4.4: exactly the expression printed there."""
    assert text(WINDOW, preferred=[GPU], slowdown=1.5) == (
        "max(nCk(all, 2, 0, 3, 1), max(nCk(GPU, 2, 0, 2, 1), nCk(GPU, 2, 1, 2, 1)))"
    )


def test_the_window_meets_the_plan():
    """Starts lie in the window and in the plan; all containers start at once (T-4)."""
    window = Window(4.0, 12.0, Atom(CONTAINER, 3, 1, 3.0))
    plan = StartWindow(5.0, 2.0, 1.0)
    late = DeadlineValue(12.0)
    assert (
        text(window, late, plan)
        == "max(nCk(all, 3, 5, 3, 1), nCk(all, 3, 6, 3, 1), nCk(all, 3, 7, 3, 1))"
    )
    assert text(window, late, StartWindow(0.0, 4.0, 1.0)) == "nCk(all, 3, 4, 3, 1)"
    assert text(window, late, StartWindow(10.0, 96.0, 1.0)) is None
    assert text(window, late, StartWindow(0.0, 3.0, 1.0)) is None


def test_a_slowdown_below_one_is_refused():
    """Preferred nodes are those where a job is faster."""
    with pytest.raises(InputError, match="slowdown"):
        text(WINDOW, preferred=[GPU], slowdown=0.5)


@pytest.mark.parametrize(
    ("start", "finish", "count", "gang", "duration", "expected"),
    [
        (0.0, 0.0, 1, 1, 1.0, "later than the start, 0"),
        (0.0, 9.0, 0, 1, 1.0, "at least 1"),
        (0.0, 9.0, 2, 3, 1.0, "from 1 to 2"),
        (0.0, 9.0, 2, 2, 0.0, "above 0"),
    ],
)
def test_what_is_no_reservation(start, finish, count, gang, duration, expected):
    """What cannot be is refused, with what would do."""
    with pytest.raises(InputError) as caught:
        Window(start, finish, Atom(CONTAINER, count, gang, duration))
    assert caught.value.expected == expected
