"""Preference: where a job runs best, and how many times longer it runs anywhere else."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum

from foresail.model.cluster import Node
from foresail.model.errors import InputError
from foresail.model.named_partitions import belongs


class PreferenceKind(StrEnum):
    """What the tasks of a job want of the nodes they run on."""

    PARTITION = "partition"
    ATTRIBUTE = "attribute"
    SAME = "same"
    SPREAD = "spread"


@dataclass(frozen=True, slots=True)
class Preference:
    """Where a job runs best.

    Raises
    ------
    InputError
        If nothing is named or the slowdown is below 1.
    """

    kind: PreferenceKind
    """``PARTITION``: all tasks in these partitions. ``ATTRIBUTE``: all on nodes that have one of
    these attributes. ``SAME``: all on nodes with the same value of this attribute (a rack).
    ``SPREAD``: no two tasks on nodes with the same value of it."""
    names: tuple[str, ...]
    """Partitions or attributes, at least one."""
    slowdown: float = 1.0
    """How many times longer it runs where that is not given; at least 1."""

    def __post_init__(self) -> None:
        if not self.names or not all(self.names):
            raise InputError(
                "no names", field="preferred", value=self.text, expected="kind:name,..."
            )
        if not 1.0 <= self.slowdown < math.inf:
            raise InputError(
                "not a slowdown",
                field="slowdown_elsewhere",
                value=self.slowdown,
                expected="1 or more",
            )

    @property
    def text(self) -> str:
        """As the jobs table has it: ``partition:a,b``."""
        return f"{self.kind}:{','.join(self.names)}"

    @classmethod
    def parse(cls, text: str, slowdown: float = 1.0) -> Preference:
        """The preference that a text of the jobs table names.

        Raises
        ------
        InputError
            If it is none.
        """
        kind, _, names = text.partition(":")
        if kind not in set(PreferenceKind):
            raise InputError(
                "not a preference",
                field="preferred",
                value=text,
                expected=", ".join(f"{each}:name,..." for each in PreferenceKind),
            )
        return cls(PreferenceKind(kind), tuple(name.strip() for name in names.split(",")), slowdown)

    def holds(self, tasks_by_node: Iterable[tuple[Node, str, int]]) -> bool:
        """Whether a placement is a preferred one.

        Parameters
        ----------
        tasks_by_node
            Node, name of its partition, and how many tasks it is given.
        """
        placed = list(tasks_by_node)
        match self.kind:
            case PreferenceKind.PARTITION:
                return all(belongs(record, self.names) for _, record, _ in placed)
            case PreferenceKind.ATTRIBUTE:
                return all(_has_any(node.attributes, self.names) for node, _, _ in placed)
            case PreferenceKind.SAME:
                values = {node.attributes.get(self.names[0]) for node, _, _ in placed}
                return len(values) == 1 and None not in values
            case PreferenceKind.SPREAD:
                values = {node.attributes.get(self.names[0]) for node, _, _ in placed}
                alone = all(tasks == 1 for _, _, tasks in placed)
                return alone and len(values) == len(placed) and None not in values


def _has_any(attributes: Mapping[str, str], names: tuple[str, ...]) -> bool:
    return any(name in attributes for name in names)
