"""Jobs as a table: what Slurm's letters say of each."""

import pytest

from foresail.cli._service import print_jobs


@pytest.mark.parametrize(
    ("because", "letters"),
    [("its time limit of 1 min was over", "TO"), ("it held more memory than it may have", "OOM")],
)
def test_what_outgrew_its_memory_is_told_from_what_was_out_of_time(capsys, because, letters):
    job = {"job_id": "1", "name": "n", "user": "ann", "cpus": 1, "state": "limit"}
    print_jobs([job | {"because": because}], with_headings=False)
    assert f" {letters} " in capsys.readouterr().out
