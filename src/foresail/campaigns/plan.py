"""The plan of a campaign: logs, policies and conventions, from a TOML file or from options."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Annotated, Any, Final, get_args

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from foresail.control.policy import Policy, parse_policy
from foresail.model.documents import toml_of
from foresail.model.errors import InputError, UnknownNameError, naming
from foresail.model.event import CONVENTIONS
from foresail.model.registry import todays_name
from foresail.model.short_form import misfit
from foresail.predictors.regression import Shape, Weight

VARIANTS: Final = ("easy", "easy(order=shortest)")
"""EASY, and EASY-SJBF: shortest predicted runtime first among the candidates."""


EASY_PLUS_PLUS: Final = parse_policy("easy++")
"""Policy of Tsafrir, Etsion and Feitelson (2007), as the study read it."""


def heuristic_triples() -> tuple[str, ...]:
    """The 128 triples in canonical short form.

    20 regressions and AVE2, times three corrections, times two variants; and the requested time,
    which needs no correction, times two variants. AVE2 and increments are those of EASY++.
    """
    regressions = [
        f"regression(over={over},under={under},weight={weight})"
        for over, under, weight in product(get_args(Shape), get_args(Shape), get_args(Weight))
    ]
    average, increments = EASY_PLUS_PLUS.predictor.text, EASY_PLUS_PLUS.correction.text
    corrections = ("requested", increments, "doubling")
    learned = product(VARIANTS, (average, *regressions), corrections)
    written = [*VARIANTS, *(",".join(parts) for parts in learned)]
    return tuple(parse_policy(text).text for text in written)


def clairvoyant_triples() -> tuple[str, ...]:
    """The two bounds that are reported beside the triples."""
    return tuple(parse_policy(f"{variant},clairvoyant").text for variant in VARIANTS)


def is_clairvoyant(policy: Policy) -> bool:
    """Return whether a policy knew the real runtimes, so that no cluster could use it."""
    return policy.predictor.entry.name == "clairvoyant"


@dataclass(frozen=True, slots=True)
class LogSource:
    """A log of a campaign."""

    name: str
    """Name in tables; unique in a campaign."""
    path: Path
    """A log file, or a workload folder."""
    reader: str | None = None
    processors: int | None = None
    """Processors to count on, as ``foresail.traces.reading.read`` takes them."""


@dataclass(frozen=True, slots=True)
class CampaignPlan:
    """Every policy on every log."""

    logs: tuple[LogSource, ...]
    """Logs, with distinct names."""
    policies: tuple[str, ...]
    """Canonical short forms, distinct."""
    conventions: str = "standard"
    """Name of the replay's conventions."""
    filters: tuple[str, ...] = ("replayable",)
    """Cleaning filters by name, applied in order to every log."""
    enforce_limits: bool = False
    """Jobs end at their requested time."""

    def __post_init__(self) -> None:
        if not self.logs:
            raise InputError("the campaign has no logs", expected="at least one")
        if not self.policies:
            raise InputError("the campaign has no policies", expected="policies, or the triples")
        if self.conventions not in CONVENTIONS:
            raise UnknownNameError("conventions", self.conventions, CONVENTIONS)
        names = [log.name for log in self.logs]
        for name in names:
            if names.count(name) > 1:
                raise InputError(
                    "two logs of the same name", value=name, expected="a name of its own for each"
                )


def policies_of(written: Sequence[str], *, triples: bool) -> tuple[str, ...]:
    """Policies in canonical short form, each once.

    The written ones come first. With ``triples`` the 128 heuristic triples and the two clairvoyant
    ones join them.

    Raises ``InputError`` if a policy is malformed; ``UnknownNameError`` if a policy has an unknown
    part.
    """
    texts = [parse_policy(text).text for text in written]
    if triples:
        texts += [*heuristic_triples(), *clairvoyant_triples()]
    return tuple(dict.fromkeys(texts))


def log_name(path: Path) -> str:
    """A log's name from its file: ``KTH-SP2`` of ``KTH-SP2.filtered.swf.gz``."""
    name = path.resolve()
    while name.suffix[1:].isalpha():
        name = name.with_suffix("")
    return name.name


class _LogTable(BaseModel):
    model_config = ConfigDict(extra="forbid")
    path: Path
    name: str | None = None
    reader: str | None = None
    processors: Annotated[int | None, Field(ge=1)] = None

    @model_validator(mode="before")
    @classmethod
    def _of_path(cls, given: Any) -> Any:
        return {"path": given} if isinstance(given, str) else given


class _CampaignFile(BaseModel):
    model_config = ConfigDict(extra="forbid")
    logs: Annotated[list[_LogTable], Field(min_length=1)]
    policies: list[str] = []
    triples: bool = False
    conventions: str = "standard"
    filters: list[str] = ["replayable"]
    enforce_limits: bool = False


def read_plan(path: Path) -> CampaignPlan:
    """The plan in a campaign file; the paths of its logs count from the file's folder.

    Raises ``InputError`` if the file is not TOML, or a key is unknown or of another type; and as
    ``policies_of``.
    """
    try:
        given = _CampaignFile.model_validate(toml_of(path))
        conventions = todays_name("--conventions", given.conventions)
    except ValidationError as error:
        raise misfit(error, path) from error
    logs = []
    for table in given.logs:
        file = path.parent / table.path
        logs.append(LogSource(table.name or log_name(file), file, table.reader, table.processors))
    with naming(path):
        return CampaignPlan(
            tuple(logs),
            policies_of(given.policies, triples=given.triples),
            conventions,
            tuple(given.filters),
            given.enforce_limits,
        )
