"""The public Python interface: which modules are on which page. ``autodoc`` fills the pages."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Mapping
from typing import Any, Final, NamedTuple

from field_docs import field_docs
from sphinx.application import Sphinx

_BEFORE_NAPOLEON: Final = 400
_AFTER_NAPOLEON: Final = 600
_PLAIN: Final[dict[str, list[str]]] = {}
"""Texts of attributes by name, as they were before ``napoleon``."""


class Page(NamedTuple):
    """A page of the reference: its title, whom it is for, and its modules under ``foresail``."""

    title: str
    introduction: str
    modules: tuple[str, ...]


PAGES: Final[Mapping[str, Page]] = {
    "python-model": Page(
        "Jobs, clusters, decisions",
        "The vocabulary that everything else is written in: plain frozen records. It is promised; "
        "what the other pages describe may change before 1.0, with a line in the changelog.",
        (
            "model.job",
            "model.preference",
            "model.cluster",
            "model.view",
            "model.decision",
            "model.event",
            "model.errors",
        ),
    ),
    "python-plug-ins": Page(
        "Writing plug-ins",
        "The protocols that plug-ins fulfil, how they are registered and found, the signatures of "
        "compiled steps, and the suites that check a plug-in.",
        (
            "model.protocols",
            "model.adapter",
            "model.registry",
            "model.short_form",
            "live.cluster_plugin",
            "kernels.steps",
            "checks.rules",
            "checks.schedulers",
            "checks.predictors",
            "checks.readers",
            "checks.clusters",
        ),
    ),
    "python-distributions": Page(
        "Distributions",
        "Beliefs about a runtime: what each can be asked, how they are made and combined.",
        (
            "model.distribution",
            "distributions.basic",
            "distributions.log_normal",
            "distributions.truncated_normal",
            "distributions.empirical",
            "distributions.histogram",
            "distributions.operations",
            "distributions.quantiles",
            "distributions.summary",
        ),
    ),
    "python-logs": Page(
        "Logs and workloads",
        "Reading, filtering, generating and writing the jobs that are replayed.",
        (
            "traces.workload",
            "traces.schema",
            "traces.reading",
            "traces.folder",
            "traces.filtering",
            "traces.generating",
            "traces.swf_writer",
            "traces.schedule",
        ),
    ),
    "python-simulator": Page(
        "Replay and measure",
        "From a workload and a policy to a schedule, and from schedules to figures.",
        (
            "control.policy",
            "control.loop",
            "scenario.scenario",
            "scenario.beginning",
            "scenario.learned_before",
            "scenario.engines",
            "scenario.running",
            "scenario.by_events",
            "simulator.replay",
            "simulator.engine",
            "simulator.conditions",
            "metrics.jobs",
            "metrics.summary",
            "metrics.comparison",
            "metrics.usage",
            "metrics.statistics",
        ),
    ),
}


def connect(app: Sphinx) -> None:
    """Put right what ``autodoc`` cannot know of docstrings and protocols."""
    app.connect("autodoc-process-docstring", _keep_plain, priority=_BEFORE_NAPOLEON)
    app.connect("autodoc-process-docstring", _tell_of_fields, priority=_AFTER_NAPOLEON)
    app.connect("autodoc-process-docstring", _separate_plurals, priority=_AFTER_NAPOLEON)
    app.connect("autodoc-process-signature", _protocol_signature)


def _keep_plain(*arguments: Any) -> None:
    """``napoleon`` takes what stands before a colon for a type: texts of fields have none."""
    _, what, name, _, _, lines = arguments
    if what in ("attribute", "data"):
        _PLAIN[name] = list(lines)


def _tell_of_fields(*arguments: Any) -> None:
    """A text about several fields stands below the last of them, and names them all."""
    *_, name, _, _, lines = arguments
    if name not in _PLAIN:
        return
    lines[:] = _PLAIN.pop(name)
    owner, _, field = name.rpartition(".")
    module, _, record = owner.rpartition(".")
    found = getattr(sys.modules.get(module), record, None)
    for names, _ in field_docs(found) if isinstance(found, type) else ():
        if names[-1] == field and len(names) > 1:
            lines[0] = f"{', '.join(f'``{each}``' for each in names)}: {lines[0]}"


def _separate_plurals(*arguments: Any) -> None:
    """Code in the plural, as in ``STEP`` with an s behind it, needs a mark between the two."""
    lines: list[str] = arguments[-1]
    lines[:] = [re.sub(r"(``[^`]+``)(\w?)", _apart, line) for line in lines]


def _apart(found: re.Match[str]) -> str:
    return rf"{found[1]}\ {found[2]}" if found[2] else found[1]


def _protocol_signature(*arguments: Any) -> tuple[str, str] | None:
    """Nobody makes an object of a protocol, so that it has no arguments."""
    return ("", "") if arguments[-2] == "(*args, **kwargs)" else None


def python_pages() -> Iterator[tuple[str, str]]:
    """Each page's file and text."""
    for name, page in PAGES.items():
        yield f"{name}.md", _text(page)


def _text(page: Page) -> str:
    sections = [f"# {page.title}", page.introduction]
    for module in page.modules:
        directive = f".. automodule:: foresail.{module}\n   :members:\n   :member-order: bysource"
        sections.append(f"## `foresail.{module}`\n\n```{{eval-rst}}\n{directive}\n```")
    return "\n\n".join(sections) + "\n"
