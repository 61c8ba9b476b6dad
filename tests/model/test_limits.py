"""Limits of fields are refused by name; errors come whole from other processes."""

import math
import pickle
from dataclasses import dataclass

import pytest

from foresail.model import errors as limits
from foresail.model.errors import InputError, UnknownNameError
from foresail_studies.study import require_each_positive


@dataclass(frozen=True)
class Settings:
    """Fields of several kinds."""

    count: float | None = 1
    share: float | None = 0.5
    steps: tuple[float, ...] = (1.0, 2.0)
    part: str = "run"


def check(settings):
    """All kinds of limits."""
    limits.require_at_least(settings, 1, "count")
    limits.require_positive(settings, "count")
    limits.require_share(settings, "share")
    limits.require_each_at_least(settings, 0, "steps")
    require_each_positive(settings, "steps")
    limits.require_choice(settings, part=("run", "history"))


@pytest.mark.parametrize(
    "settings",
    [
        Settings(),
        Settings(None, None),
        Settings(1.0, 0.0),
        Settings(2, 1.0),
        Settings(part="history"),
    ],
)
def test_what_is_within_passes(settings):
    """Limits themselves are within; None is no number to be out of range."""
    check(settings)


@pytest.mark.parametrize(
    ("settings", "name", "expected"),
    [
        (Settings(count=0.99), "count", "finite, 1 or more"),
        (Settings(count=math.inf), "count", "finite, 1 or more"),
        (Settings(count=math.nan), "count", "finite, 1 or more"),
        (Settings(share=-0.01), "share", "from 0 to 1"),
        (Settings(share=1.01), "share", "from 0 to 1"),
        (Settings(steps=()), "steps", "one or more, each finite and 0 or more"),
        (Settings(steps=(1.0, -1.0)), "steps", "one or more, each finite and 0 or more"),
        (Settings(steps=(0.0, 1.0)), "steps", "one or more, each finite and above 0"),
        (Settings(part="rest"), "part", "run or history"),
    ],
)
def test_what_is_beyond_is_named(settings, name, expected):
    """Field, value and what would do."""
    with pytest.raises(InputError, match="out of range") as refused:
        check(settings)
    error = refused.value
    assert (error.field, error.expected) == (name, expected)
    assert error.value is getattr(settings, name)


@pytest.mark.parametrize("count", [0.0, -1.0, math.inf, math.nan])
def test_above_0(count):
    """0 is not."""
    with pytest.raises(InputError, match="above 0"):
        limits.require_positive(Settings(count), "count")


@pytest.mark.parametrize(
    "error",
    [
        InputError("no number", source="a.swf", line=3, field="cpus", value="x", expected="one"),
        UnknownNameError("engine", "event", ("event-engine", "compiled-replay")),
    ],
    ids=lambda each: type(each).__name__,
)
def test_errors_come_whole_from_another_process(error: Exception) -> None:
    """A pool of processes takes one that does not for a worker that died."""
    again = pickle.loads(pickle.dumps(error))
    assert (type(again), str(again), vars(again)) == (type(error), str(error), vars(error))
