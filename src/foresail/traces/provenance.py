"""Where figures come from: version, source and reader, and what was done to the source's rows."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from foresail import __version__
from foresail.traces.workload import Oddity, Workload


@dataclass(frozen=True, slots=True)
class Treatment:
    """Rows repaired, dropped, folded or filled in for one cause, and the first of them."""

    cause: str
    rows: int
    example: str | None


@dataclass(frozen=True, slots=True)
class Provenance:
    """All that was done between a source and figures of its jobs, and what is odd about these."""

    foresail: str
    source: str
    sha256: str | None
    reader: str
    jobs: int
    treated: tuple[Treatment, ...]
    findings: tuple[Oddity, ...]

    def as_json(self) -> dict[str, Any]:
        """The same for programs; ``findings`` stand beside it."""
        plain = asdict(self)
        findings = plain.pop("findings")
        return {"provenance": plain, "findings": findings}


def provenance_of(workload: Workload) -> Provenance:
    """Where figures of a workload come from, which was read and cleaned."""
    meta = workload.meta
    lost = {each.repair for each in meta.lost}
    done = [*sorted(meta.repairs.items()), *meta.filters]
    treated = [
        *(
            Treatment(f"{each.repair}: expected {each.expected}", each.rows, each.example)
            for each in meta.lost
        ),
        *(
            Treatment(cause, rows, meta.examples.get(cause))
            for cause, rows in done
            if rows and cause not in lost
        ),
    ]
    return Provenance(
        __version__,
        meta.source,
        meta.sha256,
        meta.reader,
        len(workload),
        tuple(treated),
        workload.findings,
    )
