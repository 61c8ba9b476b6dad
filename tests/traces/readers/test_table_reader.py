"""Generic tables through a column mapping."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import polars as pl
import pytest

from foresail.model.errors import InputError
from foresail.traces.reading import read

MAPPING = """
[table]
null = ["NA", "-1"]
processors = 64

[columns]
job_id = "JobID"
submit_seconds = { column = "Submit", time = "%Y-%m-%d %H:%M", zone = "Europe/Prague" }
runtime_seconds = { column = "End", since = "Start", time = "%Y-%m-%d %H:%M" }
requested_seconds = { column = "Limit", unit = "minutes" }
memory_bytes_per_task = { column = "Mem", unit = "GiB", scale = 0.5 }
tasks = "Nodes"
cpus_per_task = { constant = 2 }
status = { column = "State", values = { OK = "completed", BAD = "failed" } }
queue = { constant = "main" }

[features]
application = "App"
"""
ROWS = """JobID,Submit,Start,End,Limit,Mem,Nodes,State,App
a,2020-07-01 12:00,2020-07-01 13:00,2020-07-01 13:30,90,4,2,OK,vasp
b,2020-07-01 12:05,2020-07-01 14:00,2020-07-01 16:00,NA,-1,1,ODD,
"""


@pytest.fixture
def mapping(tmp_path):
    path = tmp_path / "mapping.toml"
    path.write_text(MAPPING)
    return path


def test_csv(tmp_path, mapping):
    """Units, time formats, differences, constants, null markers, values and features."""
    log = tmp_path / "log.csv"
    log.write_text(ROWS)
    workload = read(log, mapping=mapping)
    first, second = workload.jobs.to_dicts()
    noon = datetime(2020, 7, 1, 10, tzinfo=UTC)
    assert workload.meta.origin_unix_seconds == noon.timestamp()
    assert workload.meta.processors == 64
    assert (first["submit_seconds"], second["submit_seconds"]) == (0.0, 300.0)
    assert (first["runtime_seconds"], second["runtime_seconds"]) == (1800.0, 7200.0)
    assert (first["requested_seconds"], second["requested_seconds"]) == (5400.0, None)
    assert (first["memory_bytes_per_task"], second["memory_bytes_per_task"]) == (2.0**31, None)
    assert (first["tasks"], first["cpus_per_task"], first["queue"]) == (2, 2.0, "main")
    assert (first["status"], second["status"]) == ("completed", None)
    assert (first["application"], second["application"]) == ("vasp", None)


def test_parquet(tmp_path):
    """Typed columns: times, durations and numbers come through without a format."""
    noon = datetime(2020, 7, 1, 10, tzinfo=UTC)
    frame = pl.DataFrame(
        {
            "when": [noon + timedelta(minutes=5), noon],
            "long": [timedelta(seconds=1.5), timedelta(hours=1)],
            "who": [7, None],
            "cores": [4, -1],
        }
    )
    frame.write_parquet(tmp_path / "log.parquet")
    (tmp_path / "m.toml").write_text(
        "[columns]\nsubmit_seconds = 'when'\nruntime_seconds = 'long'\nuser = 'who'\n"
        "tasks = 'cores'\n"
    )
    workload = read(tmp_path / "log.parquet", mapping=tmp_path / "m.toml")
    assert workload.jobs["submit_seconds"].to_list() == [0.0, 300.0]
    assert workload.jobs["runtime_seconds"].to_list() == [3600.0, 1.5]
    assert workload.jobs["user"].to_list() == [None, "7"]
    assert workload.jobs["job_id"].to_list() == ["2", "1"]
    assert workload.jobs["tasks"].to_list() == [None, 4]
    assert workload.meta.repairs == {"unknown_for_negative_tasks": 1, "sorted_by_submit": 1}


def test_malformed_times_are_counted(tmp_path, mapping):
    """A row whose time does not follow the format is dropped, or refused with its line."""
    log = tmp_path / "log.csv"
    log.write_text(ROWS.replace("2020-07-01 12:05", "yesterday"))
    kept = read(log, mapping=mapping, strict=False)
    assert kept.meta.repairs == {"dropped_malformed_line": 1}
    with pytest.raises(InputError, match=r"line 3, field 'Submit': .*'yesterday'.*a time like %Y"):
        read(log, mapping=mapping, strict=True)


def test_times_when_clocks_are_changed(tmp_path, mapping):
    """A time that a spring skipped does not exist; of one that an autumn had twice it is the first.

    Clocks in Prague went from 2:00 to 3:00 on 29 March 2020, and from 3:00 to 2:00 on 25 October.
    """
    log = tmp_path / "log.csv"
    log.write_text(ROWS.replace("2020-07-01 12:05", "2020-03-29 02:30"))
    kept = read(log, mapping=mapping, strict=False)
    assert kept.meta.repairs == {"dropped_local_time_that_does_not_exist": 1}
    problem = "line 3, field 'Submit': dropped local time that does not exist .*'2020-03-29 02:30'"
    with pytest.raises(InputError, match=f"{problem}.*clocks in Europe/Prague"):
        read(log, mapping=mapping, strict=True)
    log.write_text(ROWS.replace("2020-07-01 12:05", "2020-10-25 02:30"))
    kept = read(log, mapping=mapping, strict=False)
    assert kept.meta.repairs == {"took_first_of_two_local_times": 1}
    last = kept.meta.origin_unix_seconds + kept.jobs["submit_seconds"][-1]
    assert datetime.fromtimestamp(last, UTC) == datetime(2020, 10, 25, 0, 30, tzinfo=UTC)
    with pytest.raises(InputError, match=r"line 3, .*took first of two .*an offset from UTC"):
        read(log, mapping=mapping, strict=True)


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ('"JobID"', '"JobId"', "field 'JobId': no such column; expected 'JobID', perhaps"),
        ("job_id =", "jobid =", "no such canonical column; expected 'job_id', perhaps"),
        ('"minutes"', '"fortnights"', "unknown unit 'fortnights'"),
        ("[columns]", "[colunms]", "no such section or key; expected 'columns', perhaps"),
        ("{ constant = 2 }", "{ constant = 2, column = 'x' }", "either a column or a constant"),
        ("{ constant = 2 }", "{ constant = 'two' }", "a constant of the wrong type"),
        ("null =", "nul =", "'table.nul': no such section or key; expected 'null', perhaps"),
        ("[table]", "[table", "is not TOML"),
        ("Europe/Prague", "Europe/Atlantis", "time format is unusable"),
        ("application =", "queue =", "a feature has the name of a canonical column"),
    ],
)
def test_mistakes_in_the_mapping(tmp_path, mapping, old, new, words):
    """Absent columns and mistakes in the mapping are refused by name."""
    mapping.write_text(MAPPING.replace(old, new))
    log = tmp_path / "log.csv"
    log.write_text(ROWS)
    with pytest.raises(InputError, match=words):
        read(log, mapping=mapping)


def test_mapping_without_submission(tmp_path, mapping):
    """Submission must be mapped."""
    mapping.write_text("[columns]\nruntime_seconds = 'x'\n")
    (tmp_path / "log.csv").write_text(ROWS)
    with pytest.raises(InputError, match="field 'submit_seconds': a required column"):
        read(tmp_path / "log.csv", mapping=mapping)


def test_damaged_parquet(tmp_path, mapping):
    """A Parquet file that is cut off is refused."""
    path = tmp_path / "log.parquet"
    pl.DataFrame({"JobID": ["a"]}).write_parquet(path)
    path.write_bytes(path.read_bytes()[:-10])
    with pytest.raises(InputError, match="Parquet file is damaged"):
        read(path, mapping=mapping)
    pl.DataFrame({"JobIDs": ["a"]}).write_parquet(path)
    with pytest.raises(InputError, match="expected 'JobIDs', perhaps"):
        read(path, mapping=mapping)


def test_table_needs_a_mapping(tmp_path):
    """Without a mapping no reader claims an unknown table, and `table` says what it needs."""
    (tmp_path / "log.csv").write_text(ROWS.replace("JobID", "Job"))
    with pytest.raises(InputError, match=r"no reader knows this layout.*mapping of columns"):
        read(tmp_path / "log.csv")
    with pytest.raises(InputError, match="needs a column mapping"):
        read(tmp_path / "log.csv", "table")
