"""How a long computation lets others see how far it is, at no cost to itself."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

Measure: TypeAlias = Callable[[], tuple[float, float]]
"""What is done and how much there is to do, in the same unit; called from another thread."""

Watch: TypeAlias = Callable[[Measure], None]
"""Is given the measure when the computation begins."""
