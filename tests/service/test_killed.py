"""A service killed at random moments loses no job, runs none twice, and reports none wrongly."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from databases import postgresql, program
from killing import Victim, free_port, kill_again_and_again
from long_series import of_a_series


@pytest.mark.parametrize("policy", ["easy,recent,incremental", "foresail"])
def test_kills_under_load(tmp_path, policy):
    """Under a policy that keeps nothing, and that compares with another schedule."""
    judge(Victim(tmp_path, free_port(), policy), of_a_series(20, short=5))


@pytest.mark.skipif(program("initdb") is None, reason="no PostgreSQL on this machine")
def test_kills_beside_postgresql(tmp_path):
    with TemporaryDirectory() as folder, postgresql(Path(folder)) as address:
        judge(Victim(tmp_path, free_port(), database=address), of_a_series(20, short=5))


def judge(victim, kills):
    found = kill_again_and_again(victim, kills, seed=5)
    assert found.faults == []
    assert found.kills == kills
    assert len(found.accepted) > kills
    assert found.held
