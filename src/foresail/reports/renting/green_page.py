"""The page about green hours: CO2 saved against the delay it costs, and when work runs then."""

from __future__ import annotations

from foresail.cloud.waiting.green_hours import GreenAnswer
from foresail.model.words import count, number
from foresail.reports.renting.green_figures import course_figure, day_figure, saving_figure
from foresail.reports.renting.green_tables import patiences_table
from foresail.reports.renting.green_words import GreenCircumstances, notes, sentences, watts
from foresail.reports.renting.page import CloudPage


def green_page(answer: GreenAnswer, asked: GreenCircumstances) -> CloudPage:
    """The page about one answer."""
    rounds = "" if asked.repeat is None else f", repeated {asked.repeat}"
    return CloudPage(
        title="What does waiting for green hours save?",
        situation=(
            f"{asked.log}: {count(answer.jobs, 'job')} of {number(round(answer.core_hours))} "
            f"core-hours{_gpu_hours(answer)}; {watts(answer)}; intensity {asked.series}{rounds}."
        ),
        sentences=sentences(answer, asked),
        parts=[
            patiences_table(answer, asked),
            saving_figure(answer, asked),
            day_figure(answer.course, asked),
            course_figure(answer.course),
        ],
        notes=notes(answer, asked),
    )


def _gpu_hours(answer: GreenAnswer) -> str:
    return f" and {number(round(answer.gpu_hours))} gpu-hours" if answer.gpu_hours else ""
