"""Errors in the input, as they come from other processes."""

import pickle

import pytest

from foresail.model.errors import InputError, UnknownNameError


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
