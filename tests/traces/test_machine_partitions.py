"""How many processors belong to which partition, as far as it can be known."""

import polars as pl
import pytest

from foresail.model.errors import InputError
from foresail.model.registry import NoParameters
from foresail.simulator.truth import real_runtimes
from foresail.traces import schema
from foresail.traces.filters.dropping import drop_wider_than_machine
from foresail.traces.partitions import (
    divided,
    in_one_pool,
    largest_partitions,
    named_partitions,
    parse_partitions,
    with_partitions,
)
from foresail.traces.workload import Workload, WorkloadMeta, jobs_table


def log(*jobs, processors=16, nodes=None):
    """Jobs as (partition, submission, recorded wait, runtime, cpus)."""
    names = ("partition", "submit_seconds", "recorded_wait_seconds", "runtime_seconds", "tasks")
    columns = dict(zip(names, zip(*jobs, strict=True), strict=True))
    kinds = {name: schema.JOBS[name] for name in names}
    table = pl.DataFrame(columns, schema=kinds).to_dict(as_series=True)
    ids = {"job_id": [str(number) for number in range(len(jobs))]}
    meta = WorkloadMeta("made", "hand", processors)
    return Workload(jobs_table(ids | table), meta, nodes)


FULL = [("A", 0, 0, 100, 8), ("A", 1, 99, 100, 8)]
LOOSE = [("B", 3, 0, 100, 2), ("B", 4, 0, 100, 2)]


def test_what_is_left_belongs_to_partitions_that_were_never_full():
    """A job waited while A held 8 of 16; B held 4 and none waited: it has the other 8."""
    told = divided(log(*FULL, *LOOSE))
    assert told.partitions == {"A": 8, "B": 8}
    assert "estimated from the largest use at once: A 8, B 8 processors" in told.partitions_said
    assert told.processors == 16


def test_full_partitions_have_no_more_than_they_held():
    """Both were full: the four processors that neither ever held are in none, and that is said."""
    told = divided(log(*FULL, ("B", 0, 0, 50, 4), ("B", 1, 49, 50, 4)))
    assert told.partitions == {"A": 8, "B": 4}
    assert told.processors == 12
    assert "4 in none" in told.partitions_said


def test_a_wait_that_ends_before_the_largest_use_says_nothing():
    """Who waited waited for something else: the partition was not full then."""
    waited = [("A", 0, 5, 10, 2), ("A", 20, 0, 10, 8)]
    assert divided(log(*waited, *LOOSE)).partitions == {"A": 10, "B": 6}


def test_ends_and_starts_of_one_moment_are_no_use_together():
    """A job that starts as another ends has its processors."""
    assert divided(log(*FULL, *LOOSE, processors=12)).partitions == {"A": 8, "B": 4}


def test_partitions_that_held_more_than_there_is_share_some():
    """Nobody knows which: one pool, said."""
    told = divided(log(*FULL, ("B", 0, 0, 100, 9)))
    assert not told.partitions
    assert "come to 17 of 16 processors, so they share some" in told.partitions_said
    assert told.processors == 16


@pytest.mark.parametrize(
    ("jobs", "said"),
    [
        ([*FULL, ("B", 0, None, 100, 2)], "no starts are known that show the size of B"),
        ([*FULL, ("A,B", 0, 0, 100, 2)], "no starts are known that show the size of B"),
        ([*FULL, *LOOSE, (None, 0, 0, 100, 9)], "wider than each that they may run in (A 8, B 8)"),
        ([*FULL, (None, 0, 0, 100, 2)], "2 jobs of 3 name A, the others none"),
    ],
)
def test_one_pool_is_said(jobs, said):
    """What cannot be told is not guessed, nor merged in silence."""
    told = divided(log(*jobs))
    assert not told.partitions
    assert said in told.partitions_said


@pytest.mark.parametrize("name", ["A", None])
def test_one_partition_is_the_machine(name):
    """A log that names one partition, or none, is as ever, and there is nothing to say."""
    told = divided(log((name, 0, 0, 10, 4), (name, 1, 9, 10, 16)))
    assert (told.partitions, told.partitions_said, told.processors) == ({}, "", 16)


def test_a_wider_job_of_unknown_start_counts():
    """B is as large as its widest job, though only a narrow one is known to have started."""
    told = divided(log(*FULL, ("B", 0, 0, 100, 2), ("B", 0, None, 100, 6)))
    assert told.partitions == {"A": 8, "B": 8}
    assert divided(log(*FULL, ("B", 0, 0, 9, 2), ("B", 0, None, 9, 8))).partitions["B"] == 8


NODES = pl.DataFrame(
    {"node": ["a", "b", "c"], "partition": ["A", "A,B", "B"], "count": [2, 1, None], "cpus": 4.0},
    schema_overrides={"cpus": pl.Float64, "count": pl.Int64},
)


