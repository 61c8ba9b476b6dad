"""Answers for programs: JSON objects of a stated version."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Any, Final

ANSWER_VERSION: Final = 1
"""Grows when a key leaves an answer or means something else, not when one is added."""


def json_answer(content: Mapping[str, Any]) -> str:
    """Return an answer as text: an object with its version first, null where a number is unknown.

    What has a version of its own keeps it.
    """
    told = {"version": ANSWER_VERSION, **_finite(content)}
    return json.dumps(told, indent=2, ensure_ascii=False, allow_nan=False)


def _finite(value: Any) -> Any:
    """Return a value with None for numbers that are not finite, throughout lists and objects."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {name: _finite(inner) for name, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(inner) for inner in value]
    return value
