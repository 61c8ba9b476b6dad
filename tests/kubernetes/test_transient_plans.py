"""Services on transient capacity: settings, plans, pools, and who yields to whom."""

from __future__ import annotations

import asyncio
import dataclasses
import sys
from collections.abc import Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

from foresail.model.errors import InputError
from foresail_kubernetes import wire
from foresail_kubernetes.command import app
from foresail_kubernetes.records import KubernetesNode, node_of
from foresail_kubernetes.transient.leaving import TransientNode
from foresail_kubernetes.transient.planning import (
    NoPlanError,
    Pool,
    ServicePlan,
    added_up,
    asked_of,
    plan_of,
    plan_services,
)
from foresail_kubernetes.transient.pools import Maker, missing_names, node_pool, wanted
from foresail_kubernetes.transient.settings import (
    Market,
    NodeClass,
    Pools,
    Service,
    read_settings,
)
from foresail_kubernetes.transient.yielding import BATCH, RankedPod, ranked, yielding
from serving_cluster import write_settings

WEB = Service("web", 20.0, 4.0, {"app": "web"})
SIDE = Service("side", 5.0, 2.0, {"app": "side"}, "lab")
RECORD = {
    "accepted": True,
    "is_worth_it": True,
    "availability_expected": 0.99995,
    "price_per_hour": 11.5,
    "on_demand_share": 0.575,
    "machines": [{"type": "a/m2", "count": 2, "capacity": 10.0}],
}


def test_settings_are_read(tmp_path: Path) -> None:
    """Nines become the share of the time that is meant, without more digits."""
    settings = read_settings(write_settings(tmp_path, units=20, nines=4))
    (service,) = settings.services
    assert (service.units, service.availability) == (20.0, 0.9999)
    assert (settings.pools.by, settings.leaving.wait_seconds) == ("placeholder", 15.0)
    assert settings.market.check_window_days == (7.0,)


@pytest.mark.parametrize(
    ("before", "after", "said"),
    [
        ("units = 20", "units = 0", "'services.units'"),
        ("units = 20", "units = 'x'", r"'services\[0\].units'"),
        ("units = 20", "unit = 20", r"'services\[0\]'"),
        ("units = 20", "units = nan", "'services.units'"),
        ("nines = 4", "nines = 10", "'services.nines'"),
        ("nines = 4", "nines = nan", "'services.nines'"),
        ('name = "web"', 'name = "Web"', "'services.name'"),
        ('labels = {app = "web"}', "labels = {}", "'services.labels'"),
        ('by = "placeholder"', 'by = "magic"', "'pools.by'"),
        ('by = "placeholder"', 'by = "karpenter"', "'pools.node_class'"),
        ('by = "placeholder"', 'by = "command"', "'pools.command'"),
        ('by = "placeholder"', 'by = "placeholder"\ncpus_for_each_unit = 0', "cpus_for_each_unit"),
        ("wait_seconds = 15.0", "wait_seconds = -1", "'leaving.wait_seconds'"),
        ('prices = "history.csv"\n', "", "'market'"),
        ("[pools]", "check_window_days = []\n[pools]", "'market.check_window_days'"),
        ("[pools]", "again_hours = 0\n[pools]", "'market.again_hours'"),
        ("[[services]]", "[[services]]\nunknown = 1", r"'services\[0\]'"),
    ],
)
def test_settings_that_cannot_be(tmp_path: Path, before: str, after: str, said: str) -> None:
    """The file and the field are named."""
    path = write_settings(tmp_path, units=20, nines=4)
    text = path.read_text()
    assert before in text
    path.write_text(text.replace(before, after))
    with pytest.raises(InputError, match=f"settings.toml.*{said}"):
        read_settings(path)
    result = CliRunner().invoke(app, ["transient", str(path)])
    assert result.exit_code == 2


def test_two_services_of_one_name(tmp_path: Path) -> None:
    """They could not be told apart in what is said."""
    more = '\n[[services]]\nname = "web"\nunits = 1\nnines = 1\nlabels = {app = "x"}\n'
    with pytest.raises(InputError, match="comes twice"):
        read_settings(write_settings(tmp_path, more=more))


