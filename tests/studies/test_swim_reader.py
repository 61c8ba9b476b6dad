"""Reader of SWIM: counts, and what is unknown."""

import pytest

from checks.read_files import examples_of
from foresail.model.registry import find
from foresail.traces.reading import read
from shared import shared


def example(tmp_path, name):
    """The example of a reader, read."""
    (shown,) = examples_of(find("reader", name))
    return read(shown.write(tmp_path))


def test_swim_knows_no_durations(tmp_path):
    """Submission and bytes are known; tasks and runtime are null."""
    workload = example(tmp_path, "swim")
    assert workload.meta.reader == "swim"
    assert workload.jobs["submit_seconds"].to_list() == [49.0, 101.0]
    assert workload.jobs["runtime_seconds"].null_count() == 2
    assert workload.jobs["tasks"].null_count() == 2
    assert workload.jobs["shuffle_bytes"].to_list() == ["2339561", "0"]


COUNTS = {
    "swim-facebook/FB-2009_samples_24_times_1hr_0.tsv.gz": ("swim", 5894, {}),
    "swim-facebook/FB-2009_samples_24_times_1hr_1.tsv.gz": ("swim", 6638, {}),
    "swim-facebook/FB-2010_samples_24_times_1hr_0.tsv.gz": ("swim", 24442, {}),
}


@pytest.mark.parametrize("name", COUNTS)
def test_shared_logs(name):
    """The right reader, all jobs, the counted repairs."""
    reader, jobs, repairs = COUNTS[name]
    workload = read(shared(f"traces/{name}"))
    assert workload.meta.reader == reader
    assert len(workload) == jobs
    assert workload.meta.repairs == repairs
