"""Where figures come from, and what is odd about the log: said, in JSON and on the page."""

from __future__ import annotations

import json
import re

import pytest

from foresail import __version__

LINE = "{id} {submit} 0 {run} 2 -1 -1 2 7200 -1 1 {user} 1 -1 -1 -1 -1 -1\n"


@pytest.fixture
def log(tmp_path):
    """A log of an hour a job, of which one has no runtime and the users of half are unknown."""
    rows = [
        LINE.format(id=at, submit=at * 3600, run=-1 if at == 3 else 1800, user=-1 if at % 2 else 7)
        for at in range(1, 21)
    ]
    path = tmp_path / "log.swf"
    path.write_text("; MaxProcs: 4\n" + "".join(rows) + "no job\n")
    return path


@pytest.mark.parametrize("command", ["simulate", "compare"])
def test_said_everywhere(foresail, log, tmp_path, command):
    """What was dropped is told by cause with an example, and what is odd before the figures."""
    folder = tmp_path / "told"
    arguments = ("--with", "fcfs", "--format", "json", "--output", folder, "--lenient")
    status, out, err = foresail(command, log, *arguments)
    assert status == 0, err
    assert "odd: of 19 jobs, the user of 9 is unknown" not in err, "less than half"
    told = json.loads(out)
    assert told["findings"] == []
    provenance = told["provenance"]
    assert (provenance["foresail"], provenance["reader"]) == (__version__, "swf")
    assert provenance["jobs"] == 19
    by_cause = {each["cause"]: (each["rows"], each["example"]) for each in provenance["treated"]}
    assert by_cause == {
        "dropped_malformed_line: expected at least 18 fields": (1, "line 22: 2"),
        "drop_no_runtime": (1, "job 3"),
    }
    page = (folder / "report.html").read_text("utf-8")
    assert "id='provenance'" in page
    cells = re.sub(r"<[^>]*>", " ", page[page.index("id='provenance'") :]).split()
    assert " ".join(cells).count("drop no runtime job 3 1 ") == 1
    assert f"Foresail {__version__}, reader swf, log.swf" in page


@pytest.mark.parametrize("command", ["simulate", "compare"])
def test_odd_is_said_first(foresail, log, tmp_path, command):
    """A log of which half of the users are unknown is told of on all three."""
    log.write_text(
        log.read_text().replace("no job\n", LINE.format(id=99, submit=9, run=9, user=-1))
    )
    folder = tmp_path / "told"
    status, out, err = foresail(
        command, log, "--with", "fcfs", "--format", "json", "--output", folder
    )
    assert status == 0, err
    words = "of 20 jobs, the user of 10 is unknown"
    assert f"odd: {words} (the first is job 99)" in err
    (found,) = json.loads(out)["findings"]
    assert (found["severity"], found["name"], found["count"]) == ("odd", "unknown_users", 10)
    page = (folder / "report.html").read_text("utf-8")
    assert page.index(words) < page.index("id='numbers'")
    assert foresail(command, log, "--with", "fcfs", "--strict")[0] == 2


@pytest.mark.parametrize(
    "command", [("simulate",), ("compare",), ("predict", "evaluate"), ("trace", "validate")]
)
def test_impossible_is_refused(foresail, log, command):
    """A run of decades in a log of a day is refused with an example, and validate says the same."""
    log.write_text(LINE.format(id=1, submit=0, run=1.7e9, user=1) + log.read_text())
    status, out, err = foresail(*command, log, "--lenient")
    words = "1 job ran for more than a year, and for longer than there were submissions"
    assert status == 2 or command == ("trace", "validate")
    if command == ("trace", "validate"):
        assert "impossible: runtime_beyond_the_log: 1 (first: job 1, runtime_seconds = 1" in out
        assert foresail(*command, log)[0] == 2
    else:
        assert "runtime_beyond_the_log" in err
        assert "job 1, runtime_seconds" in err
        assert not out
    assert words in out + err


def test_inspect_says_what_a_replay_would(foresail, log):
    """What is odd stands beneath the facts, and a burst's load is said to say little."""
    log.write_text(log.read_text().replace(" 7 1 -1", " -1 1 -1", 3).replace("no job\n", ""))
    status, out, _ = foresail("trace", "inspect", log)
    assert status == 0
    assert "odd: of 19 jobs, the user of 12 is unknown" in out
    (found,) = json.loads(foresail("trace", "inspect", log, "--format", "json")[1])["findings"]
    assert found["name"] == "unknown_users"
    assert "which says little" not in out
    log.write_text(
        "; MaxProcs: 4\n"
        + "".join(LINE.format(id=at, submit=at, run=900, user=1) for at in range(9))
    )
    assert "(of a burst of 8 s, which says little)" in foresail("trace", "inspect", log)[1]
