"""All analyses, or some by name, on a workload."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from foresail.analysis.finding import Analysis, Finding, Unavailable
from foresail.model.registry import Entry, entries, find
from foresail.traces.workload import Workload


@dataclass(frozen=True)
class Analysed:
    """What the analyses found on a log, in the order of the study; or what it lacks.

    ``span_seconds`` is from the first submission to the last.
    """

    log: str
    jobs: int
    span_seconds: float
    findings: tuple[Finding | Unavailable, ...]

    def finding(self, name: str) -> Finding | None:
        """What the analysis of this name found, if it was asked and could answer."""
        for found in self.findings:
            if found.name == name and isinstance(found, Finding):
                return found
        return None


def analyse(
    workload: Workload,
    log: str,
    names: Sequence[str] = (),
    progress: Callable[[int, int], None] | None = None,
) -> Analysed:
    """Ask a workload of any number of jobs everything, or in this order what is named.

    ``log`` is what to call it; ``progress`` is called with how many are done, and of how many.

    Raises
    ------
    UnknownNameError
        If there is no analysis of a name.
    """
    asked = chosen(names)
    findings = []
    for done, entry in enumerate(asked):
        if progress is not None:
            progress(done, len(asked))
        findings.append(_ask(entry, workload))
    submit = workload.jobs["submit_seconds"].drop_nulls().to_numpy()
    return Analysed(
        log=log,
        jobs=len(workload),
        span_seconds=float(submit.max() - submit.min()) if submit.size else 0.0,
        findings=tuple(findings),
    )


def chosen(names: Sequence[str]) -> list[Entry]:
    """The analyses of these names; all of them, by section of the study, if none is named.

    Raises
    ------
    UnknownNameError
        If there is no analysis of a name.
    """
    if names:
        return [find("analysis", name) for name in dict.fromkeys(names)]
    return sorted(entries("analysis"), key=lambda entry: (_section(entry), entry.name))


def _ask(entry: Entry, workload: Workload) -> Finding | Unavailable:
    analysis: Analysis = entry.build(entry.parameters())
    return analysis.examine(workload)


def _section(entry: Entry) -> tuple[float, ...]:
    """Where the study treats it; analyses that do not say come last."""
    section = getattr(entry.build, "section", None)
    return tuple(float(part) for part in section.split(".")) if section else (float("inf"),)
