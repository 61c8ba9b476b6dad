"""Average bounded slowdowns as paper 004 prints them (Tables 2.1, 2.6, 2.7; spec section 10)."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

COLUMNS: Final = (
    "easy",
    "clairvoyant_fcfs",
    "clairvoyant_sjbf",
    "easy_plus_plus",
    "learned_fcfs_best",
    "learned_fcfs_worst",
    "learned_sjbf_best",
    "learned_sjbf_worst",
    "chosen",
)
"""The columns of ``foresail.experiments.study_tables.headline`` that the paper has too."""

_TABLE: Final = {
    "CTC-SP2": (49.6, 37.2, 17.6, 85.8, 25.5, 163.5, 16.3, 134.7, 20.5),
    "SDSC-SP2": (87.9, 70.5, 56.8, 79.4, 70.9, 102.3, 69.7, 194.8, 75.0),
    "KTH-SP2": (92.6, 71.7, 49.8, 63.5, 62.6, 93.2, 51.4, 74.5, 51.4),
    "SDSC-BLUE": (36.5, 30.6, 13.2, 21.0, 16.5, 48.0, 12.6, 47.8, 34.7),
    "Curie": (202.1, 69.9, 12.1, 193.5, 26.3, 9348.8, 24.3, 40100.0, 27.9),
    "Metacentrum": (97.6, 81.7, 67.2, 87.2, 86.3, 98.1, 81.5, 89.8, 84.2),
}


def published(log: str) -> Mapping[str, float] | None:
    """The paper's figures for a log that has one of its logs' names in its own, by column."""
    for name, figures in _TABLE.items():
        if name.lower() in log.lower():
            return MappingProxyType(dict(zip(COLUMNS, figures, strict=True)))
    return None
