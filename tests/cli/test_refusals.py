"""What cannot be is refused with a sentence: numbers beyond belief, open quotes, full disks."""

from __future__ import annotations

from pathlib import Path

import numba
import numpy as np
import polars as pl
import pytest
from typer.testing import CliRunner

from foresail.cli.simulate import app as simulate
from foresail.cli.trace import app as trace
from foresail.kernels.compile import kernel
from foresail.model.cluster import Cluster
from foresail.model.errors import InputError
from foresail.record.log import JsonLinesLog
from foresail.record.records import Manifest
from foresail.traces.reading import read

LINE = "{} {} -1 {} 2 -1 -1 2 200 -1 1 1 1 -1 1 -1 -1 -1\n"


@pytest.fixture
def log(tmp_path):
    path = tmp_path / "log.swf"
    path.write_text("; MaxProcs: 4\n" + LINE.format(1, 0, 100) + LINE.format(2, 10, 100))
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
    said = refused(simulate, log)
    assert "field 'runtime_seconds': 1 jobs cannot be replayed, the first is job '1'" in said
    assert "three centuries" in said


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
