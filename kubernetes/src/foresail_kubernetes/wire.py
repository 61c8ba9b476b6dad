"""Objects of the API as far as they are read; all else is skipped where they are decoded."""

from __future__ import annotations

from datetime import datetime
from typing import Generic, TypeVar

import msgspec

Kind = TypeVar("Kind")


class Wire(msgspec.Struct, rename="camel", gc=False, frozen=True):
    """An object whose fields may be missing."""


class Anything(Wire, frozen=True):
    """Object of which it counts only that it is there."""


class Owner(Wire, frozen=True):
    """Object that another belongs to."""

    kind: str = ""
    name: str = ""
    uid: str = ""
    controller: bool = False


class Metadata(Wire, frozen=True):
    """Metadata of an object."""

    name: str = ""
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""
    generate_name: str = ""
    creation_timestamp: datetime | None = None
    deletion_timestamp: datetime | None = None
    labels: dict[str, str] | None = None
    annotations: dict[str, str] | None = None
    owner_references: list[Owner] | None = None


class Needs(Wire, frozen=True):
    """Resources that a container, or a pod, asks for."""

    requests: dict[str, str] | None = None
    claims: list[Anything] | None = None


class Port(Wire, frozen=True):
    """Port of a container."""

    host_port: int = 0


class Container(Wire, frozen=True):
    """Container, or one that comes before these."""

    image: str = ""
    resources: Needs = Needs()
    ports: list[Port] | None = None
    restart_policy: str = ""


class Expression(Wire, frozen=True):
    """Condition on a label, or a field, of a node."""

    key: str = ""
    operator: str = ""
    values: list[str] | None = None


class Term(Wire, frozen=True):
    """Conditions that hold together."""

    match_expressions: list[Expression] | None = None
    match_fields: list[Expression] | None = None


class Selector(Wire, frozen=True):
    """Terms of which one holds."""

    node_selector_terms: list[Term] | None = None


class OfNodes(Wire, frozen=True):
    """Affinity of a pod to nodes."""

    required_during_scheduling_ignored_during_execution: Selector | None = None


class OfPods(Wire, frozen=True):
    """Affinity of a pod to others, or its opposite."""

    required_during_scheduling_ignored_during_execution: list[Anything] | None = None


class Affinity(Wire, frozen=True):
    """Affinities of a pod."""

    node_affinity: OfNodes | None = None
    pod_affinity: OfPods | None = None
    pod_anti_affinity: OfPods | None = None


class Toleration(Wire, frozen=True):
    """Taints that a pod tolerates."""

    key: str = ""
    operator: str = ""
    value: str = ""
    effect: str = ""


class Taint(Wire, frozen=True):
    """Taint of a node."""

    key: str = ""
    value: str = ""
    effect: str = ""


class Volume(Wire, frozen=True):
    """Volume of a pod, where it may tie that to a place."""

    persistent_volume_claim: Anything | None = None
    ephemeral: Anything | None = None


class Spread(Wire, frozen=True):
    """Constraint on how pods are spread."""

    when_unsatisfiable: str = ""


class SchedulingGroup(Wire, frozen=True):
    """Group that a pod starts with."""

    pod_group_name: str = ""


class Gate(Wire, frozen=True):
    """Gate that is to open before a pod is scheduled."""

    name: str = ""


class PodSpec(Wire, frozen=True):
    """Specification of a pod."""

    node_name: str = ""
    scheduler_name: str = ""
    service_account_name: str = ""
    restart_policy: str = ""
    priority: int = 0
    active_deadline_seconds: int | None = None
    containers: list[Container] | None = None
    init_containers: list[Container] | None = None
    overhead: dict[str, str] | None = None
    resources: Needs = Needs()
    node_selector: dict[str, str] | None = None
    affinity: Affinity | None = None
    tolerations: list[Toleration] | None = None
    volumes: list[Volume] | None = None
    topology_spread_constraints: list[Spread] | None = None
    scheduling_gates: list[Gate] | None = None
    scheduling_group: SchedulingGroup | None = None
    resource_claims: list[Anything] | None = None
    workload_ref: Anything | None = None


class Condition(Wire, frozen=True):
    """Condition of a pod or a node."""

    type: str = ""
    status: str = ""
    reason: str = ""
    last_transition_time: datetime | None = None


class Terminated(Wire, frozen=True):
    """End of a container."""

    exit_code: int | None = None
    finished_at: datetime | None = None


class ContainerState(Wire, frozen=True):
    """State of a container."""

    terminated: Terminated | None = None


class ContainerStatus(Wire, frozen=True):
    """Status of a container."""

    state: ContainerState = ContainerState()


class PodStatus(Wire, frozen=True):
    """Status of a pod."""

    phase: str = ""
    reason: str = ""
    start_time: datetime | None = None
    conditions: list[Condition] | None = None
    container_statuses: list[ContainerStatus] | None = None


class WirePod(Wire, frozen=True):
    """Pod."""

    metadata: Metadata = Metadata()
    spec: PodSpec = PodSpec()
    status: PodStatus = PodStatus()


class NodeSpec(Wire, frozen=True):
    """Specification of a node."""

    unschedulable: bool = False
    taints: list[Taint] | None = None


class NodeStatus(Wire, frozen=True):
    """Status of a node."""

    allocatable: dict[str, str] | None = None
    conditions: list[Condition] | None = None


class WireNode(Wire, frozen=True):
    """Node."""

    metadata: Metadata = Metadata()
    spec: NodeSpec = NodeSpec()
    status: NodeStatus = NodeStatus()


class ListMetadata(Wire, frozen=True):
    """Metadata of a list."""

    resource_version: str = ""
    continue_: str = msgspec.field(name="continue", default="")


class Listed(Wire, Generic[Kind], frozen=True):
    """Page of a list."""

    metadata: ListMetadata = ListMetadata()
    items: list[Kind] = []


class Watched(Wire, frozen=True):
    """Event of a watch, whose object is still to be decoded."""

    type: str
    object: msgspec.Raw


class Status(Wire, frozen=True):
    """Answer of the API server where it refuses something."""

    code: int = 0
    message: str = ""


class Bookmark(Wire, frozen=True):
    """Object of which nothing but the version counts."""

    metadata: Metadata = Metadata()


class Gang(Wire, frozen=True):
    """Policy of a group whose pods start together."""

    min_count: int | None = None


class SchedulingPolicy(Wire, frozen=True):
    """Policy of a group: its pods start together, or one by one."""

    gang: Gang | None = None
    basic: Anything | None = None


class PodGroupSpec(Wire, frozen=True):
    """Specification of a group, by whichever API it is of."""

    min_member: int | None = None
    scheduling_policy: SchedulingPolicy | None = None


class PodGroup(Wire, frozen=True):
    """Group of pods."""

    metadata: Metadata = Metadata()
    spec: PodGroupSpec = PodGroupSpec()


class ApiResource(Wire, frozen=True):
    """Resource that is served; a part of one may be of another API group."""

    name: str = ""
    group: str = ""
    version: str = ""


class ApiResources(Wire, frozen=True):
    """Resources of a version."""

    resources: list[ApiResource] = []


class ApiVersion(Wire, frozen=True):
    """Version of an API group."""

    version: str = ""


class ApiGroup(Wire, frozen=True):
    """API group that is served."""

    name: str = ""
    versions: list[ApiVersion] = []


class ApiGroups(Wire, frozen=True):
    """API groups that are served."""

    groups: list[ApiGroup] = []
