"""What cannot be is refused with a sentence: numbers beyond belief, open quotes, full disks."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numba
import numpy as np
import polars as pl
import pytest
from typer.testing import CliRunner

from foresail.cli.cloud import app as cloud
from foresail.cli.db import app as db
from foresail.cli.main import app_of
from foresail.cli.predict import app as predict
from foresail.cli.trace import app as trace
from foresail.kernels.compile import kernel
from foresail.live.run_directory import RunHistory
from foresail.model.cluster import Cluster
from foresail.model.errors import InputError
from foresail.model.whole_files import write_whole
from foresail.record.log_text import JsonLinesLog
from foresail.record.records import Manifest
from foresail.traces.folder import write_folder
from foresail.traces.parquet import write_whole_parquet
from foresail.traces.reading import read

compare = app_of("compare")
simulate = app_of("simulate")

LINE = "{} {} -1 {} 2 -1 -1 2 200 -1 1 1 1 -1 1 -1 -1 -1\n"
FILTERS = ("keep_first_weeks(weeks=1)", "drop_no_runtime")


@pytest.fixture
def log(tmp_path):
    path = tmp_path / "log.swf"
    path.write_text("; MaxProcs: 4\n" + LINE.format(1, 0, 100) + LINE.format(2, 10, 100))
    return path


@pytest.fixture
def device(tmp_path):
    """What is neither a file nor a folder."""
    path = tmp_path / "device"
    os.mkfifo(path)
    return path


def refused(app, *arguments: object) -> str:
    error = CliRunner().invoke(app, [str(each) for each in arguments]).exception
    assert isinstance(error, InputError), error
    return str(error)


def test_processors_and_runtimes_beyond_belief(log):
    """More processors than any machine has, and jobs that run for longer than machines exist."""
    said = refused(simulate, log, "--processors", 99999999999999999999)
    assert "no machine has as many processors (found 99999999999999999999)" in said
    log.write_text("; MaxProcs: 4\n" + LINE.format(1, 0, 10**18))
    assert "no jobs to replay after filters" in refused(simulate, log)
    said = refused(simulate, log, "--strict")
    assert "log.swf, line 2, field 'runtime_seconds': unknown for impossible runtime" in said
    assert "three centuries" in said


@pytest.mark.parametrize("command", ["inspect", "validate", "convert"])
def test_machines_beyond_belief_are_not_described(log, tmp_path, command):
    """Whether an option or a header says so."""
    more = (tmp_path / "folder",) if command == "convert" else ()
    said = refused(trace, command, log, *more, "--processors", 99999999999999999999)
    assert "log.swf, field 'processors': no machine has as many processors" in said
    log.write_text(log.read_text().replace("MaxProcs: 4", "MaxProcs: 40000000000"))
    said = refused(trace, command, log, *more)
    assert "(found 40000000000); expected 1 to 1,000,000,000" in said


@pytest.mark.parametrize("processors", [-5, 0, 10**20])
def test_folders_of_machines_beyond_belief(log, tmp_path, processors):
    """As whatever wrote the folder left them."""
    write_folder(read(log).with_meta(processors=processors), tmp_path / "folder")
    said = refused(trace, "inspect", tmp_path / "folder")
    assert f"'processors': no machine has as many processors (found {processors})" in said


@pytest.mark.parametrize(
    ("generator", "setting"),
    [
        ("lublin", "processors"),
        ("lublin", "jobs"),
        ("university", "processors"),
        ("slearn", "slots"),
        ("gs_het", "nodes"),
    ],
)
def test_nothing_is_generated_beyond_belief(tmp_path, generator, setting):
    """What counts something has to be a number that can be counted."""
    given = f"{setting}=99999999999999999999"
    said = refused(trace, "generate", generator, "--set", given, "-o", tmp_path / "folder")
    assert f"field '{setting}': out of range (found 99999999999999999999); expected at most" in said
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("command", ["advise", "buy", "green"])
@pytest.mark.parametrize("runtime", [4 * 10**9, 10**10])
def test_logs_of_more_hours_than_memory_holds(log, tmp_path, command, runtime):
    """They are planned hour by hour: a job that runs for a century is named instead."""
    log.write_text(log.read_text() + LINE.format(3, 20, runtime))
    carbon = tmp_path / "carbon.csv"
    carbon.write_text("hours,grams_per_kwh\n" + "".join(f"{hour},100\n" for hour in range(24)))
    more = ("--intensity", carbon, "--repeat", "daily") if command == "green" else ()
    said = refused(cloud, command, log, *more)
    assert "log.swf, field 'runtime_beyond_the_log': 1 job ran for more than a year" in said
    assert f"(found 'job 3, runtime_seconds = {float(runtime)}')" in said


def test_submissions_of_more_hours_than_memory_holds(log):
    """As where one of them is in another unit."""
    log.write_text(log.read_text() + LINE.format(3, 10**14, 100))
    said = refused(cloud, "buy", log)
    assert "field 'times': jobs are submitted after the year 2100" in said
    assert "(found 'job 3, submit_seconds = 100000000000000.0')" in said


@pytest.mark.parametrize(
    ("option", "field", "many"),
    [
        ("--processors", "processors", 10**9),
        ("--owned", "--owned", 10**9),
        ("--owned", "--owned", 99999999999999999999),
    ],
)
def test_more_nodes_than_can_be_simulated(log, option, field, many):
    """What stated them is named: the log or an option."""
    said = refused(cloud, "advise", log, option, many)
    assert f"field '{field}': more machines than can be simulated (found {many}); " in said
    assert "expected at most 100,000,000 cores" in said


@pytest.mark.parametrize(
    ("app", "command", "policy"),
    [
        (simulate, [], "easy"),
        (simulate, [], "slearn"),
        (cloud, ["advise"], None),
        (cloud, ["buy"], None),
    ],
)
def test_where_all_jobs_went(log, app, command, policy):
    """An error about no jobs names the filters that left none."""
    log.write_text(log.read_text().replace(" 100 2 ", " -1 2 "))
    filters = [each for name in FILTERS for each in ("--filter", name)]
    said = refused(app, *command, log, *filters, *(("--policy", policy) if policy else ()))
    assert "log.swf: no job" in said
    assert "after filters that dropped or changed jobs: drop_no_runtime 2; expected" in said


@pytest.mark.parametrize("events", [[], ["--cycle", 30]])
def test_jobs_of_unknown_width_are_not_replayed(log, events):
    """They would wait for ever."""
    log.write_text(log.read_text().replace(" 2 -1 -1 2 ", " -1 -1 -1 -1 "))
    said = refused(simulate, log, "--filter", "drop_no_runtime", *events)
    assert "field 'cpus': 2 jobs cannot be replayed, the first is job '1'" in said
    assert "the filter drop_no_processors" in said


@pytest.mark.parametrize("strict", [None, True])
def test_an_open_quote_names_its_line(tmp_path, strict):
    """All lines behind it would be one field of one row, and lost as one."""
    path = tmp_path / "log.csv"
    rows = [f"{n},1.0,4" for n in range(300)]
    rows[249] = '249,"1.0,4'
    path.write_text("arrival_time,length,cpus\n" + "\n".join(rows) + "\n")
    with pytest.raises(InputError, match=r"line 251: a quote is not closed.*249,.*--lenient"):
        read(path, "gaia", strict=strict)
    assert len(read(path, "gaia", strict=False)) == 249


def test_a_full_disk_ends_a_conversion(log, tmp_path, monkeypatch):
    """As Polars tells of it; nothing is left behind."""

    def full(*_: object, **__: object) -> None:
        raise pl.exceptions.ComputeError("parquet: No space left on device (os error 28)")

    monkeypatch.setattr(pl.LazyFrame, "sink_parquet", full)
    said = refused(trace, "convert", log, tmp_path / "folder")
    assert "folder: cannot be written: parquet: No space left on device" in said
    assert [each.name for each in tmp_path.iterdir()] == ["log.swf"]


@pytest.mark.parametrize("command", [["convert"], ["sample", "--fraction", 1], ["generate"]])
def test_a_device_is_no_folder(log, device, command):
    """Nor does a folder take its place."""
    at = ["lublin", "--output", device] if command == ["generate"] else [log, device]
    said = refused(trace, command[0], *at, *command[1:])
    assert "device: something that is no workload is there already" in said
    assert device.is_fifo()


def test_a_device_is_no_file(log, device):
    """A file that takes its place when it is whole would be the end of it."""
    with pytest.raises(InputError, match=r"device: is no file; expected a new file, or one to"):
        write_whole(device, b"")
    said = refused(predict, "train", log, "--predictor", "recent", "--output", device)
    assert "device: is no file" in said
    with pytest.raises(InputError, match=r"device: is no file"):
        write_whole_parquet(pl.DataFrame(), device)
    swf = device.rename(device.with_suffix(".swf"))
    assert "device.swf: is no file" in refused(trace, "sample", log, swf, "--fraction", 1)
    assert swf.is_fifo()


def test_a_session_is_exported_into_a_folder(tmp_path):
    """Not into a file."""
    (tmp_path / "file").touch()
    (tmp_path / "run").mkdir()
    said = refused(db, "export", tmp_path / "run", "--output", tmp_path / "file")
    assert "file: the folder cannot be made: File exists" in said


def test_endless_history_is_read_in_part():
    """As of a device that never ends."""
    assert RunHistory(Path("/dev/zero"), print).latest() == []


def test_a_full_disk_leaves_no_part_of_a_report(log, tmp_path, monkeypatch):
    """The disk is full once the page, its tables and the first schedule are written."""
    folder, write = tmp_path / "out", pl.DataFrame.write_parquet

    def full(table: pl.DataFrame, path: Path, **more: object) -> None:
        if "schedule-2" in path.name:
            raise OSError(28, "No space left on device")
        write(table, path, **more)

    monkeypatch.setattr(pl.DataFrame, "write_parquet", full)
    said = refused(compare, log, "--with", "easy", "--with", "fcfs", "--output", folder)
    assert f"{folder}/schedule-2.parquet: cannot be written: No space left on device" in said
    assert not folder.exists()


def test_a_full_disk_ends_an_event_log(tmp_path):
    """The file is named, and closed."""
    manifest = Manifest("easy", Cluster.of_processors(4))
    with JsonLinesLog(tmp_path / "events.jsonl", manifest) as log:
        log._file.close()
        log._file = Path("/dev/full").open("wb")  # noqa: SIM115 - the log closes it
        log.append(manifest)
        with pytest.raises(InputError, match=r"events.jsonl: cannot be written: No space left"):
            log.commit()
        assert log._file.closed


def test_kernels_without_a_folder_to_write_are_compiled_for_the_run(monkeypatch):
    """As Numba says where neither the package nor a home can be written."""
    usual = numba.njit

    def without_folder(*, cache: bool = False, **options: object):
        if cache:

            def fails(_: object) -> None:
                raise RuntimeError("cannot cache function: no locator available")

            return fails
        return usual(**options)

    monkeypatch.setattr(numba, "njit", without_folder)

    def twice(values):
        return values * 2.0

    assert kernel(twice)(np.ones(2)).tolist() == [2.0, 2.0]


@pytest.mark.parametrize(
    "command",
    [
        ["serve", "/dev/full"],
        ["run", "/dev/zero"],
        ["simulate", "/dev/zero"],
        ["simulate", "LOG", "--mapping", "/dev/zero"],
        ["explain", "/dev/zero"],
        ["replay", "/dev/zero"],
        ["predict", "show", "/dev/zero"],
        ["campaign", "run", "/dev/zero", "--with", "easy", "--output", "RESULTS"],
    ],
    ids=" ".join,
)
def test_a_device_is_not_read(command, log, tmp_path):
    """One that never ends would fill the memory; none is what is asked for."""
    words = [{"LOG": str(log), "RESULTS": str(tmp_path)}.get(each, each) for each in command]
    called = [Path(sys.executable).with_name("foresail"), *words]
    found = subprocess.run(called, capture_output=True, text=True, check=False, timeout=60)
    assert found.returncode == 2
    assert "is a device; expected a file, or a pipe" in found.stderr


@pytest.mark.parametrize("command", [["policies"], ["simulate", "LOG", "--policy", "easy"]])
def test_a_full_disk_behind_standard_output_is_a_sentence(command, log):
    """Once, and with a status, not with a traceback."""
    words = [str(log) if each == "LOG" else each for each in command]
    called = [Path(sys.executable).with_name("foresail"), *words]
    with Path("/dev/full").open("w") as full:
        found = subprocess.run(called, stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    assert found.returncode == 2
    assert "foresail: standard output: cannot be written (No space left on device)" in found.stderr
    assert "Traceback" not in found.stderr


def test_a_standard_output_that_is_closed_is_not_needed():
    """As where a script has closed it: nothing to say, and nothing wrong."""
    called = ["sh", "-c", f"{Path(sys.executable).with_name('foresail')} policies >&-"]
    found = subprocess.run(called, stderr=subprocess.PIPE, text=True, check=False)
    said = [line for line in found.stderr.splitlines() if not line.startswith("working")]
    assert (found.returncode, said) == (0, [])  # but that it works, on a slow machine
