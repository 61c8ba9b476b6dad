"""Quantities as the API writes them, and what pods request by them."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping
from fractions import Fraction
from functools import lru_cache
from typing import Final

from foresail.model.cluster import Resources

Amounts = Mapping[str, Fraction]
"""Amounts by the name of the resource: cores, bytes, counts."""

_FORM: Final = re.compile(
    r"([+-]?(?:\d{1,30}(?:\.\d{0,30})?|\.\d{1,30}))"
    r"(?:([KMGTPE]i|[numkMGTPE])|[eE]([+-]?\d{1,2}))?",
    re.ASCII,
)
_FACTORS: Final = {
    **{f"{letter}i": Fraction(1024**power) for power, letter in enumerate("KMGTPE", 1)},
    **{letter: Fraction(1000**power) for power, letter in enumerate("kMGTPE", 1)},
    **{letter: Fraction(1, 1000**power) for power, letter in enumerate("mun", 1)},
}
GPUS: Final = frozenset({"nvidia.com/gpu", "amd.com/gpu", "gpu.intel.com/i915", "gpu.intel.com/xe"})
"""Resources that are whole gpus."""

COUNTED: Final = frozenset({"cpu", "memory", "ephemeral-storage", "pods"}) | GPUS
"""Resources that are understood; where there is none of another, a pod that asks for it waits."""

_STEPS: Final = 2.0**20
"""Steps of a cpu: such amounts add up exactly, and differ from thousandths by less than one pod in
eight hundred of the same node would notice."""
_LEAST_CPUS: Final = 2.0**-10
"""Cpus of a job that asks for none: what divides by them goes on."""


@lru_cache(maxsize=4096)
def quantity(text: str) -> Fraction:
    """Return an amount, as ``100m``, ``1.5Gi`` or ``2e3``; raises ``ValueError`` if it is none."""
    found = _FORM.fullmatch(text)
    if found is None:
        raise ValueError(f"{text[:40]!r} is no quantity")
    number, suffix, power = found.groups()
    return Fraction(number) * (_FACTORS[suffix] if suffix else Fraction(10) ** int(power or 0))


def amounts(texts: Mapping[str, str]) -> dict[str, Fraction]:
    """Return amounts of what is written; raises ``ValueError`` if some is no quantity."""
    return {name: quantity(text) for name, text in texts.items()}


def added(parts: Iterable[Amounts]) -> dict[str, Fraction]:
    """Return the sum of amounts."""
    total: dict[str, Fraction] = {}
    for each in parts:
        for name, amount in each.items():
            total[name] = total.get(name, Fraction()) + amount
    return total


def highest(parts: Iterable[Amounts]) -> dict[str, Fraction]:
    """Return the highest amount of each resource."""
    most: dict[str, Fraction] = {}
    for each in parts:
        for name, amount in each.items():
            most[name] = max(most.get(name, Fraction()), amount)
    return most


def resources(of: Amounts) -> Resources:
    """Return cpus (as the scheduler counts them, by thousandths), memory and gpus of amounts."""
    cpus = Fraction(math.ceil(of.get("cpu", Fraction()) * 1000), 1000)
    gpus = sum((of.get(name, Fraction()) for name in GPUS), Fraction())
    return Resources(
        math.floor(cpus * int(_STEPS)) / _STEPS,
        float(math.ceil(of.get("memory", Fraction()))),
        float(math.ceil(gpus)),
    )


def at_least_something(request: Resources) -> Resources:
    """Return a request of a job, which has some cpus."""
    least = max(request.cpus, _LEAST_CPUS)
    return request if request.cpus else Resources(least, request.memory_bytes, request.gpus)
