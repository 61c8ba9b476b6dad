"""Clusters whose nodes change: what a cluster becomes, and what is free of it meanwhile."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from foresail.model.changing_nodes import changed, changes_between, with_later_nodes
from foresail.model.cluster import Cluster, Node, Partition, Resources
from foresail.model.decision import Placement
from foresail.model.errors import InputError
from foresail.model.event import NodeAdded, NodeChanged, NodeRemoved
from foresail.model.free_resources import FreeResources
from foresail.model.job import Job

NAMES = ("n1", "n2", "n3", "n4")


def node(name, cpus):
    return Node(name, Resources(cpus=float(cpus)), {"rack": "r"})


def cluster(**partitions):
    """Partitions by name, each with cpus by node."""
    return Cluster(
        tuple(
            Partition(
                name,
                Resources(cpus=float(sum(nodes.values()))),
                tuple(node(each, cpus) for each, cpus in nodes.items()),
            )
            for name, nodes in partitions.items()
        )
    )


def test_all_nodes_that_ever_come():
    """Each as it first is, whether it goes again or not; those of the beginning are there too."""
    changes = (
        NodeAdded(1.0, node("n2", 4), "a"),
        NodeRemoved(2.0, "n1"),
        NodeChanged(3.0, node("n2", 8)),
        NodeRemoved(4.0, "n2"),
        NodeAdded(5.0, node("n2", 16), "a"),
        NodeAdded(6.0, node("n3", 2), "b"),
    )
    assert with_later_nodes(cluster(a={"n1": 1}), changes) == cluster(
        a={"n1": 1, "n2": 4}, b={"n3": 2}
    )


def test_a_node_comes_changes_and_goes():
    """Partitions begin with a first node and stay when the last has gone; totals follow."""
    one = cluster(r1={"n1": 2})
    two = changed(one, NodeAdded(0.0, node("n2", 3), "r2"))
    assert two == cluster(r1={"n1": 2}, r2={"n2": 3})
    wide = changed(two, NodeChanged(0.0, node("n1", 8)))
    assert wide == cluster(r1={"n1": 8}, r2={"n2": 3})
    assert changed(wide, NodeRemoved(0.0, "n2")) == cluster(r1={"n1": 8}, r2={})
    assert wide.partitions[1].nodes[0] is two.partitions[1].nodes[0]


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (NodeAdded(0.0, node("n1", 1), "r1"), "such a node already"),
        (NodeAdded(0.0, node("n2", 1), "pool"), "belong to no nodes"),
        (NodeChanged(0.0, node("n2", 1)), "no such node"),
        (NodeRemoved(0.0, "n2"), "no such node"),
    ],
)
def test_what_cannot_be_is_refused(change, words):
    """With the name in question."""
    pool = Partition("pool", Resources(cpus=4.0))
    with pytest.raises(InputError, match=words):
        changed(Cluster((pool, *cluster(r1={"n1": 2}).partitions)), change)


homes = st.dictionaries(
    st.sampled_from(NAMES), st.tuples(st.sampled_from(("r1", "r2")), st.integers(1, 4))
)


def of(nodes):
    """A cluster of two racks with these nodes, by name: rack and cpus."""
    racks = {rack: {} for rack in ("r1", "r2")}
    for name, (rack, cpus) in nodes.items():
        racks[rack][name] = cpus
    return cluster(**racks)


@given(homes, homes)
def test_differences_lead_from_one_cluster_to_the_other(before, after):
    """Whatever nodes they have, be it that one has moved to another rack."""
    got = of(before)
    for change in changes_between(of(before), of(after), 7.0):
        assert change.time == 7.0
        got = changed(got, change)

    def nodes(each):
        return {(part.name, some) for part in each.partitions for some in map(str, part.nodes)}

    assert nodes(got) == nodes(of(after))


class Slow:
    """The obvious account: what there is, what is down, and what is held, summed when asked."""

    def __init__(self):
        self.nodes, self.down, self.held = {}, set(), {}

    def free(self):
        """Of nodes that are up, and of racks; a job holds one cpu of a node in its rack."""
        by_node = {name: cpus for name, (_, cpus) in self.nodes.items() if name not in self.down}
        by_rack = {"r1": 0.0, "r2": 0.0}
        for _, name in self.held.values():
            if name in by_node:
                by_node[name] -= 1.0
        for name, cpus in by_node.items():
            by_rack[self.nodes[name][0]] += cpus
        return by_node, by_rack


def placed(slow, job_id):
    """A job of one task on its node."""
    rack, name = slow.held[job_id]
    return Placement(((rack, 1),), ((name, 1),))


@given(st.data())
def test_what_is_free_follows_nodes_and_jobs(data):
    """Nodes go down, come up, are added, changed and removed, under jobs that start and end.

    What jobs hold on a node that is down or gone is nothing to its rack.
    """
    slow = Slow()
    known = of({})
    account = FreeResources(known)
    number = 0
    for _ in range(data.draw(st.integers(1, 12))):
        absent = [name for name in NAMES if name not in slow.nodes]
        room, _ = slow.free()
        fitting = sorted(name for name, free in room.items() if free >= 1)
        acts = ["add"] * bool(absent) + ["down", "up", "change", "remove"] * bool(slow.nodes)
        acts += ["start"] * bool(fitting) + ["end"] * bool(slow.held)
        act = data.draw(st.sampled_from(acts))
        if act == "add":
            name = data.draw(st.sampled_from(absent))
            rack = "r1" if name in ("n1", "n2") else "r2"
            slow.nodes[name] = (rack, data.draw(st.integers(1, 4)))
            known = changed(known, NodeAdded(0.0, node(name, slow.nodes[name][1]), rack))
            account.change(known)
        elif act == "start":
            name, number = data.draw(st.sampled_from(fitting)), number + 1
            slow.held[str(number)] = (slow.nodes[name][0], name)
            account.take(Job.gang(str(number), 0.0, 1), placed(slow, str(number)))
        elif act == "end":
            job_id = data.draw(st.sampled_from(sorted(slow.held)))
            account.give_back(Job.gang(job_id, 0.0, 1), placed(slow, job_id))
            del slow.held[job_id]
        else:
            name = data.draw(st.sampled_from(sorted(slow.nodes)))
            rack = slow.nodes[name][0]
            if act == "down":
                slow.down.add(name)
                account.close(name)
            elif act == "up":
                slow.down.discard(name)
                account.open(name)
            elif act == "change":
                slow.nodes[name] = (rack, data.draw(st.integers(1, 4)))
                known = changed(known, NodeChanged(0.0, node(name, slow.nodes[name][1])))
                account.change(known)
            else:
                del slow.nodes[name]
                slow.down.discard(name)
                known = changed(known, NodeRemoved(0.0, name))
                account.change(known)
        by_node, by_rack = slow.free()
        assert {name: room.cpus for name, room in account.by_node().items()} == by_node
        free = {name: room.cpus for name, room in account.by_partition().items()}
        assert free == by_rack
        assert account.down == slow.down
        order = [each.name for part in known.partitions for each in part.nodes]
        assert list(account.by_node()) == [name for name in order if name not in slow.down]
