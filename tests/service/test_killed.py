"""A service killed at random moments loses no job, runs none twice, and reports none wrongly."""

from __future__ import annotations

from killing import free_port, kill_again_and_again


def test_twenty_kills_under_load(tmp_path):
    found = kill_again_and_again(tmp_path, free_port(), kills=20, seed=5)
    assert found.faults == []
    assert found.kills == 20
    assert len(found.accepted) > found.kills
    assert found.held
