"""The reader of Google's cluster-usage trace, on small folders of its layout."""

from __future__ import annotations

import csv
import gzip
import io
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from numpy.testing import assert_allclose

from foresail.analysis.finding import Finding
from foresail.model.errors import InputError
from foresail.traces import schema
from foresail.traces.folder import convert, read_folder, write_folder
from foresail.traces.reading import choose, read
from foresail.traces.workload import Workload
from foresail_studies.analyses.cpu_volatility import CpuVolatilityParameters, cpu_volatility

AFTER = 2**63 - 1
SECOND = 1_000_000

# job, event, second, user, class, name, logical name
JOB_EVENTS = [
    ("900", "submit", 0, "ann", 2, "run-7", "web"),
    ("900", "schedule", 0, "ann", 2, "run-7", "web"),
    ("100", "submit", 700, "bob", 0, "run-8", "sort"),
    ("100", "schedule", 705, "bob", 0, "run-8", "sort"),
    ("200", "submit", 800, "bob", 1, None, "sort"),
    ("200", "kill", 830, "bob", 1, None, "sort"),
    ("100", "finish", 1005, "bob", 0, "run-8", "sort"),
    ("300", "submit", 1100, "eve", 0, "run-9", "fit"),
    ("300", "schedule", 1110, "eve", 0, "run-9", "fit"),
    ("300", "fail", 1150, "eve", 0, "run-9", "fit"),
]
# job, task, event, second, priority, cpus, memory
TASK_EVENTS = [
    ("900", 0, "submit", 0, 9, 0.5, 0.25),
    ("900", 0, "schedule", 0, 9, 0.5, 0.25),
    ("100", 0, "submit", 700, 1, 0.0625, 0.125),
    ("100", 1, "submit", 700, 1, 0.0625, 0.125),
    ("100", 0, "schedule", 705, 1, 0.0625, 0.125),
    ("100", 1, "schedule", 710, 1, 0.0625, 0.125),
    ("100", 1, "evict", 720, 1, 0.0625, 0.125),
    ("100", 1, "submit", 720, 1, 0.0625, 0.125),
    ("100", 1, "schedule", 755, 1, 0.125, 0.125),
    ("100", 0, "finish", 805, 1, 0.0625, 0.125),
    ("100", 1, "finish", 1005, 1, 0.125, 0.125),
]
# job, task, start, end, average cpus and memory, maximum cpus and memory, sampled cpus
USAGE = [
    ("100", 0, 705, 805, 0.03125, 0.0625, 0.0625, 0.125, 0.03125),
    ("100", 1, 755, 900, 0.0625, 0.0625, 0.125, 0.125, 0.0),
    ("100", 1, 900, 1005, 0.125, 0.0625, 0.125, 0.125, 0.25),
    ("900", 0, 600, 900, 0.25, None, 0.5, None, 0.5),
]
CODES_2011 = ["submit", "schedule", "evict", "fail", "finish", "kill", "lost"]


def _line(fields: list[Any]) -> str:
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerow("" if f is None else f for f in fields)
    return text.getvalue()


def _write_2011(folder: Path, *, columns: int = 20, extra: str = "") -> Path:
    jobs = [
        _line([at * SECOND, None, job, CODES_2011.index(event), user, kind, name, logical])
        for job, event, at, user, kind, name, logical in JOB_EVENTS
    ]
    tasks = [
        _line(
            [
                *(at * SECOND, None, job, task, 7, CODES_2011.index(event), "u", 0, priority),
                *(cpus, memory, 0.001, 0),
            ]
        )
        for job, task, event, at, priority, cpus, memory in TASK_EVENTS
    ]
    usage = [
        _line(
            [
                *(start * SECOND, end * SECOND, job, task, 7, cpu, memory, 0.1, 0, 0, top_memory),
                *(0.01, 0, top_cpu, 0.02, 1.5, 0.01, 1, 0, sampled),
            ][:columns]
        )
        for job, task, start, end, cpu, memory, top_cpu, top_memory, sampled in USAGE
    ]
    half = len(jobs) // 2
    _gzipped(folder / "job_events" / "part-00000-of-00500.csv.gz", "".join(jobs[:half]))
    _gzipped(folder / "job_events" / "part-00001-of-00500.csv.gz", "".join(jobs[half:]) + extra)
    _gzipped(folder / "task_events" / "part-00000-of-00500.csv.gz", "".join(tasks))
    _gzipped(folder / "task_usage" / "part-00000-of-00500.csv.gz", "".join(usage))
    return folder


