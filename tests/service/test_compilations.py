"""What is compiled is remarked while it is, and no longer."""

import numba
import pytest

from foresail.service.metrics import CompileWatch


@pytest.fixture
def watch():
    watch = CompileWatch()
    watch.listen()
    yield watch
    watch.stop()


def test_what_is_compiled_is_remarked_while_it_is(watch, monkeypatch):
    """A kernel that calls another is one thing that is done; what is compiled already is none."""
    seen = []
    begun = watch.on_start
    monkeypatch.setattr(watch, "on_start", lambda event: (begun(event), seen.append(watch.remark)))
    inner = numba.njit(lambda number: number + 1)
    outer = numba.njit(lambda number: inner(number) * 2)
    assert outer(1) == 4
    assert seen
    assert all("being compiled" in each for each in seen)
    assert watch.remark == ""
    seen.clear()
    assert outer(2) == 6
    assert seen == []
