"""The log of a study: a file, cleaned as ``foresail cloud`` cleans it, or a generated one."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path
from typing import Final

from foresail.experiments.generated import generated
from foresail.traces.filtering import apply_filters, choices_of
from foresail.traces.folder import load_workload
from foresail.traces.workload import Workload

_FILTERS: Final = ("fill_processors", "drop_no_runtime")


@lru_cache(maxsize=1)
def log_of(text: str, seed: int) -> Workload:
    """The jobs of a log's path or of a generator's short form; kept for the next run.

    Raises
    ------
    InputError
        If the log cannot be read, or the short form is malformed.
    UnknownNameError
        If there is no such generator.
    """
    if not Path(text).exists():
        return generated(text, seed)
    return apply_filters(load_workload(Path(text)), choices_of(_FILTERS))
