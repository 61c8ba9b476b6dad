"""``foresail cloud waiting``: price and waits of waiting policies by formula."""

from __future__ import annotations

import math
from itertools import product
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from foresail.cli.formats import Format, FormatOption, print_json, print_table
from foresail.cli.renting_options import numbers_of, times_of
from foresail.model.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from foresail_studies.waiting.formulas import Load

_MOST_COUNTS: Final = 100_000
_MOST_MACHINES: Final = 1_000_000


def command(
    model: Annotated[
        str, typer.Argument(metavar="RATE,RUNTIME", help="Jobs per second; their mean runtime.")
    ],
    policies: list[str] | None = None,
    fixed: str | None = None,
    fixed_price: float = 0.4,
    wait_limit: list[str] | None = None,
    short: list[str] | None = None,
    mispredicted: str = "0,0",
    output_format: FormatOption = Format.TABLE,
) -> None:
    """Price and waits of waiting policies by formula, for jobs that come at random.

    Arrivals are Poisson, runtimes exponential, and each job takes one machine. Without --fixed,
    each policy has as many machines as cost least. About a log, ask foresail cloud advise.

    Options:
        policies --policy NAMES: With commas, or repeated [all]; see the docs.
        fixed FIRST:LAST:STEP: Numbers of machines, or 50,100 [those that cost least].
        fixed_price PRICE: Of an owned machine, relative to a rented one.
        wait_limit TIMES: Longest wait b; several with commas [24h].
        short TIMES: Jobs below t are short; several with commas [15min].
        mispredicted OVER,UNDER: Shares of predictions that are too long, and too short.
    """
    from foresail_studies.waiting.formulas import POLICIES, Load

    arrivals, mean = _arrivals_and_mean(model)
    load = Load(arrivals, 1.0 / mean, fixed_price)
    if load.offered > _MOST_MACHINES:
        raise InputError(
            "too many jobs at a time",
            field="RATE,RUNTIME",
            value=f"{load.offered:g} on average",
            expected=f"up to {_MOST_MACHINES:,}",
        )
    wrong = dict(zip(("over", "under"), _shares(mispredicted), strict=True))
    usual = [name for name in POLICIES if name != "compound" or not any(wrong.values())]
    counts = None if fixed is None else _counts(fixed)
    given = {
        "waiting_seconds": times_of(wait_limit or ["24h"], "--wait-limit"),
        "short_seconds": times_of(short or ["15min"], "--short"),
    }
    names = map(str.strip, ",".join(policies or usual).split(","))
    rows = [row for name in names for row in _rows(name, load, counts, given, wrong)]
    if output_format is Format.JSON:
        print_json({"settings": rows})
    else:
        print_table(list(_COLUMNS), [_said(row) for row in rows], right=len(_COLUMNS) - 1)


_COLUMNS: Final = {
    "policy": "policy",
    "own": "machines",
    "limit b": "waiting_seconds",
    "short t": "short_seconds",
    "price": "price",
    "mean wait": "mean_wait_seconds",
    "on demand": "rented_work",
    "price × wait": "opportunity_cost_seconds",
}


def _rows(
    policy: str,
    load: Load,
    counts: Sequence[int] | None,
    given: Mapping[str, Sequence[float]],
    wrong: Mapping[str, float],
) -> Iterator[dict[str, Any]]:
    """A policy's results by the thresholds that it has and the numbers of machines.

    If none are given, it is the number that costs least.
    """
    import numpy as np

    from foresail_studies.waiting.formulas import FORMULAS, cheapest_servers, expected, full_name

    name = full_name(policy)
    has = [each for each in given if each in FORMULAS[name][1]]
    for values in product(*(given[each] for each in has)):
        limits = dict(zip(has, values, strict=True))
        machines = counts or [cheapest_servers(name, load, **limits, **wrong)]
        found = expected(name, load, np.array(machines), **limits, **wrong)
        for at, count in enumerate(machines):
            yield {
                "policy": name,
                "machines": count,
                **{each: limits.get(each) for each in given},
                "price": float(found.price[at]),
                "mean_wait_seconds": float(found.wait_seconds[at]),
                "rented_work": float(found.rented_work[at]),
                "opportunity_cost_seconds": float(found.opportunity_cost[at]),
            }


def _said(row: dict[str, Any]) -> list[str]:
    from foresail.model.words import duration, percent

    def text(name: str) -> str:
        value = row[name]
        if value is None:
            return ""
        if name.endswith("_seconds"):
            return duration(value) if math.isfinite(value) else "grows"
        return {"price": "{:.3f}".format, "rented_work": percent}.get(name, str)(value)

    return [text(name) for name in _COLUMNS.values()]


def _counts(text: str) -> Sequence[int]:
    """Numbers of machines: FIRST:LAST:STEP, or several with commas."""
    parts = text.split(":")
    counts: Sequence[int]
    try:
        if len(parts) == 1:
            counts = [int(each) for each in text.split(",")]
        else:
            first, last, step = (int(part) for part in [*parts, "1"][:3])
            counts = range(first, last + 1, step)
    except ValueError:
        counts = ()
    if not counts or min(counts) < 0 or len(counts) > _MOST_COUNTS:
        raise InputError(
            "no numbers of machines",
            field="--fixed",
            value=text,
            expected=f"0 or more, such as 50:300:10 or 50,100; up to {_MOST_COUNTS:,} of them",
        )
    return counts


def _shares(text: str) -> tuple[float, float]:
    """Shares of predictions that are too long, and too short."""
    shares = numbers_of([text], "--mispredicted")
    if len(shares) != 2 or not all(0.0 <= share <= 1.0 for share in shares):
        raise InputError(
            "not two shares",
            field="--mispredicted",
            value=text,
            expected="such as 0.05,0.3: too long, too short",
        )
    return shares[0], shares[1]


def _arrivals_and_mean(text: str) -> tuple[float, float]:
    """Jobs per second, and their mean runtime in seconds."""
    rate, _, runtime = text.partition(",")
    (mean,) = times_of([runtime or "0"], "RATE,RUNTIME") if "," not in runtime else (0.0,)
    try:
        arrivals = float(rate)
    except ValueError:
        arrivals = math.nan
    if not (mean > 0.0 and 0.0 < arrivals < math.inf):
        raise InputError(
            "no arrivals and runtime",
            field="RATE,RUNTIME",
            value=text,
            expected="such as 0.2,500s",
        )
    return arrivals, mean
