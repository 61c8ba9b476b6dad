"""Reservations: what cannot be one."""

from __future__ import annotations

import pytest

from foresail.model.errors import InputError
from foresail.model.resources import Resources
from foresail.strl.rdl import Atom, Window

CONTAINER = Resources(cpus=8.0, memory_bytes=16e9)


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
