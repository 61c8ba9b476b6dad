"""Making frozen records quickly: an event of a simulation makes a dozen of them."""

from __future__ import annotations

from dataclasses import MISSING, Field, fields
from typing import Any, Final, TypeVar

Kind = TypeVar("Kind", bound=type)

_set_class: Final = object.__dict__["__class__"].__set__


def quickly_made(kind: Kind) -> Kind:
    """Give a dataclass that is frozen and has slots a constructor of half the cost.

    The usual one goes through ``object.__setattr__`` field by field. This one fills the record
    while it is of an unfrozen class with the same slots. All else about the class stays as it is.
    """
    of_record: tuple[Field[Any], ...] = fields(kind)
    unfrozen = type(kind.__name__, (), {"__slots__": tuple(each.name for each in of_record)})
    known: dict[str, Any] = {"_set_class": _set_class, "_unfrozen": unfrozen, "_frozen": kind}
    parameters, lines = ["self"], ["_set_class(self, _unfrozen)"]
    for each in of_record:
        parameter = value = each.name
        if each.default is not MISSING:
            parameter += f"=_default_{each.name}"
            known[f"_default_{each.name}"] = each.default
        elif each.default_factory is not MISSING:
            parameter += "=_missing"
            known |= {"_missing": MISSING, f"_make_{each.name}": each.default_factory}
            value = f"_make_{each.name}() if {each.name} is _missing else {each.name}"
        parameters.append(parameter)
        lines.append(f"self.{each.name} = {value}")
    lines.append("self.__class__ = _frozen")
    if hasattr(kind, "__post_init__"):
        lines.append("self.__post_init__()")
    exec(f"def __init__({', '.join(parameters)}):\n " + "\n ".join(lines), known)
    kind.__init__ = known["__init__"]  # type: ignore[misc] # a class of its own
    return kind
