"""What JSON has no word for."""

from __future__ import annotations

import math
from typing import Any


def finite(value: Any) -> Any:
    """The same with None for numbers that are not finite, throughout lists and objects."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, dict):
        return {name: finite(inner) for name, inner in value.items()}
    if isinstance(value, list | tuple):
        return [finite(inner) for inner in value]
    return value