def test_a_plan_is_asked_for_as_a_person_would(tmp_path: Path) -> None:
    """All of the market's settings are options; a history beside the settings is found there."""
    (tmp_path / "h.csv").touch()
    market = Market("h.csv", "m.csv", "us/*", 30.0, (7.0, 14.0), 1.0, correlated=True)
    assert asked_of(WEB, market, tmp_path)[2:] == [
        *("--format", "json", "--capacity", "20.0", "--availability", "0.9999"),
        *("--prices", str(tmp_path / "h.csv"), "--machines", str(tmp_path / "m.csv")),
        *("--market", "us/*", "--extra-nines", "1.0", "--window", "30.0"),
        *("--check-window", "7.0", "--check-window", "14.0", "--correlated"),
    ]
    assert "name-of-some" in asked_of(WEB, Market("name-of-some", "m.csv"), tmp_path)


def test_a_plan_counts_if_it_held_and_is_cheaper() -> None:
    """Else there is none."""
    found = plan_of(WEB, RECORD)
    assert found == ServicePlan("web", (Pool("a/m2", 2, 10.0),), 0.99995, 11.5, 0.575)
    assert "57.5 % of the price on demand" in found.sentence
    with pytest.raises(NoPlanError, match="no plan holds"):
        plan_of(WEB, {**RECORD, "accepted": False})
    with pytest.raises(NoPlanError, match=r"1\.2 times as much as on demand"):
        plan_of(WEB, {**RECORD, "is_worth_it": False, "on_demand_share": 1.2})


def test_pools_of_all_services_together() -> None:
    """Machines of a type are counted together; types whose names cannot be told apart are not."""
    first, second = Pool("Zone-A/m2.large", 2, 10.0), Pool("b/m2", 1, 5.0)
    plans = [plan(first, second), plan(first)]
    assert added_up(plans) == (second, dataclasses.replace(first, count=4))
    assert first.name == "zone-a-m2-large"
    with pytest.raises(InputError, match="two types, one name"):
        added_up([plan(first, Pool("zone-a/m2_large", 1, 1.0))])


def plan(*pools: Pool) -> ServicePlan:
    return ServicePlan("web", pools, 0.99, 1.0, None)


def test_a_plan_of_real_planning(tmp_path: Path) -> None:
    """The command plans, and says what does not hold, or cannot be."""
    path = write_settings(tmp_path, units=4, nines=3)
    settings = read_settings(path)
    (found,) = plan_services(settings, tmp_path)
    assert found.availability >= 0.999
    assert sum(each.count * each.capacity for each in found.pools) >= 4.0
    with pytest.raises(InputError, match=r"web: .*best reachable"):
        plan_services(asking(settings, nines=9.0), tmp_path)
    with pytest.raises(NoPlanError, match=r"1\.8 times as much as on demand"):
        plan_services(asking(settings, nines=8.0), tmp_path)
    short = msgspec.structs.replace(settings.market, check_window_days=(100.0,))
    with pytest.raises(InputError, match="history ends before"):
        plan_services(msgspec.structs.replace(settings, market=short), tmp_path)
    with pytest.raises(NoPlanError, match="no plan holds"):
        plan_services(asking(settings, nines=2.0), tmp_path)


def asking(settings: Any, **service: Any) -> Any:
    (one,) = settings.services
    return msgspec.structs.replace(settings, services=(msgspec.structs.replace(one, **service),))


def transient(name: str, kind: str, ends: float | None = None) -> TransientNode:
    return TransientNode(name, kind, True, ends is not None, ends, ())


def test_a_machine_that_leaves_is_asked_for_once_more() -> None:
    """While it is there; numbers are of machines that are to be, so that they can be said again."""
    pool = Pool("a/m2", 2, 10.0)
    nodes = [transient("a-m2-1", "a-m2"), transient("a-m2-2", "a-m2", 100.0), transient("x", "b")]
    assert wanted([pool], nodes) == {pool: 3}
    assert missing_names(pool, nodes) == ["a-m2-3"]
    assert missing_names(pool, nodes[:1]) == ["a-m2-2"]
    assert missing_names(pool, [*nodes, transient("a-m2-3", "a-m2")]) == []
    assert missing_names(pool, []) == ["a-m2-1", "a-m2-2"]


