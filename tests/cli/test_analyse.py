"""``foresail analyse``, as a user meets it."""

from __future__ import annotations

import json

import pytest

JOB = "{id} {submit} 5 {run} {cpus} -1 -1 {cpus} 600 -1 {status} {user} 1 {app} -1 -1 -1 -1\n"
PLUGIN = '''
from foresail.analysis.finding import Finding
from foresail.model.registry import register


@register("analysis", "count_jobs")
class CountJobs:
    """Counts."""

    def __init__(self, parameters):
        del parameters

    def examine(self, workload):
        return Finding("count_jobs", "How many?", f"{len(workload)} jobs.", {"jobs": 1.0}, {})
'''


@pytest.fixture
def log(tmp_path):
    """Four days of jobs."""
    rows = (
        JOB.format(
            id=number,
            submit=number * 1000,
            run=50 + number % 9 * 40,
            cpus=1 + number % 4,
            status=int(number % 5 != 0),
            user=number % 3,
            app=number % 7,
        )
        for number in range(1, 350)
    )
    path = tmp_path / "made.swf"
    head = "; MaxProcs: 8\n; UnixStartTime: 1300000000\n; TimeZoneString: Europe/Paris\n"
    path.write_text(head + "".join(rows))
    return path


def test_a_line_per_analysis(foresail, log):
    """Every analysis answers or says what lacks; nothing is wider than a terminal."""
    status, out, _ = foresail("analyse", log)
    assert status == 0
    assert out.startswith("made: 349 jobs in 4 d")
    assert "  job_sizes             Half of the jobs ask for at most 2 cpus" in out
    assert "  representative_months – The log is shorter than two months" in out
    assert "Majority of jobs are short" in out
    assert max(map(len, out.splitlines())) <= 100


def test_several_logs_are_compared(foresail, log, tmp_path):
    """Each log has its lines, and the comparison a column for each, three in a row."""
    paths = [log]
    for number in range(3):
        folder = tmp_path / str(number)
        folder.mkdir()
        paths.append(folder / "made.swf")
        paths[-1].write_text(log.read_text())
    status, out, _ = foresail("analyse", *paths, "--only", "job_sizes")
    assert status == 0
    assert out.count("Half of the jobs ask for at most 2 cpus") == 4
    assert "made (4): 349 jobs" in out
    assert out.count("Majority of jobs are small") == 2
    assert max(map(len, out.splitlines())) <= 100


def test_json_is_for_programs(foresail, log):
    """All scalars, notes and reasons, and the characteristics with their rules."""
    status, out, _ = foresail("analyse", log, "--format", "json")
    assert status == 0
    content = json.loads(out)
    findings = content["logs"][0]["findings"]
    assert findings["job_sizes"]["scalars"]["p50_cpus"] == 2
    assert "unavailable" in findings["representative_months"]
    assert content["characteristics"][1]["logs"]["made"]["verdict"] == "yes"
    assert content["characteristics"][1]["study"]["Google"] == "yes"


def test_report(foresail, log, tmp_path):
    """With a folder: the page and its CSV files, where they are said to be."""
    status, _, err = foresail("analyse", log, "--output", tmp_path / "new" / "report")
    assert status == 0
    assert f"report: {tmp_path / 'new' / 'report' / 'report.html'}" in err
    assert (tmp_path / "new" / "report" / "scalars.csv").exists()


def test_only_what_is_asked(foresail, log):
    """Analyses by name, in the order given, one line each."""
    status, out, _ = foresail("analyse", log, "--only", "tasks_per_job", "--only", "job_sizes")
    assert status == 0
    assert out.index("tasks_per_job") < out.index("job_sizes")
    assert "interarrivals" not in out


def test_filters_and_plugins(foresail, log, tmp_path):
    """Cleaning filters are applied, none by default; analyses of one's own are asked."""
    plugin = tmp_path / "own.py"
    plugin.write_text(PLUGIN)
    asked = ("analyse", log, "--plugin", plugin, "--only", "count_jobs")
    assert "  count_jobs            349 jobs." in foresail(*asked)[1]
    assert (
        "  count_jobs            117 jobs."
        in foresail(*asked, "--filter", "keep_users(users=[1])")[1]
    )


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("--only", "job_size"), "did you mean 'job_sizes'"),
        (("--filter", "replayble"), "did you mean 'replayable'"),
        (("--reader", "nothing"), "unknown reader"),
    ],
    ids=["analysis", "filter", "reader"],
)
def test_wrong_names_are_refused(foresail, log, arguments, told):
    """One line on standard error and exit status 2."""
    status, out, err = foresail("analyse", log, *arguments)
    assert (status, out) == (2, "")
    assert told in err


def test_missing_log(foresail, tmp_path):
    """A log that is not there is named; nothing is written."""
    status, _, err = foresail("analyse", tmp_path / "none.swf", "--output", tmp_path / "out")
    assert status == 2
    assert "none.swf: no such file" in err
    assert not (tmp_path / "out" / "report.html").exists()
