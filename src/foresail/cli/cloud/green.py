"""``foresail cloud green``: what waiting for green hours saves, and how long jobs wait for it."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from foresail.cli import renting_options
from foresail.cli.formats import require_output
from foresail.cli.log_options import LogOptions, LogPath
from foresail.cli.progress import doing
from foresail.model.errors import InputError

_PATIENCES: Final = ("1h", "6h", "24h")
_WATTS: Final = 10.0
_GPU_WATTS: Final = 250.0
_REPEATS: Final = ("daily", "weekly")


def command(
    log: LogPath,
    intensity: Path,
    patience: list[str] | None = None,
    runtimes: str = "recent",
    watts: float = _WATTS,
    gpu_watts: float = _GPU_WATTS,
    hour_grams: float = 0.0,
    repeat: str | None = None,
    filters: renting_options.Filters = None,
    log_options: LogOptions = LogOptions(),
    answering: renting_options.PicturedAnswerOptions = renting_options.PicturedAnswerOptions(),
) -> None:
    """Start each job, within its patience, when it emits least CO2: the savings.

    Jobs never wait for capacity here: each starts when it is greenest, however many do. The
    answer is given for several patiences, and says how much of it needs known runtimes.

    Options:
        intensity FILE.csv: Columns grams_per_kwh, and time (ISO date), unix_seconds or hours of the
            log.
        patience TIMES: How long jobs may be put off; several with commas [1h,6h,24h].
        runtimes BY: What starts go by: known, requested, or a predictor.
        watts: Power of a busy core.
        gpu_watts: Power of a busy gpu, where jobs ask for some.
        hour_grams GRAMS: CO2 that an hour of a job's delay must save.
        repeat daily|weekly: Let the series go round, by whole days or by whole weeks.
    """
    from foresail.cli.log_options import load_cleaned
    from foresail.cloud.over_time import require_within_horizon
    from foresail.cloud.waiting.carbon import Repeat, read_intensity
    from foresail.cloud.waiting.green_hours import green_hours
    from foresail.evaluation.replaying import believed_runtimes
    from foresail.reports.renting.green_page import (
        GreenCircumstances,
        green_page,
        patiences_table,
        record,
        sentences,
    )

    if repeat is not None and repeat not in _REPEATS:
        raise InputError(
            "cannot repeat so", field="--repeat", value=repeat, expected=" or ".join(_REPEATS)
        )
    patiences = renting_options.times_of(patience or _PATIENCES, "--patience")
    require_output(answering.output, png=answering.png)
    workload = load_cleaned(log, log_options, filters or renting_options.STANDARD_FILTERS)
    jobs = renting_options.trace_jobs(workload, log)
    require_within_horizon(workload)
    origin = workload.meta.origin_unix_seconds
    series = read_intensity(intensity, origin, None if repeat is None else Repeat(repeat))
    with doing(f"runtimes by {runtimes}"):
        believed = believed_runtimes(workload, runtimes)
    with doing("green hours"):
        answer = green_hours(
            jobs, series, believed, patiences, watts / 1000.0, hour_grams, gpu_watts / 1000.0
        )
    around = GreenCircumstances(log.name, intensity.name, runtimes, repeat, origin is not None)
    answering.answer(
        record(answer, around),
        sentences(answer, around),
        [patiences_table(answer, around)],
        lambda: green_page(answer, around),
    )
