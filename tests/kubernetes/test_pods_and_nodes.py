"""Pods and nodes as records: what they need, where they may go, what they wish."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from foresail.model.cluster import Resources
from foresail.model.words import CLUSTER_JOB_ID
from foresail_kubernetes import wire
from foresail_kubernetes.observing import PREFIX
from foresail_kubernetes.quantities import at_least_something, quantity, resources
from foresail_kubernetes.records import KubernetesNode, Pod, allows, node_of, pod_of

POD = msgspec.json.Decoder(wire.WirePod)
NODE = msgspec.json.Decoder(wire.WireNode)
UID = "6961bc5e-b300-4c63-8a3d-0e3f6f0d9a51"


def read(
    spec: dict[str, Any] | None = None,
    status: dict[str, Any] | None = None,
    **metadata: Any,
) -> Pod:
    """A pod as the API would say it."""
    meta = {"name": "one", "namespace": "lab", "uid": UID, **metadata}
    document = {"metadata": meta, "spec": spec or {}, "status": status or {}}
    return pod_of(POD.decode(msgspec.json.encode(document)))


def asking(**requests: str) -> dict[str, Any]:
    names = {name.replace("_", "/"): text for name, text in requests.items()}
    return {"name": "c", "image": "x", "resources": {"requests": names}}


def node(name: str = "n1", unschedulable: bool = False, ready: str = "True", **more: Any):
    taints = more.pop("taints", [])
    document = {
        "metadata": {"name": name, "labels": more},
        "spec": {"unschedulable": unschedulable, "taints": taints},
        "status": {
            "allocatable": {"cpu": "7910m", "memory": "30Gi", "nvidia.com/gpu": "2", "pods": "110"},
            "conditions": [{"type": "Ready", "status": ready}],
        },
    }
    return node_of(NODE.decode(msgspec.json.encode(document)))


@pytest.mark.parametrize(
    ("text", "amount"),
    [
        ("100m", Fraction(1, 10)),
        ("1.5Gi", Fraction(3 * 2**29)),
        ("2e3", Fraction(2000)),
        ("1E", Fraction(10**18)),
        ("1Ei", Fraction(2**60)),
        (".5", Fraction(1, 2)),
        ("5.", Fraction(5)),
        ("250u", Fraction(1, 4000)),
        ("12k", Fraction(12000)),
        ("0", Fraction(0)),
    ],
)
def test_quantities_are_read_as_the_api_writes_them(text: str, amount: Fraction) -> None:
    """Suffixes of both kinds, and powers of ten."""
    assert quantity(text) == amount


@pytest.mark.parametrize(
    "text", ["", "1 Gi", "Gi", "1KI", "ten", "1e400", "9" * 99, "\u0663", "1\n"]
)
def test_what_is_no_quantity_is_refused(text: str) -> None:
    """Foreign digits, too many of them, and blanks."""
    with pytest.raises(ValueError, match="is no quantity"):
        quantity(text)


def test_cpus_add_up_exactly() -> None:
    """Eighty pods of 100m fill eight cpus, and no more of them fit."""
    tenth = resources({"cpu": quantity("100m")})
    total = sum([tenth] * 80, Resources())
    room = resources({"cpu": quantity("8")})
    assert total.fits_in(room)
    assert not (total + tenth).fits_in(room)
    assert not (total + resources({"cpu": quantity("1m")})).fits_in(room)
    assert tenth.cpus == pytest.approx(0.1, abs=1e-6)
    assert at_least_something(Resources()).cpus > 0.0
    assert at_least_something(tenth) == tenth


def test_a_pod_needs_what_its_scheduler_counts() -> None:
    """Containers together, or an init container if that asks for more; sidecars stay, overhead too.

    By the rules of the Kubernetes documentation on init and sidecar containers, by hand: main
    1 + 0.5, beside the sidecar's 0.2: 1.7; the init container after it 3 + 0.2; overhead 0.25.
    """
    spec = {
        "containers": [asking(cpu="1", memory="1Gi"), asking(cpu="500m")],
        "initContainers": [
            asking(cpu="2", memory="4Gi"),
            asking(cpu="200m", memory="1Gi") | {"restartPolicy": "Always"},
            asking(cpu="3"),
        ],
        "overhead": {"cpu": "250m", "memory": "100"},
    }
    needs = read(spec).needs
    assert needs == {"cpu": Fraction(345, 100), "memory": Fraction(4 * 2**30 + 100)}
    assert read(spec | {"resources": {"requests": {"cpu": "5"}}}).needs["cpu"] == Fraction(525, 100)
    assert read({"containers": [asking(**{"nvidia.com_gpu": "2"})]}).request.gpus == 2.0


@pytest.mark.parametrize(
    ("more", "why"),
    [
        ({"containers": [asking(**{"example.com_fpga": "1"})]}, "needs 'example.com/fpga'"),
        ({"containers": [asking(cpu="lots")]}, "asks for what is not understood"),
        ({"schedulingGates": [{"name": "a/b"}]}, "waits for a scheduling gate"),
        ({"resourceClaims": [{"name": "gpu"}]}, "claims devices"),
        ({"workloadRef": {"name": "w", "podGroup": "g"}}, "names its group as 1.35 alone did"),
        ({"volumes": [{"persistentVolumeClaim": {"claimName": "a"}}]}, "has a volume"),
        (
            {
                "affinity": {
                    "podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [{}]}
                }
            },
            "wants to be near",
        ),
        ({"topologySpreadConstraints": [{"whenUnsatisfiable": "DoNotSchedule"}]}, "to be spread"),
        ({"containers": [asking() | {"ports": [{"hostPort": 80}]}]}, "needs a port"),
        ({"volumes": [{"emptyDir": {}}], "topologySpreadConstraints": []}, ""),
        ({"topologySpreadConstraints": [{"whenUnsatisfiable": "ScheduleAnyway"}]}, ""),
    ],
)
def test_what_is_not_understood_is_left_to_the_cluster(more: dict[str, Any], why: str) -> None:
    """With the reason; what is only wished for is no reason."""
    aside = read({"containers": [asking(cpu="1")], **more}).aside
    assert (why in aside) if why else not aside


def test_nodes_say_what_they_have_and_whether_they_are_used() -> None:
    """By allocatable, readiness, cordon and the taints of conditions; their pool by a label."""
    plain = node(pool="fixed")
    assert (plain.pool, plain.is_usable, plain.total.gpus) == ("fixed", True, 2.0)
    assert plain.total.cpus == pytest.approx(7.91, abs=1e-6)
    assert node().pool == "nodes"
    assert node(**{"karpenter.sh/nodepool": "spot", "pool": "x"}).pool == "spot"
    assert not node(unschedulable=True).is_usable
    assert not node(ready="Unknown").is_usable
    pressed = [{"key": "node.kubernetes.io/disk-pressure", "effect": "NoSchedule"}]
    assert not node(taints=pressed).is_usable
    assert node(taints=[{"key": "node.kubernetes.io/x", "effect": "PreferNoSchedule"}]).is_usable
    assert node(taints=[{"key": "team", "value": "a", "effect": "NoSchedule"}]).is_usable


TEAM = [{"key": "team", "value": "a", "effect": "NoSchedule"}]


@pytest.mark.parametrize(
    ("toleration", "allowed"),
    [
        (None, False),
        ({"key": "team", "operator": "Equal", "value": "a"}, True),
        ({"key": "team", "value": "a", "effect": "NoSchedule"}, True),
        ({"key": "team", "value": "b"}, False),
        ({"key": "team", "operator": "Exists"}, True),
        ({"key": "team", "operator": "Exists", "effect": "NoExecute"}, False),
        ({"operator": "Exists"}, True),
        ({"key": "other", "operator": "Exists"}, False),
    ],
)
def test_tolerations(toleration: dict[str, str] | None, allowed: bool) -> None:
    """Tolerations match taints as those of Kubernetes do."""
    pod = read({"tolerations": [toleration] if toleration else []})
    assert allows(pod, node(taints=TEAM)) is allowed
    assert allows(pod, node())


@pytest.mark.parametrize(
    ("operator", "values", "names"),
    [
        ("In", ["r1", "r3"], {"a"}),
        ("NotIn", ["r1"], {"b", "c"}),
        ("Exists", [], {"a", "b"}),
        ("DoesNotExist", [], {"c"}),
    ],
)
def test_selectors(operator: str, values: list[str], names: set[str]) -> None:
    """Required affinity to nodes, with the plain selector beside it."""
    there = [node("a", rack="r1", size="9"), node("b", rack="r2", size="10"), node("c")]
    condition = {"key": "rack", "operator": operator, "values": values}
    assert chosen(there, condition) == names
    assert chosen(there, condition, size="10") == names & {"b"}


def test_selectors_by_number_and_name() -> None:
    """Numbers as numbers; a term without conditions holds for no node; terms are alternatives."""
    there = [node("a", size="9"), node("b", size="10"), node("c", size="x")]
    assert chosen(there, {"key": "size", "operator": "Gt", "values": ["9"]}) == {"b"}
    assert chosen(there, {"key": "size", "operator": "Lt", "values": ["10"]}) == {"a"}
    by_name = {"key": "metadata.name", "operator": "In", "values": ["c"]}
    terms: list[dict[str, Any]] = [{"matchFields": [by_name]}, {}]
    assert matched(there, terms) == {"c"}
    assert matched(there, [{}]) == set()
    size = {"key": "size", "operator": "In", "values": ["9"]}
    assert matched(there, [*terms, {"matchExpressions": [size]}]) == {"a", "c"}


def chosen(there: list[KubernetesNode], condition: dict[str, Any], **labels: str) -> set[str]:
    return matched(there, [{"matchExpressions": [condition]}], **labels)


def matched(there: list[KubernetesNode], terms: list[Any], **labels: str) -> set[str]:
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}
    pod = read({"affinity": {"nodeAffinity": required}, "nodeSelector": labels})
    return {each.name for each in there if allows(pod, each)}


def owned(kind: str, name: str) -> list[dict[str, Any]]:
    return [{"kind": kind, "name": name, "controller": True}]


@pytest.mark.parametrize(
    ("metadata", "application"),
    [
        ({"ownerReferences": owned("Job", "train")}, "train"),
        ({"ownerReferences": owned("Job", "nightly-28123456")}, "nightly"),
        ({"ownerReferences": owned("Job", "sweep-x7k2p")}, "sweep"),
        ({"ownerReferences": owned("Job", "step-batch")}, "step-batch"),
        ({"ownerReferences": owned("ReplicaSet", "web-6d4cf56db6")}, "web"),
        (
            {
                "ownerReferences": owned("ReplicaSet", "web-aa-1"),
                "labels": {"pod-template-hash": "1"},
            },
            "web-aa",
        ),
        ({"labels": {"app": "fit", "app.kubernetes.io/name": "fit-all"}}, "fit-all"),
        ({"labels": {"app": "fit"}}, "fit"),
        ({"ownerReferences": [{"kind": "Job", "name": "x"}]}, "render"),
        ({}, "render"),
    ],
)
def test_applications(metadata: dict[str, Any], application: str) -> None:
    """The owner without what changes, then a label, then the image."""
    image = {"containers": [{"image": "registry.example:5000/lab/render:1.2@sha256:00"}]}
    assert read(image, **metadata).application == application


def test_ids_are_of_one_pod() -> None:
    """A random name comes once; any other has some of the uid, however long it is."""
    generated = read(name="train-x7k2p", generateName="train-")
    assert generated.job_id == "lab.train-x7k2p"
    assert read(name="web-0", generateName="web-").job_id == "lab.web-0+6961bc5e"
    assert read(name="bare").job_id == "lab.bare+6961bc5e"
    long = read(name="a" * 253, namespace="b" * 63)
    for each in (generated, long):
        assert CLUSTER_JOB_ID.fullmatch(PREFIX + each.job_id)


def test_limits_by_the_pod_then_by_its_queue() -> None:
    """Seconds that are no number of them are none."""
    label = {"kueue.x-k8s.io/max-exec-time-seconds": "600"}
    assert read({"activeDeadlineSeconds": 60}, labels=label).limit_seconds == 60.0
    assert read(labels=label).limit_seconds == 600.0
    for text in ("0", "-1", "1e9", "\u0661", "9" * 20, "600 "):
        assert read(labels={"kueue.x-k8s.io/max-exec-time-seconds": text}).limit_seconds is None


def wishing(**texts: str) -> Pod:
    return read(annotations={f"foresail.io/{name}": text for name, text in texts.items()})


def test_deadlines_and_worth() -> None:
    """UTC where no offset is said; a pod's worth is ten at most."""
    value = wishing(deadline="2026-12-01T18:00:00Z").value
    assert value is not None
    assert (value.deadline_seconds, value.value) == (1796148000.0, 1.0)
    for text in ("2026-12-01T18:00", "2026-12-01 19:00:00+01:00"):
        assert wishing(deadline=text).value == value
    much = wishing(deadline="2026-12-01T18:00:00Z", worth="1000").value
    assert much is not None
    assert much.value == 10.0
    assert "no number" in wishing(deadline="2026-12-01T18:00:00Z", worth="-1").refused
    assert "counts only with" in wishing(worth="3").refused
    assert "no time" in wishing(deadline="tomorrow").refused
    assert not wishing().refused


@given(st.text(max_size=300), st.text(max_size=300))
def test_hostile_wishes_end_nothing(deadline: str, worth: str) -> None:
    """Whatever is said, a pod has a sound value within its bounds, or a short sentence why not."""
    pod = wishing(deadline=deadline, worth=worth)
    assert (pod.value is None) is bool(pod.refused)
    assert len(pod.refused) < 400
    if pod.value is not None:
        assert 0.0 <= pod.value.value <= 10.0


@given(
    st.from_regex(r"\d{4}-\d\d-\d\d[T ][0-9:.]{4,15}(Z|[+-]\d\d:?\d\d)?", fullmatch=True),
    st.from_regex(r"\d{1,9}(\.\d{1,9})?", fullmatch=True),
)
def test_wishes_that_look_sound_end_nothing(deadline: str, worth: str) -> None:
    """Months and hours that there are not among them."""
    pod = wishing(deadline=deadline, worth=worth)
    assert (pod.value is None) is bool(pod.refused)
