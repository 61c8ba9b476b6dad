"""The mapping that the page on conversion has for Slurm reads what ``sacct`` prints."""

import re
from pathlib import Path

import pytest

from foresail.traces.reading import read

PAGE = Path(__file__).resolve().parents[2] / "docs" / "tasks" / "convert-a-log.md"
SACCT = """\
JobIDRaw|User|Partition|Submit|Start|End|NCPUS|TimelimitRaw|State
1|ann|gpu|2024-03-31T01:59:00|2024-03-31T01:59:30|2024-03-31T03:29:30|4|60|COMPLETED
2||cpu|2024-03-31T04:00:00|2024-03-31T04:00:00|2024-03-31T04:00:00|8|UNLIMITED|CANCELLED by 1001
3|bob|cpu|2024-03-31T04:01:00|Unknown|Unknown|1|Partition_Limit|PENDING
"""


def test_the_mapping_for_slurm_reads_what_sacct_prints(tmp_path):
    """Across the hour that summer time takes, without a user, a limit, or a start."""
    mapping, log = tmp_path / "slurm.toml", tmp_path / "slurm.txt"
    (shown,) = re.findall(r"```toml\n(.*?)```", PAGE.read_text("utf-8"), re.DOTALL)
    mapping.write_text(shown)
    log.write_text(SACCT)
    jobs = read(log, mapping=mapping).jobs
    assert jobs["runtime_seconds"].to_list() == [pytest.approx(1800.0), 0.0, None]
    assert jobs["recorded_wait_seconds"].to_list() == [30.0, 0.0, None]
    assert jobs["requested_seconds"].to_list() == [3600.0, None, None]
    assert jobs["tasks"].to_list() == [4, 8, 1]
    assert jobs["user"].to_list() == ["ann", None, "bob"]
    assert jobs["status"].to_list() == ["completed", None, None]
