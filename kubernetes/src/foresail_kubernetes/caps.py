"""Caps on the worth and deadlines of a namespace's pods, and the user whose they are."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Final

import msgspec

from foresail.model.errors import InputError
from foresail.model.job import DeadlineValue
from foresail_kubernetes.records import MOST_WORTH, Pod

_ALL_OTHERS: Final = "*"
_WHOSE: Final = re.compile(r"[*]|[a-z0-9]([-a-z0-9]*[a-z0-9])?(/[a-z0-9]([-.a-z0-9]*[a-z0-9])?)?")


class Cap(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Bounds of a namespace, or of a service account there."""

    worth: Annotated[float, msgspec.Meta(ge=0.0, le=MOST_WORTH)] = MOST_WORTH
    """Most that a pod is worth; 0: its deadlines do not count."""
    soonest_hours: Annotated[float, msgspec.Meta(ge=0.0, le=1e6)] = 0.0
    """Time from its creation before which no deadline of a pod is: sooner ones count as then."""
    user: Annotated[str, msgspec.Meta(pattern=r"^[A-Za-z0-9][A-Za-z0-9._@-]{0,63}$")] | None = None
    """User whose its jobs are; None: the one of its name."""


@dataclass(frozen=True, slots=True)
class Caps:
    """Bounds by namespace, or by ``NAMESPACE/ACCOUNT``; ``*`` are those of all others."""

    of: Mapping[str, Cap] = field(default_factory=dict)

    @classmethod
    def read(cls, path: str) -> Caps:
        """Read them from a file, a table for each namespace; raises ``InputError``."""
        name, table, found = "", object(), dict[str, Cap]()
        try:
            tables = msgspec.toml.decode(Path(path).read_bytes(), type=dict[str, dict[str, object]])
            for name, table in tables.items():
                if not _WHOSE.fullmatch(name):
                    raise ValueError("is the name of no namespace")
                found[name] = msgspec.convert(table, Cap)
        except (OSError, ValueError) as error:
            why = " ".join(str(error).split())
            raise InputError(
                f"{path}: [{name}]: {why}" if name else f"{path} cannot be read: {why}",
                field="caps",
                value=table if name else None,
                expected="for a namespace, its account or '*': worth, soonest_hours, user",
            ) from error
        return cls(found)

    def user(self, pod: Pod) -> str:
        """Return the user whose job a pod is."""
        return self._cap(pod).user or pod.namespace

    def value(self, pod: Pod) -> DeadlineValue | None:
        """Return until when a pod is worth what, as far as its namespace may say it."""
        cap, value = self._cap(pod), pod.value
        if value is None or not cap.worth:
            return None
        soonest = pod.created_seconds + 3600.0 * cap.soonest_hours
        return DeadlineValue(max(value.deadline_seconds, soonest), min(value.value, cap.worth))

    def _cap(self, pod: Pod) -> Cap:
        names = (f"{pod.namespace}/{pod.account}", pod.namespace, _ALL_OTHERS)
        return next((self.of[each] for each in names if each in self.of), Cap())
