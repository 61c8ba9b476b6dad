"""Synchronisation models by name, as people write them: ``fsp(dropped=k/2)``."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Final

from foresail.model.errors import InputError, UnknownNameError
from foresail.model.short_form import name_and_settings
from foresail_studies.synchronization.models import BarrierModel, flexible

_MODELS: Final[dict[str, tuple[BarrierModel, tuple[str, ...]]]] = {
    "on_demand": (BarrierModel(transient=False), ()),
    "transient": (BarrierModel(), ()),
    "replicas": (BarrierModel(replicas="1"), ("count",)),
    "staleness": (BarrierModel(intervals=10), ("intervals",)),
    "partial": (BarrierModel(dropped="k/2"), ("dropped",)),
    "fsp": (flexible("k-1"), ("dropped", "replicas")),
    "hybrid": (flexible("k-1", "1"), ("dropped", "replicas")),
}
"""Models by name, and the parameters of each; ``count`` is that of backup workers."""


def model_of(text: str) -> BarrierModel:
    """The model that a short form names.

    Raises ``InputError`` if the text is malformed, or a parameter's value does not fit;
    ``UnknownNameError`` if there is no such model or parameter.
    """
    name, settings = name_and_settings(text)
    if name not in _MODELS:
        raise UnknownNameError("synchronisation model", name, _MODELS)
    model, known = _MODELS[name]
    values: dict[str, Any] = {}
    for setting in settings:
        field, _, value = (each.strip() for each in setting.partition("="))
        if field not in known:
            raise UnknownNameError(f"parameter of {name}", field, known)
        if field == "intervals" and not value.isdigit():
            raise InputError("not a number", field=field, value=value, expected="1 or more")
        own = "replicas" if field == "count" else field
        values[own] = int(value) if field == "intervals" else value
    return replace(model, **values)
