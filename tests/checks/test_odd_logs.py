"""Odd logs: each is refused, or its answer is one that can be; true ones are read as they are."""

from __future__ import annotations

import pytest

from checks.odd_logs import odd_log, wrong_answers
from long_series import of_a_series

PARTS = 4
LOGS = of_a_series(10_000, short=300)


@pytest.mark.parametrize("part", range(PARTS))
def test_odd_logs(tmp_path, part):
    """No answer is wrong in a way that can be told, and none is anything but an answer."""
    for number in range(part, LOGS, PARTS):
        found = list(wrong_answers(number, tmp_path))
        assert not found, f"log {number}: {odd_log(number).ways}"
