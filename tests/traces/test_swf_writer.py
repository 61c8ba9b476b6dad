"""What is written in SWF is read back the same."""

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from foresail.model.errors import InputError
from foresail.traces.generating import generate
from foresail.traces.reading import read
from foresail.traces.swf_writer import write_swf
from foresail.traces.workload import Workload, WorkloadMeta, jobs_table
from foresail_studies.generators.lublin import LublinParameters
from shared import shared


@pytest.mark.parametrize(
    "log",
    [
        "pwa/KTH-SP2-1996-2.swf.gz",
        "pwa/LLNL-Thunder-2007-1.1-cln.swf.gz",
        "metacentrum-wagap-2013/wagap-2013.swf.gz",
    ],
)
def test_real_logs_survive(log, tmp_path):
    """Jobs, header, origin and machine of real logs are the same after writing and reading."""
    first = read(shared(f"traces/{log}"))
    path = tmp_path / "again.swf.zst"
    write_swf(first, path)
    second = read(path)
    assert second.jobs.equals(first.jobs)
    for name in ("processors", "origin_unix_seconds", "time_zone"):
        assert getattr(second.meta, name) == getattr(first.meta, name)
    counts = {"MaxJobs": str(len(first)), "MaxRecords": str(len(first))}
    assert (dict(first.meta.header) | counts).items() <= second.meta.header.items()


@pytest.mark.parametrize("suffix", [".swf", ".swf.gz", ".swf.zst"])
def test_generated_jobs_survive(suffix, tmp_path):
    """Names become numbers, told in the header; all else is the same, in equal bytes each time."""
    log = generate("lublin", LublinParameters(jobs=300, users=5), 1)
    path = tmp_path / f"log{suffix}"
    write_swf(log, path)
    again = read(path)
    names = ["user", "queue", "executable"]
    assert again.jobs.drop(names).equals(log.jobs.drop(names))
    for name in names:
        assert again.jobs[name].rank("dense").n_unique() == log.jobs[name].n_unique()
        pairs = pl.DataFrame({"old": log.jobs[name], "new": again.jobs[name]}).unique()
        assert len(pairs) == log.jobs[name].n_unique()
    assert f"user 1 is {log.jobs['user'][0]}" in again.meta.header["Note"]
    assert again.meta.processors == 128
    assert [file.name for file in tmp_path.iterdir()] == [path.name]
    before = path.read_bytes()
    write_swf(log, path)
    assert path.read_bytes() == before


seconds = st.none() | st.floats(0, 1e9, allow_subnormal=False)
limits = st.none() | st.floats(1e-3, 1e9)


@given(
    rows=st.lists(st.tuples(st.floats(0, 4e8), seconds, limits, st.integers(1, 10**6)), min_size=1)
)
def test_any_times_survive(tmp_path_factory, rows):
    """Times need not be whole: what is written is read back to the last bit."""
    submit, runtime, requested, tasks = zip(*rows, strict=True)
    jobs = jobs_table(
        {
            "job_id": [str(n) for n in range(len(rows))],
            "submit_seconds": submit,
            "runtime_seconds": pl.Series(runtime, dtype=pl.Float64),
            "requested_seconds": pl.Series(requested, dtype=pl.Float64),
            "tasks": tasks,
        }
    )
    path = tmp_path_factory.mktemp("any") / "log.swf"
    write_swf(Workload(jobs, WorkloadMeta("made", "made")), path)
    assert read(path).jobs.equals(jobs)


def test_ids_that_are_no_numbers_are_numbered_anew(tmp_path):
    """Jobs get new numbers and dependencies follow them; fractions of a cpu are rounded up."""
    jobs = jobs_table(
        {
            "job_id": ["first", "second", "007"],
            "submit_seconds": [0.0, 1.0, 2.0],
            "runtime_seconds": [1.0, None, 2.0],
            "tasks": [3, 1, 1],
            "cpus_per_task": [0.5, 1.0, 2.0],
            "status": ["cancelled", "failed", "unknown"],
            "after_job_id": [None, "first", "gone"],
        }
    )
    path = tmp_path / "log.swf"
    write_swf(Workload(jobs, WorkloadMeta("made", "made", processors=4)), path)
    again = read(path).jobs
    assert again["job_id"].to_list() == ["1", "2", "3"]
    assert again["after_job_id"].to_list() == [None, "1", None]
    assert again["tasks"].to_list() == [2, 1, 2]
    assert again["status"].to_list() == ["cancelled", "failed", None]
    assert again["runtime_seconds"].to_list() == [1.0, None, 2.0]


def test_another_name_is_refused(tmp_path):
    """The ending says what is written, so another is an error."""
    log = generate("lublin", LublinParameters(jobs=3), 1)
    with pytest.raises(InputError, match=r"\.swf\.gz"):
        write_swf(log, tmp_path / "log.txt")


def test_a_file_that_cannot_be_written_leaves_nothing(tmp_path):
    """A file in the way of the folder is a clear error."""
    (tmp_path / "file").write_text("")
    log = generate("lublin", LublinParameters(jobs=3), 1)
    with pytest.raises(InputError, match="cannot be written"):
        write_swf(log, tmp_path / "file" / "log.swf")
    assert (tmp_path / "file").read_text() == ""
