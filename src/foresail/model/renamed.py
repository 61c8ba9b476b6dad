"""Words that users type and that have another name now.

The short names of publications stay good beside the long ones. A deprecated word is understood for
one version more, with a warning, which the command line prints as a note.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

PUBLISHED: Final[Mapping[str, Mapping[str, str]]] = MappingProxyType(
    {
        "scheduler": {"prio": "priority", "guarded": "guarded_backfilling"},
        "waiting policy": {
            "ajw": "all-jobs-wait",
            "njw": "no-jobs-wait",
            "ajw-t": "all-jobs-wait-threshold",
            "sww": "short-waits-wait",
            "ljw": "long-jobs-wait",
        },
    }
)
"""Long name by published short name, by the kind of word."""

DEPRECATED: Final[Mapping[str, Mapping[str, str]]] = MappingProxyType(
    {
        "scheduler": {"three_sigma": "3sigma"},
        "task_scheduler": {"fifo_tasks": "task_fifo"},
        "--conventions": {"foresail": "standard"},
        "order": {"pilot": "probe"},
    }
)
"""New word by old word, by the kind of word."""


class DeprecatedWordWarning(FutureWarning):
    """A word was typed that the next version does not know."""


def todays_name(kind: str, word: str) -> str:
    """The name that a word of this kind has now; a deprecated one is warned of."""
    new = DEPRECATED.get(kind, {}).get(word)
    if new is not None:
        warnings.warn(f"{kind} {word} is now called {new}", DeprecatedWordWarning, stacklevel=2)
        return new
    return PUBLISHED.get(kind, {}).get(word, word)


def with_short_name(kind: str, name: str) -> str:
    """A name as lists show it: with the short one of publications, if it has one."""
    short = [each for each, long in PUBLISHED.get(kind, {}).items() if long == name]
    return f"{name} ({short[0]})" if short else name