def _gzipped(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(gzip.compress(text.encode()))


@pytest.fixture
def workload(tmp_path: Path) -> Workload:
    """A small cluster."""
    return read(_write_2011(tmp_path / "trace"))


def _column(table: pl.DataFrame | None, name: str, order: list[str]) -> list[Any]:
    assert table is not None
    return table.sort(order)[name].to_list()


def test_jobs(workload):
    """Submission, wait, runtime and status from the events; before the trace is unknown."""
    jobs = workload.jobs
    assert jobs["job_id"].to_list() == ["900", "100", "200", "300"]
    assert jobs["submit_seconds"].to_list() == [0.0, 700.0, 800.0, 1100.0]
    assert jobs["recorded_wait_seconds"].to_list() == [None, 5.0, None, 10.0]
    assert jobs["runtime_seconds"].to_list() == [None, 300.0, None, 40.0]
    assert jobs["status"].to_list() == ["unknown", "completed", "cancelled", "failed"]
    assert jobs["tasks"].to_list() == [1, 2, 1, 1]
    assert jobs["cpus_per_task"].to_list() == [8.0, 1.5, None, None]
    assert jobs["memory_bytes_per_task"].to_list() == [0.25, 0.125, None, None]


def test_features(workload):
    """The logical name is the executable; name, class and priority are features."""
    jobs = workload.jobs
    assert jobs["user"].to_list() == ["ann", "bob", "bob", "eve"]
    assert jobs["executable"].to_list() == ["web", "sort", "sort", "fit"]
    assert jobs["job_name"].to_list() == ["run-7", "run-8", None, "run-9"]
    assert jobs["scheduling_class"].to_list() == ["2", "0", "1", "0"]
    assert jobs["priority"].to_list() == ["9", "1", None, None]


def test_tasks(workload):
    """A task's runtime is its last attempt's, its request the last; still running is unknown."""
    order = ["job_id", "task"]
    assert _column(workload.tasks, "job_id", order) == ["100", "100", "900"]
    assert _column(workload.tasks, "runtime_seconds", order) == [100.0, 250.0, None]
    assert _column(workload.tasks, "cpus", order) == [1.0, 2.0, 8.0]
    assert _column(workload.tasks, "memory_bytes", order) == [0.125, 0.125, 0.25]


def test_usage(workload):
    """Periods with averages, maxima and the sampled second in cores; memory as a share."""
    order = ["job_id", "task", "start_seconds"]
    assert _column(workload.usage, "start_seconds", order) == [705.0, 755.0, 900.0, 600.0]
    assert _column(workload.usage, "end_seconds", order) == [805.0, 900.0, 1005.0, 900.0]
    assert _column(workload.usage, "average_cpus", order) == [0.5, 1.0, 2.0, 4.0]
    assert _column(workload.usage, "maximum_cpus", order) == [1.0, 2.0, 2.0, 8.0]
    assert _column(workload.usage, "sampled_cpus", order) == [0.5, 0.0, 4.0, 8.0]
    assert _column(workload.usage, "average_memory_bytes", order) == [0.0625] * 3 + [None]
    assert workload.meta.header["memory_unit"] == "share of the largest machine"
    used = workload.jobs.filter(pl.col("job_id") == "100").row(0, named=True)
    spent = (0.5 * 100 + 1.0 * 145 + 2.0 * 105) / 2
    assert_allclose(used["used_cpu_seconds"] * used["cpus_per_task"], spent)
    assert_allclose(used["used_memory_bytes"], 0.0625)


def test_tables_have_the_canonical_columns(workload, tmp_path):
    """All tables are canonical and survive a folder."""
    for name, kind in schema.JOBS.items():
        assert workload.jobs.schema[name] == kind
    assert workload.tasks.schema == pl.Schema(schema.TASKS)
    assert workload.usage.schema == pl.Schema(schema.USAGE)
    write_folder(workload, tmp_path / "canonical")
    again = read_folder(tmp_path / "canonical")
    assert again.usage is not None
    assert again.usage.equals(workload.usage)
    assert again.jobs.equals(workload.jobs)


def test_times_of_the_trace(workload):
    """Second 600 is 19:00 of 2011-05-01 in New York."""
    assert workload.meta.origin_unix_seconds == 1_304_290_800.0 - 600.0


def test_cores_of_a_machine_are_an_option(tmp_path):
    """Normalised cpus become cores of the machine that the user says."""
    workload = read(_write_2011(tmp_path), cores_per_machine=32.0)
    assert workload.jobs["cpus_per_task"].to_list()[0] == 16.0


def test_first_release_has_no_samples(tmp_path):
    """Parts of 19 columns are read; there are no sampled seconds then."""
    workload = read(_write_2011(tmp_path, columns=19))
    assert workload.usage is not None
    assert workload.usage.height == 4
    assert workload.usage["sampled_cpus"].null_count() == 4


def test_events_after_the_end_of_the_trace(tmp_path):
    """A job that ends after the trace has an unknown runtime."""
    tail = "".join(
        _line([at, None, "700", code, "u", 0, "n", "l"])
        for at, code in ((2000 * SECOND, 0), (2001 * SECOND, 1), (AFTER, 4))
    )
    jobs = read(_write_2011(tmp_path, extra=tail)).jobs
    last = jobs.row(-1, named=True)
    assert last["job_id"] == "700"
    assert last["recorded_wait_seconds"] == 1.0
    assert last["runtime_seconds"] is None


def test_jobs_alone(tmp_path):
    """With job events alone there are jobs of one task, no tasks and no usage."""
    folder = _write_2011(tmp_path)
    for table in ("task_events", "task_usage"):
        for part in (folder / table).iterdir():
            part.unlink()
    workload = read(folder)
    assert workload.tasks is None
    assert workload.usage is None
    assert workload.jobs["tasks"].to_list() == [1, 1, 1, 1]


def test_usage_without_task_events(tmp_path):
    """The number of tasks comes from the usage then; requests are unknown."""
    folder = _write_2011(tmp_path)
    (folder / "task_events" / "part-00000-of-00500.csv.gz").unlink()
    jobs = read(folder).jobs
    assert jobs["tasks"].to_list() == [1, 2, 1, 1]
    assert jobs["cpus_per_task"].null_count() == 4
    assert jobs["used_cpu_seconds"].null_count() == 4


@pytest.mark.parametrize(
    ("bad", "repair"),
    [
        ("this,is no;job at\tall\n", "dropped_malformed_line"),
        ("soon,,700,0,u,0,n,l\n", "dropped_malformed_line"),
        ("2000000000,,,0,u,0,n,l\n", "dropped_malformed_line"),
        ("2000000000,,700,42,u,0,n,l\n", "dropped_unknown_event"),
    ],
    ids=["fields", "time", "job", "event"],
)
def test_bad_lines(tmp_path, bad, repair):
    """Lines that are no events are dropped and counted, and an error when strict."""
    folder = _write_2011(tmp_path, extra=bad)
    workload = read(folder)
    assert len(workload) == 4
    assert workload.meta.repairs == {repair: 1}
    with pytest.raises(InputError, match=r"part-00001-of-00500.csv.gz, line 6"):
        read(folder, strict=True)


def test_folders_that_are_no_trace(tmp_path):
    """A folder without events: InputError."""
    with pytest.raises(InputError, match="no reader knows"):
        read(tmp_path)
    with pytest.raises(InputError, match="events"):
        read(tmp_path, "google_2011")


def test_the_layout_has_one_reader(tmp_path):
    """The folder is told apart from a canonical one made of it."""
    assert choose(_write_2011(tmp_path / "a"))[0] == "google_2011"
    convert(tmp_path / "a", tmp_path / "c")
    assert choose(tmp_path / "c")[0] == "canonical"
    assert read(tmp_path / "c").jobs.equals(read(tmp_path / "a").jobs)


def test_volatility_of_a_google_trace(workload):
    """The chapter's analysis runs on what the readers give: services with samples are left."""
    study = cpu_volatility(CpuVolatilityParameters(coverage=0.5))
    finding = study.examine(workload)
    assert isinstance(finding, Finding)
    assert finding.scalars["tasks"] == 1
    assert finding.tables["filters"]["jobs"].to_list() == [2, 1, 1, 1]


def test_cores_must_be_cores():
    """A machine without cores is refused."""
    with pytest.raises(InputError, match="cores_per_machine"):
        choose(Path(__file__).parent, "google_2011", cores_per_machine=0.0)