def test_a_pool_of_karpenter() -> None:
    """It holds a number of machines of one type and zone, and says by a label and a taint whose."""
    made = node_pool(Pool("us-1a/m2.large", 3, 10.0), KARPENTER)
    assert made["metadata"]["name"] == "transient-us-1a-m2-large"
    assert made["spec"]["replicas"] == 3
    template = made["spec"]["template"]
    assert template["metadata"]["labels"] == {"foresail.io/transient": "us-1a-m2-large"}
    asked = {each["key"]: each["values"] for each in template["spec"]["requirements"]}
    assert asked == {
        "karpenter.sh/capacity-type": ["spot"],
        "node.kubernetes.io/instance-type": ["m2.large"],
        "topology.kubernetes.io/zone": ["us-1a"],
    }
    plain = node_pool(Pool("m2", 3, 10.0), KARPENTER)["spec"]["template"]["spec"]["requirements"]
    assert [each["key"] for each in plain] == [*asked][:2]


KARPENTER = Pools("karpenter", node_class=NodeClass("karpenter.k8s.aws", "EC2NodeClass", "default"))


def test_manifests_are_printed(tmp_path: Path) -> None:
    """As one list, for kubectl; a plan that does not hold is exit status 1."""
    path = write_settings(tmp_path, units=4, nines=3)
    result = CliRunner().invoke(app, ["pools", str(path)])
    assert (result.exit_code, result.stdout) == (2, "")
    of = 'node_class = {group = "karpenter.k8s.aws", kind = "EC2NodeClass", name = "default"}'
    text = path.read_text()
    path.write_text(text.replace('by = "placeholder"', f'by = "karpenter"\n{of}'))
    result = CliRunner().invoke(app, ["pools", str(path)])
    assert result.exit_code == 0
    printed = msgspec.json.decode(result.stdout)
    assert {each["kind"] for each in printed["items"]} == {"NodePool"}
    path.write_text(path.read_text().replace("nines = 3", "nines = 2"))
    result = CliRunner().invoke(app, ["pools", str(path)])
    assert (result.exit_code, result.stdout) == (1, "")


def machine(name: str, cpus: int, **more: Any) -> KubernetesNode:
    status = {
        "allocatable": {"cpu": str(cpus), "memory": "64Gi", "pods": "10"},
        "conditions": [{"type": "Ready", "status": "True"}],
    }
    return node_of(
        msgspec.convert({"metadata": {"name": name}, "status": status, **more}, wire.WireNode)
    )


def a_pod(name: str, cpus: int, rank: float, node: str = "", **more: Any) -> RankedPod:
    meta = {"name": name, "uid": name, "namespace": "default", **more.pop("metadata", {})}
    needs = {"resources": {"requests": {"cpu": str(cpus)}}}
    spec = {"nodeName": node, "containers": [needs]}
    made = {"metadata": meta, "spec": spec, "status": {"phase": "Pending", **more}}
    services = [msgspec.structs.replace(WEB, nines=rank, labels={"of": "it"})] if rank else []
    meta["labels"] = {"of": "it"}
    return ranked(msgspec.convert(made, wire.WirePod), services)


def names(victims: Sequence[RankedPod]) -> list[str]:
    return [each.pod.name for each in victims]


def test_pods_are_ranked_by_their_service() -> None:
    """By namespace and labels; the highest counts; of none it is batch."""

    def rank(namespace: str, **labels: str) -> float:
        meta = {"namespace": namespace, "labels": labels}
        return ranked(msgspec.convert({"metadata": meta}, wire.WirePod), [WEB, SIDE, MORE]).rank

    assert rank("default", app="web", x="y") == 4.0
    assert rank("default", app="web", more="yes") == 5.0
    assert rank("lab", app="web") == BATCH
    assert rank("lab", app="side") == 2.0
    assert rank("default") == BATCH


MORE = Service("more", 1.0, 5.0, {"more": "yes"})


def test_nobody_yields_where_there_is_room() -> None:
    """Free, or about to be: of what is leaving, or has ended."""
    nodes = [machine("a", 4)]
    leaving = {"deletionTimestamp": "2026-12-01T18:00:00Z"}
    pods = [a_pod("batch", 2, BATCH, "a"), a_pod("web", 2, 4.0)]
    assert yielding(pods, nodes) == []
    assert yielding([*pods, a_pod("going", 2, BATCH, "a", metadata=leaving)], nodes) == []
    assert yielding([*pods, a_pod("done", 2, BATCH, "a", phase="Succeeded")], nodes) == []
    assert names(yielding([*pods, a_pod("other", 1, BATCH, "a")], nodes)) == ["batch"]
    late = a_pod("late", 1, BATCH, "a", startTime="2026-12-01T18:00:00Z")
    assert names(yielding([*pods, late], nodes)) == ["late"]


