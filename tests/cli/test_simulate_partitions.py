"""Partitions of a log, as ``simulate`` and ``compare`` have them."""

import json
from dataclasses import replace

import polars as pl
import pytest

from foresail.traces import schema
from foresail.traces.folder import write_folder
from foresail.traces.reading import read
from shared import shared

LOG = """\
id,submit,start,end,cpus,part,limit
1,0,0,1000,8,A,1000
2,1,1000,2000,8,A,1000
3,2,2000,3000,8,A,1000
4,3,3,103,2,B,100
5,4,4,104,2,B,100
"""
MAPPING = """\
[columns]
job_id = "id"
submit_seconds = "submit"
recorded_wait_seconds = {column = "start", since = "submit"}
runtime_seconds = {column = "end", since = "start"}
requested_seconds = "limit"
tasks = "cpus"
partition = "part"
"""


@pytest.fixture
def arguments(tmp_path):
    (tmp_path / "log.csv").write_text(LOG)
    (tmp_path / "log.toml").write_text(MAPPING)
    return tmp_path / "log.csv", "--mapping", tmp_path / "log.toml"


def told(foresail, *arguments):
    status, out, _ = foresail("simulate", *arguments, "--format", "json")
    assert status == 0
    return json.loads(out)


def test_an_idle_partition_waits_for_nobody(foresail, arguments):
    """B's jobs start at once though A is full, and A's jobs have no use of what is idle in B."""
    answer = told(foresail, *arguments, "--processors", 16)
    (policy,) = answer["policies"]
    assert policy["average_bounded_slowdown"] == pytest.approx(1.5994)
    assert policy["loss_of_capacity"] == policy["avoidable_idle_share"] == 0.0
    a, b = policy["partitions"]
    assert (a["partition"], a["processors"], a["jobs"], a["max_wait_seconds"]) == ("A", 8, 3, 1998)
    assert (b["partition"], b["processors"], b["jobs"], b["max_wait_seconds"]) == ("B", 8, 2, 0)
    assert (a["steady_utilization"], b["steady_utilization"]) == pytest.approx((1.0, 400 / 24000))
    assert "estimated from the largest use at once: A 8, B 8 processors" in answer["partitions"]


def test_the_case_itself(foresail):
    """The file of the case, as it is."""
    folder = shared("cases/accounting/part.csv").parent
    given = (folder / "part.csv", "--mapping", folder / "part.toml", "--processors", 16)
    (policy,) = told(foresail, *given)["policies"]
    assert round(policy["average_bounded_slowdown"], 2) == 1.60
    assert policy["partitions"][1]["max_wait_seconds"] == 0.0


def test_one_pool_is_asked_for_and_said(foresail, arguments, tmp_path):
    """In the terminal, the report and the JSON."""
    asked = (*arguments, "--processors", 16, "--one-pool")
    answer = told(foresail, *asked)
    assert answer["policies"][0]["partitions"] == []
    assert answer["partitions"].endswith("one pool of processors: --one-pool.")
    status, out, _ = foresail("simulate", *asked, "--output", tmp_path / "out")
    assert status == 0
    assert "one pool of processors: --one-pool." in " ".join(out.split())
    assert "one pool of processors: --one-pool." in (tmp_path / "out/report.html").read_text()


def test_partitions_are_shown(foresail, arguments, tmp_path):
    """A table of them and how they are known, also in the report; what was recorded is beside."""
    given = (*arguments, "--partitions", "A=8,B=2", "--with", "easy", "--with", "fcfs")
    status, out, _ = foresail("compare", *given, "--output", tmp_path / "out")
    assert status == 0
    assert "Partitions as given: A 8, B 2 processors." in out
    assert "5 jobs on 10 processors" in out
    for row in ("easy: B", "fcfs: A", "as recorded"):
        assert row in out
    page = (tmp_path / "out/report.html").read_text()
    assert "Partitions as given: A 8, B 2 processors." in page
    assert "as recorded" in page


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--partitions", "A=8"], "jobs name what --partitions does not have: B"),
        (["--partitions", "A=8,B=9", "--processors", "16"], "17 processors in all"),
        (["--partitions", "A=8,B=8", "--one-pool"], "not together with --one-pool"),
        (["--partitions", "A=8,B=8", "--on-nodes"], "partitions are as the nodes have them"),
        (
            ["--one-pool", "--on-nodes", "--processors", "16"],
            "partitions are as the nodes have them",
        ),
        ([], "the number of processors is unknown"),
        (["--partitions", "A=8,B=8", "--policy", "las"], "start tasks apart know none"),
    ],
)
def test_what_does_not_fit_is_refused(foresail, arguments, options, said):
    """With status 2 and in words."""
    status, _, err = foresail("simulate", *arguments, *options)
    assert status == 2
    assert said in err


@pytest.mark.parametrize(
    ("nodes", "said"),
    [
        ([("n1", "A*", 8), ("n2", "B", 8)], "Partitions as the nodes have them."),
        ([("n1", "A", 8), ("n2", "C", 8)], "as the nodes have them; jobs that name others (B) run"),
        ([("n1", "X", 8), ("n2", "Y", 8)], "one pool: they are of X, Y, and jobs name A, B."),
        ([("n1", None, 16)], "one pool: they are of all, and jobs name A, B."),
    ],
)
def test_what_nodes_make_of_partitions_is_said(foresail, arguments, tmp_path, nodes, said):
    """Also where they have none that jobs name."""
    log, _, mapping = arguments
    workload = replace(
        read(log, mapping=mapping, processors=16),
        nodes=pl.DataFrame(
            [{"node": n, "partition": p, "cpus": c, "count": 1} for n, p, c in nodes],
            schema=schema.NODES,
        ),
    )
    write_folder(workload, tmp_path / "folder")
    answer = told(foresail, tmp_path / "folder", "--on-nodes")
    assert said in answer["partitions"]
    (policy,) = answer["policies"]
    assert isinstance(policy["processors"], float)
    slowdown = 5.19 if "one pool" in said else 1.60
    if "others" not in said:
        assert policy["average_bounded_slowdown"] == pytest.approx(slowdown, abs=0.005)


def test_processors_are_a_number_of_one_type(foresail, arguments):
    """By the compiled replay as by the event engine."""
    (policy,) = told(foresail, *arguments, "--processors", 16)["policies"]
    assert isinstance(policy["processors"], float)
