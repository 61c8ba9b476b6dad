"""Where jobs run best, and the expression of that."""

from __future__ import annotations

import pytest

from foresail.model.cluster import Cluster, Node, Partition
from foresail.model.errors import InputError, UnknownNameError
from foresail.model.job import Job, Stage
from foresail.model.preference import Preference
from foresail.model.resources import Resources
from foresail.model.value import DecayingValue
from foresail.strl.placement import NodeSets, PlacementKind, PlacementRequest, expression_of
from foresail.strl.requests import Gang, StartWindow
from printed import format_expression

ONE = Resources(1.0)


def nodes(rack, **attributes):
    return tuple(Node(f"{rack}-{n}", ONE, {"rack": rack, **attributes}) for n in (1, 2))


CLUSTER = Cluster(
    (
        Partition("rack1", ONE * 2, nodes("rack1", gpu="a100")),
        Partition("rack2", ONE * 2, nodes("rack2")),
    )
)
GROUNDS = NodeSets.of(CLUSTER)
SETS = {"all": GROUNDS.nodes, **GROUNDS.partitions}


def job(preference=None):
    return Job("7", 0.0, (Stage(2, ONE),), preference=preference)


def asked(request, tasks=2):
    """The expression of a job with this request, 2 s long, worth 10 less its completion."""
    gang = Gang(tasks, 2.0, DecayingValue(0.0, 10.0, 10.0), StartWindow(0.0, 0.0, 1.0))
    expression = expression_of(request, gang, GROUNDS)
    return None if expression is None else format_expression(expression, SETS)


@pytest.mark.parametrize(
    ("kind", "names", "most", "expression"),
    [
        ("anywhere", (), 1, "nCk(all, 2, 0, 2, 8)"),
        ("elastic", (), 1, "LnCk(all, 2, 0, 2, 8)"),
        ("partition", ("rack2",), 1, "nCk(rack2, 2, 0, 2, 8)"),
        ("partition", ("rack1", "rack2"), 1, "nCk(all, 2, 0, 2, 8)"),
        ("attribute", ("gpu",), 1, "nCk(rack1, 2, 0, 2, 8)"),
        ("attribute", ("gpu", "rack"), 1, "nCk(all, 2, 0, 2, 8)"),
        ("same", ("rack",), 1, "max(nCk(rack1, 2, 0, 2, 8), nCk(rack2, 2, 0, 2, 8))"),
        ("spread", ("rack",), 1, "min(nCk(rack1, 1, 0, 2, 8), nCk(rack2, 1, 0, 2, 8))"),
        (
            "spread",
            ("rack",),
            2,
            "scale(barrier(sum(LnCk(rack1, 2, 0, 2, 2), LnCk(rack2, 2, 0, 2, 2)), 2), 4)",
        ),
    ],
)
def test_every_kind_has_its_expression(kind, names, most, expression):
    """The canonical shapes, from a record."""
    assert asked(PlacementRequest(PlacementKind(kind), names, most)) == expression


@pytest.mark.parametrize(
    ("text", "tasks", "expression"),
    [
        ("attribute:gpu", 2, "max(nCk(all, 2, 0, 4, 6), nCk(rack1, 2, 0, 2, 8))"),
        ("same:rack", 3, "nCk(all, 3, 0, 4, 6)"),
        ("spread:rack,gpu", 3, "nCk(all, 3, 0, 4, 6)"),
        ("spread:rack", 5, None),
    ],
)
def test_a_jobs_preference_is_a_soft_one(text, tasks, expression):
    """All nodes are a slower alternative; where the preferred ones are too few, the only one."""
    request = PlacementRequest.of(job(Preference.parse(text, 2.0)))
    assert asked(request, tasks) == expression


def test_must_not_run_elsewhere():
    """Without a slowdown a request is a hard one."""
    assert asked(PlacementRequest(PlacementKind.SAME, ("rack",)), tasks=3) is None


def test_no_preference_is_anywhere():
    """A job that says nothing takes any nodes."""
    assert PlacementRequest.of(job()) == PlacementRequest()


@pytest.mark.parametrize(
    ("values", "field", "expected"),
    [
        ({"names": ("rack",)}, "names", "none for anywhere"),
        ({"kind": PlacementKind.PARTITION}, "names", "partitions for partition"),
        (
            {"kind": PlacementKind.SAME, "names": ("rack", "row")},
            "names",
            "one attribute, such as rack for same",
        ),
        ({"most_per_domain": 0}, "most_per_domain", "at least 1"),
        ({"slowdown": 0.5}, "slowdown", "at least 1"),
        ({"slowdown": float("nan")}, "slowdown", "at least 1"),
    ],
)
def test_requests_that_mean_nothing_are_refused(values, field, expected):
    """The error names the field and what would do."""
    with pytest.raises(InputError, match="not a placement") as caught:
        PlacementRequest(**values)
    assert (caught.value.field, caught.value.expected) == (field, expected)


@pytest.mark.parametrize("text", ["partition:rack9", "attribute:ssd", "same:row", "spread:row"])
def test_what_a_cluster_does_not_have_is_refused(text):
    """An unknown partition or attribute is an error that offers the known ones."""
    with pytest.raises(UnknownNameError, match=r"rack|gpu"):
        asked(PlacementRequest.of(job(Preference.parse(text))))


def test_what_is_given_is_what_the_preference_holds():
    """Each preferred option's nodes are a placement that the model calls preferred."""
    by_name = {n.name: (n, p.name) for p in CLUSTER.partitions for n in p.nodes}
    for text in ("partition:rack1", "attribute:gpu", "same:rack"):
        preference = Preference.parse(text, 2.0)
        gang = Gang(2, 2.0, DecayingValue(0.0, 10.0, 10.0), StartWindow(0.0, 0.0, 1.0))
        request = PlacementRequest(PlacementKind(preference.kind.value), preference.names)
        expression = expression_of(request, gang, GROUNDS)
        for option in getattr(expression, "children", (expression,)):
            assert preference.holds([(*by_name[name], 1) for name in sorted(option.nodes)])


def test_a_cluster_of_processors_has_no_nodes():
    """Where only processors are counted there is nothing to choose from."""
    with pytest.raises(InputError, match="no nodes to choose from"):
        NodeSets.of(Cluster.of_processors(8))
