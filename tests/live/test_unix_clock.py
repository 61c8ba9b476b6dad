"""The daemon's clock: a wall clock that is set back makes it stand still, and never go back."""

from __future__ import annotations

from foresail.live import daemon
from foresail.live.daemon import UnixClock


def test_time_stands_still_until_the_wall_clock_has_caught_up(monkeypatch):
    told = iter([100.0, 160.0, 90.0, 120.0, 161.0, 1e6])
    monkeypatch.setattr(daemon.time, "time", lambda: next(told))
    clock = UnixClock(110.0)
    assert [clock.now() for _ in range(6)] == [110.0, 160.0, 160.0, 160.0, 161.0, 1e6]
