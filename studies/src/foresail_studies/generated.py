"""Workloads of studies, generated or of a log, kept for the next run that asks for the same."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path
from typing import Final

from foresail.model.short_form import part_of
from foresail.traces.filtering import apply_filters, choices_of
from foresail.traces.folder import load_workload
from foresail.traces.generating import generate
from foresail.traces.workload import Workload

_FILTERS: Final = ("drop_no_processors", "fill_processors", "drop_no_runtime")
"""How ``foresail cloud`` cleans a log."""


@lru_cache(maxsize=4)
def generated(text: str, seed: int) -> Workload:
    """The workload of a generator's short form, such as ``e2e(hours=2,load=1.6)``.

    Raises ``InputError`` if the short form is malformed, or a parameter or the seed is out of its
    range; ``UnknownNameError`` if there is no such generator.
    """
    part = part_of("generator", text)
    return generate(part.entry.name, part.parameters, seed)


@lru_cache(maxsize=1)
def log_of(text: str, seed: int) -> Workload:
    """The jobs of a log's path or of a generator's short form; kept for the next run.

    Raises ``InputError`` if the log cannot be read, or the short form is malformed;
    ``UnknownNameError`` if there is no such generator.
    """
    if not Path(text).exists():
        return generated(text, seed)
    return apply_filters(load_workload(Path(text)), choices_of(_FILTERS))
