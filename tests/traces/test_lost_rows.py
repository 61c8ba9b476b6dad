"""Rows that are no jobs: how many a log may lose, and what is said of each cause."""

from __future__ import annotations

import pytest
from typer.testing import CliRunner

from foresail.cli.trace import app
from foresail.control.policy import parse_policy
from foresail.model.errors import InputError
from foresail.reports.comparison.sentences import situation
from foresail.reports.comparison.view import view_of
from foresail.scenario.running import run_scenario
from foresail.scenario.scenario import Scenario
from foresail.traces.folder import convert, read_folder
from foresail.traces.reading import read
from foresail.traces.schedule import read_schedule, write_schedule
from foresail.traces.validation import validate
from foresail.traces.workload import LostRows

HEADER = "arrival_time,length,cpus\n"


def log(folder, good, *bad):
    """A GAIA sample of so many jobs, and then lines that are none."""
    path = folder / "log.csv"
    path.write_text(HEADER + "".join(f"{n},1.5,4\n" for n in range(good)) + "\n".join(bad) + "\n")
    return path


def test_a_hundredth_may_be_lost_and_no_more(tmp_path):
    """One row of a hundred is dropped and counted; of two, each cause is told, with an example."""
    kept = read(log(tmp_path, 99, "x,1.5,4"))
    assert kept.meta.lost == (
        LostRows("dropped_malformed_line", 1, "a number in 'arrival_time'", "line 101: 'x'"),
    )
    ragged = log(tmp_path, 98, "x,1.5,4", "7,8")
    words = (
        r"no job can be made of 2 of 100 rows: 1 without 3 fields "
        r"\(the first is line 101: '2 fields'\); 1 without a number in 'arrival_time' "
        r"\(.*line 100: 'x'\).*--lenient"
    )
    for reading in (read, lambda path: convert(path, tmp_path / "folder")):
        with pytest.raises(InputError, match=words):
            reading(ragged)
    assert not (tmp_path / "folder").exists()
    assert len(read(ragged, strict=False)) == 98


def test_a_ragged_table_is_refused(tmp_path):
    """Two rows of three are no jobs."""
    with pytest.raises(InputError, match="of 2 of 3 rows: 2 without 3 fields"):
        read(log(tmp_path, 1, "2,3", "3,4,5,6"))


@pytest.mark.parametrize("strict", [None, False])
def test_a_table_without_a_single_job_says_why(tmp_path, strict):
    """Leniently, too: the file is not empty, but a time limit was taken for a number, say."""
    with pytest.raises(InputError, match=r"2 of 2 rows.*'length'.*line 2: '01:00:00'"):
        read(log(tmp_path, 0, "1,01:00:00,4", "2,02:00:00,4"), strict=strict)


def test_what_a_quote_that_is_not_closed_swallows_is_counted_by_lines(tmp_path):
    """Leniently read, all lines after it are lost, not one record; validation ends with 2."""
    open_quote = log(tmp_path, 10, '"7,1.5,4', *["8,1.5,4"] * 20)
    found = read(open_quote, strict=False)
    assert len(found) == 10
    assert found.meta.lost == (
        LostRows("dropped_malformed_line", 21, "3 fields", "line 12: '1 fields in 21 lines'"),
    )
    result = CliRunner().invoke(app, ["validate", str(open_quote)])
    assert (result.exit_code, "dropped_malformed_line: 21 " in result.stdout) == (2, True)


def test_validation_and_conversion_say_each_cause(tmp_path):
    """A finding a cause, with its example and a remedy; a folder remembers it."""
    ragged = log(tmp_path, 10, "x,1.5,4", "y,1.5,4", "7,8")
    meta = convert(ragged, tmp_path / "folder", strict=False)
    assert sum(each.rows for each in meta.lost) == 3
    assert read_folder(tmp_path / "folder").meta.lost == meta.lost
    found = [each for each in validate(read(ragged, strict=False)).findings if each.example]
    assert [(each.count, each.example) for each in found] == [
        (1, "line 14: '2 fields'"),
        (2, "line 12: 'x'"),
    ]
    assert all("--lenient" in each.remedy for each in found)


@pytest.mark.parametrize(
    ("bad", "option", "status"),
    [(1, None, 0), (2, None, 2), (2, "--lenient", 0), (1, "--strict", 2)],
)
def test_validate_ends_with_an_error_where_too_many_are_lost(tmp_path, bad, option, status):
    """More than a hundredth is one, unless asked for; strictly, any finding is."""
    path = log(tmp_path, 100 - bad, *["x,1.5,4"] * bad)
    found = CliRunner().invoke(app, ["validate", str(path), *([option] if option else [])])
    assert found.exit_code == status, found.output
    assert f"dropped_malformed_line: {bad} (first: line {102 - bad}: 'x')" in found.stdout
    assert "correct the source or its mapping" in found.stdout
    assert "none needed" not in found.stdout


def test_what_was_lost_is_on_the_page_and_kept_with_the_schedule(tmp_path):
    """A report made again from schedule tables says so, too."""
    policy = parse_policy("easy")
    lossy = read(log(tmp_path, 99, "x,1.5,4"), processors=8)
    write_schedule(run_scenario(Scenario(lossy, policy)), tmp_path / "schedule.parquet")
    kept = read_schedule(tmp_path / "schedule.parquet")
    assert "No jobs: 1 row, such as line 101: 'x'." in situation(view_of([kept]))
    whole = read(log(tmp_path, 99), processors=8)
    assert "No jobs" not in situation(view_of([run_scenario(Scenario(whole, policy))]))
