"""Filter ``replayable``: what any replay needs of a log, and nothing more."""

from __future__ import annotations

from typing import Final

from foresail.model.registry import NoParameters, register
from foresail.traces.filtering import Bundle, FilterChoice

CHOICES: Final = (
    FilterChoice("fill_processors"),
    FilterChoice("drop_no_runtime"),
    FilterChoice("drop_wider_than_machine"),
)


@register("filter", "replayable")
def replayable(_: NoParameters) -> Bundle:
    """Drop jobs that cannot be replayed: without processors or runtime, or wider than the machine.

    A job whose processors are known only as allocated is kept with those.
    """
    return Bundle(CHOICES)
