"""Groups of pods that start together: which one a pod names, how many it has, how they are packed.

A group is one job whose tasks are alike. Where its pods are not, a task is a bundle of pods that go
to one node, and asks for as much as the largest bundle.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Final, TypeAlias

from foresail.model.cluster import Resources
from foresail_kubernetes import wire

_NAMES: Final = (
    "scheduling.x-k8s.io/pod-group",
    "kueue.x-k8s.io/pod-group-name",
    "scheduling.k8s.io/group-name",
)
"""Labels, or annotations, that name the group of a pod, after ``spec.schedulingGroup``: of the
scheduler plug-ins, of Kueue, of Volcano."""
_COUNT: Final = "kueue.x-k8s.io/pod-group-total-count"
_NAME_FORM: Final = re.compile(r"[A-Za-z0-9](?:[-A-Za-z0-9_.]{0,98}[A-Za-z0-9])?", re.ASCII)
_COUNT_FORM: Final = re.compile(r"[1-9]\d{0,4}", re.ASCII)

Bundles: TypeAlias = tuple[tuple[str, ...], ...]
"""Uids of pods that go to one node each."""


def group_of(of: wire.WirePod) -> tuple[str, int | None, str]:
    """Return the group that a pod names, how many pods that has if it says so, and why not."""
    own = of.spec.scheduling_group
    said = {**(of.metadata.annotations or {}), **(of.metadata.labels or {})}
    names = own.pod_group_name if own else "", *(said.get(each, "") for each in _NAMES)
    name = next(filter(None, names), "")
    if not name:
        return "", None, ""
    if not _NAME_FORM.fullmatch(name):
        return "", None, f"{name[:40]!r} is no name of a group of pods"
    count = said.get(_COUNT, "")
    if count and not _COUNT_FORM.fullmatch(count):
        return name, None, f"{_COUNT}: {count[:40]!r} is no number of pods"
    return name, int(count) if count else None, ""


def stem_of(namespace: str, group: str) -> str:
    """Return how the ids of jobs of a group begin, before ``+``; empty without a group."""
    return f"{namespace}.{group}".replace("_", "-") if group else ""


def least_of(of: wire.PodGroup) -> int:
    """Return how many pods of a group start together; 1 where they start one by one."""
    policy = of.spec.scheduling_policy
    if policy is not None:
        return max(1, policy.gang.min_count or 1) if policy.gang else 1
    return max(1, of.spec.min_member or 1)


def bundled(
    requests: Mapping[str, Resources], rooms: Sequence[Resources]
) -> tuple[Resources, Bundles]:
    """Return what a task of a group asks for, and its tasks: pods, by uid, that go to one node.

    Whatever node has room for a task has room for any of the bundles. Of ways to bundle, the one
    that takes the least share of all nodes, whose room each is given.
    """
    kinds: dict[Resources, list[str]] = {}
    for uid in sorted(requests):
        kinds.setdefault(requests[uid], []).append(uid)
    if len(kinds) == 1:
        return next(iter(kinds)), tuple((uid,) for uid in sorted(requests))
    total = sum(rooms, Resources())
    counts = Counter({kind: len(uids) for kind, uids in kinds.items()})
    packed = [(unit, [*_packed(counts, unit)]) for unit in _units(counts, rooms)]
    unit, patterns = min(packed, key=lambda each: _share(each[0] * len(each[1]), total))
    left = {kind: iter(uids) for kind, uids in kinds.items()}
    return unit, tuple(
        tuple(next(left[kind]) for kind, times in pattern.items() for _ in range(times))
        for pattern in patterns
    )


def _units(counts: Counter[Resources], rooms: Sequence[Resources]) -> Iterator[Resources]:
    """Yield sizes of a task: as large as the largest pod, or as some of those that are alike most.

    The latter alone, or with one of each other beside them.
    """
    highest = _highest(counts)
    common, most = max(counts.items(), key=lambda each: (each[1], _size(each[0])))
    others = sum((kind for kind in counts if kind != common), Resources())
    yield highest
    times = 1
    while times <= most:
        found = [_highest([highest, common * times]), others + common * times]
        fitting = [each for each in found if any(each.fits_in(room) for room in rooms)]
        if not fitting:
            return
        yield from fitting
        times *= 2


def _packed(counts: Counter[Resources], unit: Resources) -> Iterator[dict[Resources, int]]:
    """Yield what each bundle holds: of the largest pods as many as fit, then of the next."""
    left = {kind: counts[kind] for kind in sorted(counts, key=_size, reverse=True)}
    while left:
        room, pattern = unit, dict[Resources, int]()
        for kind, count in left.items():
            while pattern.get(kind, 0) < count and kind.fits_in(room):
                room = room - kind
                pattern[kind] = pattern.get(kind, 0) + 1
        times = min(left[kind] // taken for kind, taken in pattern.items())
        for _ in range(times):
            yield pattern
        left = {
            kind: rest
            for kind, count in left.items()
            if (rest := count - times * pattern.get(kind, 0))
        }


def _highest(parts: Sequence[Resources] | Counter[Resources]) -> Resources:
    return Resources(
        max(each.cpus for each in parts),
        max(each.memory_bytes for each in parts),
        max(each.gpus for each in parts),
    )


def _size(of: Resources) -> tuple[float, float, float]:
    return of.gpus, of.cpus, of.memory_bytes


def _share(of: Resources, total: Resources) -> float:
    """Return the largest share that amounts are of a total."""
    return max(
        part / whole if whole else part * float("inf") if part else 0.0
        for part, whole in zip(_size(of), _size(total), strict=True)
    )
