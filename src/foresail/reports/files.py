"""A page and the tables behind it, on disk."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import polars as pl

from foresail.model.whole_files import make_folder, write_whole


def write_page(path: Path, page: str, tables: Mapping[str, pl.DataFrame]) -> None:
    """Write a page and, beside it, the tables behind it, by the stem of their CSV files.

    Raises
    ------
    InputError
        If the folder, which is made unless it is there, cannot be written to.
    """
    make_folder(path.parent)
    for name, table in tables.items():
        write_whole(path.with_name(f"{name}.csv"), table.write_csv().encode())
    write_whole(path, page.encode())
