"""Files of node changes: what they say, and what is wrong with one that is refused."""

from __future__ import annotations

import pytest

from foresail.model.cluster import Cluster, Node, Partition, Resources
from foresail.model.errors import InputError
from foresail.model.event import NodeAdded, NodeChanged, NodeRemoved
from foresail.traces.nodes import read_node_changes, require_possible


def read(tmp_path, text):
    """The changes of a file with this text."""
    path = tmp_path / "changes.csv"
    path.write_text(text)
    return read_node_changes(path)


def test_each_kind_of_change(tmp_path):
    """Columns in any order; nodes offer what they would in a nodes table."""
    text = """change,seconds,node,partition,cpus,memory_bytes,gpus,model,speed
added,10,n7,r2,4,8e9,1,a100,1.5
changed,20,n7,r2,2,,,,

removed,30.5,n7,,,,,,
"""
    offered = {"rack": "r2", "model": "a100", "gpu": "a100"}
    assert read(tmp_path, text) == (
        NodeAdded(10.0, Node("n7", Resources(4.0, 8e9, 1.0), offered, 1.5), "r2"),
        NodeChanged(20.0, Node("n7", Resources(2.0), {"rack": "r2"})),
        NodeRemoved(30.5, "n7"),
    )


def test_nodes_that_only_go_need_no_further_columns(tmp_path):
    """Neither partition nor cpus."""
    assert read(tmp_path, "seconds,change,node\n1,removed,a\n") == (NodeRemoved(1.0, "a"),)


def test_removals_may_be_known_beforehand(tmp_path):
    """From when on, where the column says so; other changes are not announced."""
    text = "seconds,change,node,partition,cpus,known_from_seconds\n"
    rows = "9,removed,a,,,0\n9,removed,b,,,\n"
    assert read(tmp_path, text + rows) == (NodeRemoved(9.0, "a", 0.0), NodeRemoved(9.0, "b"))
    with pytest.raises(InputError, match="nothing where a node is not removed"):
        read(tmp_path, text + "9,added,a,r,1,0\n")


@pytest.mark.parametrize(
    ("row", "field"),
    [
        ("x,added,n,r,1", "seconds"),
        ("-1,added,n,r,1", "seconds"),
        ("nan,removed,n,,", "seconds"),
        ("1,came,n,r,1", "change"),
        ("1,removed,,,", "node"),
        ("1,added,n,,1", "partition"),
        ("1,changed,n,r,0", "cpus"),
        ("1,changed,n,r,much", "cpus"),
        ("1,changed,n,r,1,0", "speed"),
        ("1,added,n,r,1,-2", "speed"),
        ("1,added,n,r,1,inf", "speed"),
    ],
)
def test_a_wrong_row_is_named(tmp_path, row, field):
    """With its line, its column and what was there."""
    whole = row + "," * (5 - row.count(","))
    with pytest.raises(InputError) as refused:
        read(tmp_path, f"seconds,change,node,partition,cpus,speed\n0,removed,m,,,\n{whole}\n")
    assert (refused.value.line, refused.value.field) == (3, field)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "columns of node changes"),
        ("seconds,node\n", "columns of node changes"),
        ("seconds,change,node,colour\n", "columns of node changes"),
        ("seconds,change,node\n1,removed\n", "another length"),
    ],
)
def test_what_is_no_such_table_is_refused(tmp_path, text, words):
    """An empty file, columns that are missing or unknown, a short row."""
    with pytest.raises(InputError, match=words):
        read(tmp_path, text)


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ("removed,10,n7,,", r"line 3, field 'node': no such node \(found 'n7'\)"),
        ("added,10,n1,r1,4", "line 3, field 'node': there is such a node already"),
    ],
)
def test_changes_that_nodes_cannot_go_through_are_refused_by_line(tmp_path, change, problem):
    """The file and the line are named; of the nodes as they are at that time."""
    path = tmp_path / "changes.csv"
    path.write_text(f"change,seconds,node,partition,cpus\nadded,20,n9,r1,4\n{change}\n")
    nodes = Cluster((Partition("r1", Resources(4.0), (Node("n1", Resources(4.0)),)),))
    with pytest.raises(InputError, match=f"changes.csv, {problem}"):
        require_possible(path, nodes)
