"""What a shared node was used for: sums over its tasks, and what is said of them."""

from __future__ import annotations

import polars as pl
import pytest

from foresail.model.cluster import Node, Resources
from foresail.model.errors import InputError
from foresail.reports.figure import Figure, MissingFigure
from foresail.traces.schedule import use_file
from foresail_studies.node_use import node_figure, node_use, write_node
from foresail_studies.use_record import USE, read_use

GIB = 2.0**30
NODE = Node("n0", Resources(4.0, 10 * GIB, 0), {})


def use(*rows):
    """Rows (seconds, what, run, cpus needed, cpus given, GiB) of node n0, and one of another."""
    table = [
        (seconds, what, "n0", "a", None, run, run, needed, given, memory * GIB)
        for seconds, what, run, needed, given, memory in rows
    ]
    elsewhere = (0.0, "changed", "n1", "a", "main", 9, 9, 1.0, 1.0, GIB)
    return pl.DataFrame([elsewhere, *table], schema=USE, orient="row")


SHORT = use(
    (0.0, "changed", 0, 3.0, 3.0, 4.0),
    (100.0, "changed", 1, 3.0, 3.0, 5.0),
    (100.0, "throttled", 0, 3.0, 2.0, 4.0),
    (100.0, "throttled", 1, 3.0, 2.0, 5.0),
    (200.0, "evicted", 1, 3.0, 2.0, 5.0),
    (200.0, "released", 0, 3.0, 3.0, 4.0),
    (400.0, "completed", 0, 3.0, 3.0, 4.0),
)


def test_use_is_the_sum_over_tasks():
    """The last word of an instant counts; what has gone uses nothing; other nodes do not matter."""
    steps = node_use(SHORT, "n0")
    assert steps["seconds"].to_list() == [0.0, 100.0, 200.0, 400.0]
    assert steps["cpus_needed"].to_list() == [3.0, 6.0, 3.0, 0.0]
    assert steps["cpus_given"].to_list() == [3.0, 4.0, 3.0, 0.0]
    assert (steps["memory_bytes"] / GIB).to_list() == [4.0, 9.0, 4.0, 0.0]
    assert steps["evicted"].to_list() == [0, 0, 1, 0]


def test_throttling_and_evictions_are_told_and_marked(tmp_path):
    """How long, by how much, how many; the page stands alone, with its numbers beside it."""
    figure = node_figure(SHORT, NODE)
    assert isinstance(figure, Figure)
    assert figure.findings == [
        "81.2 % of 4 cpus were used over 7 min; tasks were throttled for 100 s, by up to 33.3 % of "
        "what they needed.",
        "At most 90 % of the memory was held; 1 eviction for lack of it.",
    ]
    write_node(figure, "n0", tmp_path, "run", "foresail explain run --node n0")
    page = (tmp_path / "node.html").read_text()
    assert "run: n0 over time" in page
    assert "http://" not in page.split("id='plotly'")[0]
    assert pl.read_csv(tmp_path / "node-use.csv").height == 4


def test_a_long_record_is_drawn_by_its_peaks():
    """Of ten thousand instants some are drawn, the one when most was needed among them."""
    rows = [(float(at), "changed", 0, 4.0 if at == 7777 else 1.0, 1.0, 1.0) for at in range(10_000)]
    figure = node_figure(use(*rows), NODE)
    assert isinstance(figure, Figure)
    assert figure.table.height == 10_000
    assert "10,000 instants are drawn as 2,000" in figure.note


@pytest.mark.parametrize("rows", [(), ((0.0, "changed", 0, 1.0, 1.0, 1.0),)])
def test_an_unused_node_is_said_to_be_one(rows):
    """There is nothing to draw, and the reader is told so."""
    assert isinstance(node_figure(use(*rows), NODE), MissingFigure)


def test_use_that_was_kept_before_stages_were(tmp_path):
    """A file without stages is read, one without tasks is not."""
    log = tmp_path / "events"
    SHORT.drop("stage").write_parquet(use_file(log))
    assert read_use(log).equals(SHORT.with_columns(stage=pl.lit(None, pl.String)))
    SHORT.drop("task").write_parquet(use_file(log))
    with pytest.raises(InputError, match="not the columns"):
        read_use(log)
