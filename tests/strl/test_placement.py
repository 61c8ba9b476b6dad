"""Where jobs want to run, as their ``preferred`` says it, and the expression of that."""

from __future__ import annotations

import pytest

from foresail.model.cluster import Cluster, Node, Partition
from foresail.model.errors import InputError, UnknownNameError
from foresail.model.job import Job, Stage
from foresail.model.resources import Resources
from foresail.model.value import DecayingValue
from foresail.strl.placement import Grounds, PlacementKind, PlacementRequest, expression_of
from foresail.strl.requests import Gang, StartWindow
from foresail.strl.text import format_expression


def cluster(**attributes):
    """Two racks of two nodes; the first has gpus."""
    parts = []
    for rack, gpus in (("rack1", 1.0), ("rack2", 0.0)):
        total = Resources(1.0, 0.0, gpus)
        nodes = tuple(
            Node(f"{rack}-{n}", total, {name: value[rack] for name, value in attributes.items()})
            for n in (1, 2)
        )
        parts.append(Partition(rack, total * 2, nodes))
    return Cluster(tuple(parts))


GROUNDS = Grounds.of(cluster())
SETS = {"all": GROUNDS.nodes, **GROUNDS.partitions}


def asked(text, tasks=2, slowdown=None):
    """The expression of a job with this preference, 2 s long, worth 10 less its completion."""
    gang = Gang(tasks, 2.0, DecayingValue(0.0, 10.0, 10.0), StartWindow(0.0, 0.0, 1.0))
    expression = expression_of(PlacementRequest.parse(text, slowdown), gang, GROUNDS)
    return None if expression is None else format_expression(expression, SETS)


@pytest.mark.parametrize(
    ("text", "expression"),
    [
        ("anywhere", "nCk(all, 2, 0, 2, 8)"),
        ("elastic", "LnCk(all, 2, 0, 2, 8)"),
        ("partition:rack2", "nCk(rack2, 2, 0, 2, 8)"),
        ("partition:rack1,rack2", "nCk(all, 2, 0, 2, 8)"),
        ("attribute:gpu", "nCk(rack1, 2, 0, 2, 8)"),
        ("same:rack", "max(nCk(rack1, 2, 0, 2, 8), nCk(rack2, 2, 0, 2, 8))"),
        ("spread:rack", "min(nCk(rack1, 1, 0, 2, 8), nCk(rack2, 1, 0, 2, 8))"),
        (
            "spread:partition,2",
            "scale(barrier(sum(LnCk(rack1, 2, 0, 2, 2), LnCk(rack2, 2, 0, 2, 2)), 2), 4)",
        ),
    ],
)
def test_every_kind_has_its_expression(text, expression):
    """The canonical shapes, from a word; a request's text is the one it came from."""
    assert asked(text) == expression
    assert PlacementRequest.parse(text).text == text


def test_slower_elsewhere():
    """With a slowdown, all nodes are a slower alternative; without, there is none."""
    assert asked("attribute:gpu", slowdown=1.5) == (
        "max(nCk(all, 2, 0, 3, 7), nCk(rack1, 2, 0, 2, 8))"
    )
    assert asked("same:rack", tasks=3, slowdown=1.5) == "nCk(all, 3, 0, 3, 7)"
    assert asked("same:rack", tasks=3) is None
    assert asked("spread:rack", tasks=3, slowdown=2.0) == "nCk(all, 3, 0, 4, 6)"


def test_a_job_says_it_in_its_attributes():
    """``preferred`` and ``slowdown_elsewhere`` as a workload has them; nothing said is anywhere."""
    stages = (Stage(2, Resources(cpus=1.0)),)
    attributes = {"preferred": "same:rack", "slowdown_elsewhere": "1.5"}
    request = PlacementRequest.of(Job("7", 0.0, stages, attributes=attributes))
    assert request == PlacementRequest(PlacementKind.SAME, ("rack",), slowdown=1.5)
    assert PlacementRequest.of(Job("8", 0.0, stages)) == PlacementRequest()


@pytest.mark.parametrize(
    ("attributes", "field", "expected"),
    [
        ({"preferred": "near:water"}, "preferred", "partition:a,b"),
        ({"preferred": "partition:"}, "preferred", "partition:a,b"),
        ({"preferred": "attribute:gpu,ssd"}, "preferred", "attribute:gpu"),
        ({"preferred": "spread:rack,0"}, "preferred", "spread:rack or spread:rack,2"),
        ({"preferred": "anywhere:else"}, "preferred", "anywhere"),
        ({"preferred": "same:rack", "slowdown_elsewhere": "0.5"}, "slowdown_elsewhere", "at least"),
        ({"preferred": "same:rack", "slowdown_elsewhere": "nan"}, "slowdown_elsewhere", "at least"),
        ({"preferred": "same:rack", "slowdown_elsewhere": "x"}, "slowdown_elsewhere", "a number"),
    ],
)
def test_what_a_job_cannot_mean_is_refused(attributes, field, expected):
    """The error names the job, the field and what would do."""
    job = Job("7", 0.0, (Stage(1, Resources()),), attributes=attributes)
    with pytest.raises(InputError, match="job 7: ") as caught:
        PlacementRequest.of(job)
    assert caught.value.field == field
    assert expected in caught.value.expected


@pytest.mark.parametrize("text", ["partition:rack9", "attribute:ssd", "same:row", "spread:row"])
def test_what_a_cluster_does_not_have_is_refused(text):
    """An unknown partition, attribute or domain is an error that offers the known ones."""
    with pytest.raises(UnknownNameError, match=r"rack|gpu"):
        asked(text)


def test_attributes_of_nodes_are_sets_and_domains():
    """Nodes that name an attribute have it; equal values are one domain, racks included."""
    rows = {"rack1": "north", "rack2": "north"}
    grounds = Grounds.of(cluster(rack=rows, ssd={"rack1": "yes", "rack2": "yes"}))
    assert grounds.domains["rack"] == (GROUNDS.nodes,)
    assert grounds.attributes["ssd"] == GROUNDS.nodes
    assert grounds.attributes["gpu"] == GROUNDS.partitions["rack1"]


def test_a_cluster_of_processors_has_no_nodes():
    """Where only processors are counted there is nothing to choose from."""
    with pytest.raises(InputError, match="no nodes to choose from"):
        Grounds.of(Cluster.of_processors(8))
