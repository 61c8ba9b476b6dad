"""A page and the tables behind it, on disk."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import polars as pl

from foresail.model.whole_files import all_or_none, write_whole


def write_page(path: Path, page: str, tables: Mapping[str, pl.DataFrame]) -> None:
    """Write a page and the tables behind it, by the stem of their CSV files: all or none.

    Raises
    ------
    InputError
        If the folder, which is made unless it is there, cannot be written to.
    """
    with all_or_none(path.parent) as drafts:
        for name, table in tables.items():
            write_whole(drafts / f"{name}.csv", table.write_csv().encode())
        write_whole(drafts / path.name, page.encode())
