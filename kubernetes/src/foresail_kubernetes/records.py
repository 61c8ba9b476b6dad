"""Pods and nodes as small frozen records, made once of what the API says of them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from fractions import Fraction
from typing import Final, TypeAlias

import msgspec

from foresail.model.cluster import Resources
from foresail.model.job import DeadlineValue
from foresail_kubernetes import groups, quantities, wire

DEADLINE: Final = "foresail.io/deadline"
WORTH: Final = "foresail.io/worth"
MOST_WORTH: Final = 10.0
"""A pod says no more of itself."""

_LIMIT: Final = "kueue.x-k8s.io/max-exec-time-seconds"
_QUEUE: Final = "kueue.x-k8s.io/queue-name"
_STATIC: Final = "kubernetes.io/config.mirror"
_APPLICATIONS: Final = ("app.kubernetes.io/name", "app", "job-name")
_POOLS: Final = (
    "karpenter.sh/nodepool",
    "cloud.google.com/gke-nodepool",
    "eks.amazonaws.com/nodegroup",
    "kubernetes.azure.com/agentpool",
    "pool",
)
"""Labels of nodes that name their pool; the first that a node has counts."""
_NO_POOL: Final = "nodes"

_WORTH_FORM: Final = re.compile(r"\d{1,9}(?:\.\d{1,9})?", re.ASCII)
_SECONDS_FORM: Final = re.compile(r"[1-9]\d{0,8}", re.ASCII)
_DEADLINE_FORM: Final = re.compile(
    r"\d{4}-\d\d-\d\d[T ][0-9:.]{4,15}(?:Z|[+-]\d\d:?\d\d)?", re.ASCII
)
_RANDOM: Final = re.compile(r"[bcdfghjklmnpqrstvwxz2456789]{5}", re.ASCII)
"""Suffix that the API server chooses for a name."""
_HASHED: Final = re.compile(r"-[bcdfghjklmnpqrstvwxz2456789]{8,10}", re.ASCII)
_TIMED: Final = re.compile(r"-\d{8,10}", re.ASCII)
_GENERATED: Final = re.compile(r"-[bcdfghjklmnpqrstvwxz2456789]{5}", re.ASCII)
"""Suffixes of what a Deployment, or a CronJob, owns, and of what was named by a beginning alone."""
_LONGEST_ID: Final = 180

_CONDITIONS: Final = "node.kubernetes.io/"
"""Beginning of the keys of taints that say in which condition a node is."""

Selector: TypeAlias = tuple[tuple[tuple[str, str, tuple[str, ...]], ...], ...]
"""Terms of which one holds, each of conditions (key, operator, values) that hold together."""


class Pod(msgspec.Struct, frozen=True, gc=False):
    """A pod: what it asks for, where it stands, and what is not understood of it."""

    uid: str
    namespace: str
    name: str
    version: str
    job_id: str
    """Id of the job that it is to Foresail, without the name of the cluster."""
    application: str
    owner: str
    """Uid of what creates it, and another in its place; empty if nothing does."""
    created_seconds: float
    account: str
    """Service account that it runs as."""
    scheduler: str
    node: str
    """Node that it is bound to; empty if to none."""
    phase: str
    priority: int
    needs: dict[str, Fraction]
    """Amounts by the name of the resource."""
    request: Resources
    limit_seconds: float | None
    value: DeadlineValue | None
    refused: str
    """Sentence on a wish that was not understood; empty if all were."""
    queue: str
    group: str
    """Group that it starts with; empty if it starts by itself."""
    group_count: int | None
    """Number of pods of that, if it says so."""
    gates: tuple[str, ...]
    """Gates that are to open before it is scheduled."""
    aside: str
    """Reason for which it is left to the cluster; empty if there is none."""
    selector: Selector
    tolerations: tuple[tuple[str, str, str, str], ...]
    is_of_node: bool
    """True if it belongs to its node: of a DaemonSet, or static."""
    is_service: bool
    """True if it is to run for ever."""
    is_leaving: bool
    bound_seconds: float | None
    end_seconds: float | None
    exit_code: int | None
    reason: str
    """Reason of its phase, in a word."""

    @property
    def has_ended(self) -> bool:
        """Return whether it holds nothing any more."""
        return self.phase in ("Succeeded", "Failed")

    @property
    def place(self) -> float:
        """Place in the queue: by priority, then by age."""
        return self.created_seconds - 1e10 * self.priority


class KubernetesNode(msgspec.Struct, frozen=True, gc=False):
    """A node: what it offers, and whether something new may start there."""

    name: str
    pool: str
    has: dict[str, Fraction]
    """Allocatable amounts by the name of the resource."""
    total: Resources
    labels: dict[str, str]
    taints: tuple[tuple[str, str, str], ...]
    is_usable: bool


def pod_of(of: wire.WirePod) -> Pod:
    """Return a pod as a record."""
    meta, spec, status = of.metadata, of.spec, of.status
    labels, notes = meta.labels or {}, meta.annotations or {}
    needs, unread = _needs(spec)
    value, refused = _value(notes)
    group, count, unknown = groups.group_of(of)
    owner = next((each for each in meta.owner_references or () if each.controller), None)
    ends = [each.state.terminated for each in status.container_statuses or ()]
    last = [each for each in ends if each is not None and each.finished_at is not None]
    codes = [each.exit_code for each in last if each.exit_code is not None]
    scheduled = [
        each.last_transition_time
        for each in status.conditions or ()
        if each.type == "PodScheduled" and each.status == "True"
    ]
    return Pod(
        meta.uid,
        meta.namespace,
        meta.name,
        meta.resource_version,
        job_id_of(meta),
        _application(meta, labels, owner, spec),
        owner.uid if owner is not None else "",
        seconds_of(meta.creation_timestamp) or 0.0,
        spec.service_account_name,
        spec.scheduler_name,
        spec.node_name,
        status.phase,
        spec.priority,
        needs,
        quantities.resources(needs),
        _limit(spec, labels, notes),
        value,
        refused or unknown,
        labels.get(_QUEUE, ""),
        group,
        count,
        tuple(each.name for each in spec.scheduling_gates or ()),
        unread or _aside(spec, needs),
        _selector(spec),
        tuple((t.key, t.operator, t.value, t.effect) for t in spec.tolerations or ()),
        (owner is not None and owner.kind in ("DaemonSet", "Node")) or _STATIC in notes,
        spec.restart_policy not in ("Never", "OnFailure"),
        meta.deletion_timestamp is not None,
        seconds_of(*scheduled[-1:]) or seconds_of(status.start_time),
        max((seconds_of(each.finished_at) or 0.0 for each in last), default=None),
        max(codes) if codes else None,
        status.reason,
    )


def node_of(of: wire.WireNode) -> KubernetesNode:
    """Return a node as a record; one whose amounts are not understood has none."""
    labels = of.metadata.labels or {}
    try:
        has = quantities.amounts(of.status.allocatable or {})
    except ValueError:
        has = {}
    taints = tuple((t.key, t.value, t.effect) for t in of.spec.taints or ())
    kept = {each for each in taints if each[0].startswith(_CONDITIONS) and each[2] != _SOFT}
    conditions = {each.type: each.status for each in of.status.conditions or ()}
    is_ready = conditions.get("Ready") == "True"
    return KubernetesNode(
        of.metadata.name,
        next((labels[each] for each in _POOLS if labels.get(each)), _NO_POOL),
        has,
        quantities.resources(has),
        labels,
        taints,
        is_ready and not of.spec.unschedulable and not kept,
    )


_SOFT: Final = "PreferNoSchedule"


def seconds_of(moment: datetime | None = None) -> float | None:
    """Return Unix seconds of a moment, if there is one."""
    return None if moment is None else moment.timestamp()


def allows(pod: Pod, node: KubernetesNode) -> bool:
    """Return whether a pod may run on a node, in whatever condition that is."""
    for key, value, effect in node.taints:
        if effect == _SOFT or key.startswith(_CONDITIONS):
            continue
        if not any(_tolerates(each, key, value, effect) for each in pod.tolerations):
            return False
    return not pod.selector or any(
        all(_holds(condition, node) for condition in term) for term in pod.selector
    )


def _tolerates(toleration: tuple[str, str, str, str], key: str, value: str, effect: str) -> bool:
    of, operator, wanted, against = toleration
    if against not in ("", effect):
        return False
    if operator == "Exists":
        return of in ("", key)
    return of == key and wanted == value


def _holds(condition: tuple[str, str, tuple[str, ...]], node: KubernetesNode) -> bool:
    key, operator, values = condition
    has = node.name if key == _NAME_FIELD else node.labels.get(key)
    match operator:
        case "In":
            return has in values
        case "NotIn":
            return has not in values
        case "Exists":
            return has is not None
        case "DoesNotExist":
            return has is None
        case "Gt" | "Lt":
            try:
                difference = int(has or "") - int(values[0])
            except (ValueError, IndexError):
                return False
            return difference > 0 if operator == "Gt" else difference < 0
        case _:
            return False


_NAME_FIELD: Final = "metadata.name of the object"
"""Key of conditions on the name of a node, which no label has."""


def _selector(spec: wire.PodSpec) -> Selector:
    plain = tuple(
        (key, "In", (value,)) for key, value in sorted((spec.node_selector or {}).items())
    )
    affinity = spec.affinity and spec.affinity.node_affinity
    required = affinity and affinity.required_during_scheduling_ignored_during_execution
    if not required:
        return (plain,) if plain else ()
    return tuple(
        (*plain, *_conditions(term))
        for term in required.node_selector_terms or ()
        if term.match_expressions or term.match_fields  # an empty one holds for no node
    ) or (((_NAME_FIELD, "DoesNotExist", ()),),)


def _conditions(term: wire.Term) -> Iterable[tuple[str, str, tuple[str, ...]]]:
    for each in term.match_expressions or ():
        yield each.key, each.operator, tuple(each.values or ())
    for each in term.match_fields or ():
        yield _NAME_FIELD, each.operator, tuple(each.values or ())


def _needs(spec: wire.PodSpec) -> tuple[dict[str, Fraction], str]:
    """Return what a pod needs, as its scheduler counts it, and why that is not known."""
    try:
        main = [quantities.amounts(each.resources.requests or {}) for each in spec.containers or ()]
        before: list[quantities.Amounts] = []
        peaks: list[quantities.Amounts] = []
        for each in spec.init_containers or ():
            own = quantities.amounts(each.resources.requests or {})
            peaks.append(quantities.added([*before, own]))
            if each.restart_policy == "Always":
                before.append(own)
        most = quantities.highest([quantities.added([*main, *before]), *peaks])
        most |= quantities.amounts(spec.resources.requests or {})
        return quantities.added([most, quantities.amounts(spec.overhead or {})]), ""
    except ValueError as error:
        return {}, f"asks for what is not understood: {error}"


def _aside(spec: wire.PodSpec, needs: Mapping[str, Fraction]) -> str:
    """Return why a pod is left to the cluster; empty if it is like any other."""
    others = sorted(needs.keys() - quantities.COUNTED)
    if others:
        return f"needs {others[0][:60]!r}"
    if spec.scheduling_gates:
        return "waits for a scheduling gate"
    if spec.workload_ref is not None:
        return "names its group as 1.35 alone did (workloadRef)"
    if spec.resource_claims or any(each.resources.claims for each in spec.containers or ()):
        return "claims devices"
    if any(each.persistent_volume_claim or each.ephemeral for each in spec.volumes or ()):
        return "has a volume that may be elsewhere"
    of_pods = spec.affinity and (spec.affinity.pod_affinity, spec.affinity.pod_anti_affinity)
    for each in of_pods or ():
        if each and each.required_during_scheduling_ignored_during_execution:
            return "wants to be near other pods, or far from them"
    spreads = spec.topology_spread_constraints or ()
    if any(each.when_unsatisfiable == "DoNotSchedule" for each in spreads):
        return "wants to be spread"
    ports = [port for each in spec.containers or () for port in each.ports or ()]
    return "needs a port of its node" if any(port.host_port for port in ports) else ""


def _limit(spec: wire.PodSpec, labels: Mapping[str, str], notes: Mapping[str, str]) -> float | None:
    if spec.active_deadline_seconds is not None and spec.active_deadline_seconds > 0:
        return float(spec.active_deadline_seconds)
    said = labels.get(_LIMIT, "") or notes.get(_LIMIT, "")
    return float(said) if _SECONDS_FORM.fullmatch(said) else None


def _value(notes: Mapping[str, str]) -> tuple[DeadlineValue | None, str]:
    """Return until when a pod is worth what, and why that is not understood."""
    due, worth = notes.get(DEADLINE), notes.get(WORTH, "1")
    if due is None:
        return None, f"{WORTH} counts only with {DEADLINE}" if WORTH in notes else ""
    if not _WORTH_FORM.fullmatch(worth):
        return None, f"{WORTH}: {worth[:40]!r} is no number from 0 to {MOST_WORTH:g}"
    form = f"{DEADLINE}: {due[:40]!r} is no time such as 2026-12-01T18:00:00Z"
    if not _DEADLINE_FORM.fullmatch(due):
        return None, form
    try:
        moment = datetime.fromisoformat(due)
        at = (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()
    except (ValueError, OverflowError):
        return None, form
    return DeadlineValue(at, min(float(worth), MOST_WORTH)), ""


def job_id_of(meta: wire.Metadata) -> str:
    """Return an id that no other pod gets: by its name, if that is not to come again."""
    stem, name = meta.generate_name, f"{meta.namespace}.{meta.name}"
    is_random = bool(stem) and meta.name.startswith(stem)
    if is_random and _RANDOM.fullmatch(meta.name, len(stem)) and len(name) <= _LONGEST_ID:
        return name
    return f"{name[:_LONGEST_ID]}+{meta.uid[:8]}"


def _application(
    meta: wire.Metadata,
    labels: Mapping[str, str],
    owner: wire.Owner | None,
    spec: wire.PodSpec,
) -> str:
    """Return what a pod runs: its owner without what changes, a label, its image, its name."""
    if owner is not None and owner.kind != "Node":
        name = owner.name
        if owner.kind == "ReplicaSet":
            name = name.removesuffix(f"-{labels.get('pod-template-hash', '')}")
        for form in (_HASHED, _TIMED, _GENERATED):
            stem = name[: name.rfind("-")] if "-" in name else name
            if stem and form.fullmatch(name, len(stem)):
                return stem
        return name
    for each in _APPLICATIONS:
        if labels.get(each):
            return labels[each]
    image = next((each.image for each in spec.containers or ()), "")
    return image.rpartition("/")[2].partition("@")[0].partition(":")[0] or meta.name
