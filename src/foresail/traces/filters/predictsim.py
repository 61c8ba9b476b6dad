"""Filter ``predictsim``: the job set of the published study on predicted runtimes."""

from __future__ import annotations

from typing import Final

from foresail.model.registry import NoParameters, register
from foresail.traces.filtering import Bundle, FilterChoice

CHOICES: Final = (
    FilterChoice("drop_wider_than_machine"),
    FilterChoice("fill_processors"),
    FilterChoice("drop_no_runtime"),
    FilterChoice("drop_no_request"),
    FilterChoice("clip_runtime_to_request"),
    FilterChoice("drop_negative_submit"),
)


@register("filter", "predictsim")
def predictsim(_: NoParameters) -> Bundle:
    """The six filters of Gaussier, Glesser, Reis and Trystram, SC 2015, in their order.

    Jobs wider than the machine, of unknown size, or without positive runtime, requested time and
    submission are dropped; runtimes are cut at the requested time. For CEA-Curie the study sets the
    machine to 80,640 processors.
    """
    return Bundle(CHOICES)
