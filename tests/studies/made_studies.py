"""A study for tests whose runs are sums: no simulation, nothing random, everything known."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from foresail_studies.study import Bound, GridPoint, Mean, Measure, PublishedClaim, Study

LEVEL = {"low": 1.0, "high": 2.0}


@dataclass(frozen=True, slots=True)
class Sum:
    """A run: level of the system + x + a seed's own offset, and a measure that nobody has."""

    system: str
    x: float
    seed: int

    def measure(self) -> dict[str, float]:
        return {"sum": LEVEL[self.system] + self.x + 0.1 * self.seed, "nothing": float("nan")}


SUM = Measure("sum", "the sum")
SHARE = Measure("nothing", "of nothing", "share")


def made_study(
    seeds: int = 3, claims: tuple[PublishedClaim, ...] = (), points: Sequence[float] = (0, 10)
):
    """Two systems at some points."""
    cases = tuple(
        GridPoint("sums", float(x), system, seed, Sum(system, float(x), seed))
        for x in points
        for system in LEVEL
        for seed in range(seeds)
    )
    return Study(
        title="How large are sums?",
        source="Made up, figure 1",
        axis="x",
        measures=(SUM, SHARE),
        drawn=("sum", "nothing"),
        cases=cases,
        claims=claims
        or (PublishedClaim("Low is less.", Bound(Mean("sum", "low"), Mean("sum", "high"))),),
        notes=("A note.",),
    )


def in_turn(
    call: Callable[[GridPoint], Mapping[str, float]], cases: Sequence[GridPoint]
) -> Iterator[tuple[GridPoint, Mapping[str, float]]]:
    """A pool without processes."""
    for case in cases:
        yield case, call(case)