def test_the_lowest_ranks_and_the_fewest_yield() -> None:
    """Batch before services, one before two; what is not in the way stays."""
    nodes = [machine("a", 4), machine("b", 4), machine("c", 4)]
    pods = [
        a_pod("side", 4, 2.0, "a"),
        *(a_pod(f"small{number}", 2, BATCH, "b") for number in range(2)),
        a_pod("big", 4, BATCH, "c"),
        a_pod("web", 4, 4.0),
    ]
    assert names(yielding(pods, nodes)) == ["big"]
    assert sorted(names(yielding(pods, nodes[:2]))) == ["small0", "small1"]
    assert names(yielding(pods, nodes[:1])) == ["side"]
    assert yielding([*pods[:-1], a_pod("web", 4, 2.0)], nodes[:1]) == []
    assert yielding([*pods[:-1], a_pod("batch", 4, BATCH)], nodes) == []
    assert names(yielding(pods, nodes, {"big"})) == ["small0", "small1"]
    one = [a_pod("web", 2, 4.0), a_pod("little", 1, BATCH, "a"), a_pod("large", 3, BATCH, "a")]
    assert names(yielding(one, nodes[:1])) == ["large"]
    both = [a_pod("web", 4, 4.0), a_pod("little", 1, BATCH, "a"), a_pod("side", 4, 2.0, "a")]
    assert names(yielding(both, [machine("a", 5)])) == ["side"]


def test_nodes_that_are_no_use_free_nothing() -> None:
    """Cordoned, tainted or too small ones: nobody yields there."""
    batch = a_pod("batch", 2, BATCH, "a")
    taint = {"taints": [{"key": "x", "value": "y", "effect": "NoSchedule"}]}
    for of in (
        machine("a", 2, spec={"unschedulable": True}),
        machine("a", 2, spec=taint),
        machine("a", 2),
    ):
        wants = 3 if of == machine("a", 2) else 2
        assert yielding([batch, a_pod("web", wants, 4.0)], [of]) == []


@given(
    st.lists(st.tuples(st.integers(1, 4), st.sampled_from([0.0, 2.0, 4.0])), max_size=8),
    st.lists(st.tuples(st.integers(1, 4), st.sampled_from([2.0, 4.0])), max_size=4),
)
def test_what_yields_is_lower_and_makes_room(
    bound: list[tuple[int, float]], waiting: list[tuple[int, float]]
) -> None:
    """Of every draw: nobody of the highest rank yields, and none of those needlessly.

    The room that victims leave holds at least one pod that waits of a higher rank than theirs.
    """
    nodes = [machine("a", 6), machine("b", 6)]
    free = {"a": 6, "b": 6}
    pods = []
    for number, (cpus, rank) in enumerate(bound):
        place = max(free, key=lambda name: free[name])
        if free[place] >= cpus:
            free[place] -= cpus
            pods.append(a_pod(f"p{number}", cpus, rank, place))
    ahead = [a_pod(f"w{number}", *each) for number, each in enumerate(waiting)]
    victims = yielding([*pods, *ahead], nodes)
    assert len({each.pod.uid for each in victims}) == len(victims)
    if not victims:
        return
    assert max(each.rank for each in victims) < max(each.rank for each in ahead)
    total = sum((each.pod.needs["cpu"] for each in ahead), Fraction())
    assert sum((each.pod.needs["cpu"] for each in victims), Fraction()) < total + 4 * len(ahead)
    assert total > min(free.values())


def test_a_command_is_told_numbers(tmp_path: Path) -> None:
    """Of each type; what it says when it fails is the error."""
    told = tmp_path / "told"
    write = f"import sys; open({str(told)!r}, 'a').write(' '.join(sys.argv[1:]) + ';')"
    numbers = {Pool("a/m2", 2, 10.0): 3, Pool("b/m2", 1, 10.0): 1}
    nothing: Any = None
    asyncio.run(Maker(nothing, Pools("command", (sys.executable, "-c", write))).ask(numbers, []))
    assert told.read_text() == "a/m2 3;b/m2 1;"
    fails = Pools("command", (sys.executable, "-c", "raise SystemExit('no quota')"))
    with pytest.raises(OSError, match="a/m2 3 ended with 1: no quota"):
        asyncio.run(Maker(nothing, fails).ask(numbers, []))