def test_nodes_tell():
    """A row of several nodes counts for each; a node may belong to two partitions."""
    table = schema.laid_out(NODES, schema.NODES)
    told = divided(log(*FULL, *LOOSE, nodes=table))
    assert told.partitions == {"A": 8, "A,B": 4, "B": 4}
    assert "as the nodes have them: A 8, A+B 4, B 4" in told.partitions_said


def test_nodes_of_another_machine_do_not():
    """With another number of processors than the nodes have, theirs cannot be those of the pool."""
    table = schema.laid_out(NODES, schema.NODES)
    told = divided(log(*FULL, *LOOSE, nodes=table, processors=20))
    assert not told.partitions
    assert "the nodes have 16 processors, and the machine has 20" in told.partitions_said


def test_nodes_that_know_no_partition_of_the_jobs_say_nothing_of_them():
    """They are estimated then, as without nodes, and never merged in silence."""
    other = NODES.with_columns(pl.Series("partition", [None, "cpu", "gpu"]))
    told = divided(log(*FULL, *LOOSE, nodes=schema.laid_out(other, schema.NODES)))
    assert told.partitions == {"A": 8, "B": 8}
    one = NODES.with_columns(partition=pl.lit("A"))
    told = divided(log(*FULL, *LOOSE, nodes=schema.laid_out(one, schema.NODES)))
    assert not told.partitions
    assert "all nodes are of A, and jobs name others (B)" in told.partitions_said


def test_jobs_wider_than_their_partition_of_nodes_are_dropped_or_refused():
    """Partitions are not there yet when the filter runs; a replay would never end."""
    table = schema.laid_out(NODES, schema.NODES)
    wide = log(*FULL, ("A", 0, 0, 9, 13), ("A,B", 0, 0, 9, 12), nodes=table)
    kept, dropped = drop_wider_than_machine(NoParameters())(wide)
    assert (kept.jobs["job_id"].to_list(), dropped) == (["0", "3", "1"], 1)
    with pytest.raises(InputError, match="the first is job '2'"):
        real_runtimes(divided(wide))


def test_given_partitions():
    """They are the machine's; those that belong to both are written with a plus."""
    given = parse_partitions("A=8, A+B=4,B=4")
    assert given == {"A": 8, "A,B": 4, "B": 4}
    told = with_partitions(log(*FULL, *LOOSE, processors=None), given)
    assert told.processors == 16
    assert told.partitions_said == "Partitions as given: A 8, A+B 4, B 4 processors."
    assert divided(told) is told


@pytest.mark.parametrize(
    "text", ["", "A", "A=", "A=0", "A=-1", "A=1.5", "=8", "A=8,A=8", "A=8,,B=8"]
)
def test_what_is_no_partition_is_refused(text):
    """With what is expected."""
    with pytest.raises(InputError, match="--partitions"):
        parse_partitions(text)


def test_partitions_of_another_machine_are_refused():
    """They have to be all of its processors, and all that jobs name."""
    with pytest.raises(InputError, match="17 processors in all"):
        with_partitions(log(*FULL, *LOOSE), {"A": 8, "B": 9})
    with pytest.raises(InputError, match="jobs name what --partitions does not have: B"):
        with_partitions(log(*FULL, *LOOSE), {"A": 16})


def test_jobs_wider_than_their_partition_are_dropped():
    """As those that are wider than the machine are; one of two has to be wide enough."""
    jobs = [("A", 0, 0, 9, 9), ("B", 0, 0, 9, 7), ("A,B", 0, 0, 9, 9), (None, 0, 0, 9, 12)]
    told = with_partitions(log(*jobs), {"A": 6, "A,B": 2, "B": 8})
    assert told.jobs.select(largest_partitions(told)).to_series().to_list() == [8, 10, 10, 10]
    kept, dropped = drop_wider_than_machine(NoParameters())(told)
    assert (kept.jobs["job_id"].to_list(), dropped) == (["1", "2"], 2)


def test_jobs_of_several_tell_no_size():
    """Where they ran is not recorded; nor is it of those that name none, which is said."""
    told = divided(log(*FULL, *LOOSE, ("A,B", 0, 0, 100, 8), (None, 0, 0, 9, 1)))
    assert told.partitions == {"A": 8, "B": 8}
    assert "jobs that name none run in any" in told.partitions_said


def test_names():
    """A job that names several counts for each."""
    assert named_partitions(log(*FULL, ("B, A", 0, 0, 1, 1), (None, 0, 0, 1, 1))) == {
        "A": 3,
        "B": 1,
    }
    said = in_one_pool(log(*FULL), "--one-pool").partitions_said
    assert said == "All partitions are simulated as one pool of processors: --one-pool."
