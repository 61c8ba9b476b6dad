"""Pages of Parquet that say of themselves what would end the process are found beforehand."""

from __future__ import annotations

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from foresail.model.errors import InputError
from foresail.traces import parquet
from foresail.traces.parquet import require_possible_pages

TABLE = pl.DataFrame(
    {
        "number": [1.5, None, 2.5, 4.0, 8.0],
        "text": ["a", "b", None, "a", "a"],
        "list": [[1], [], None, [2, 3], [4]],
        "flag": [True, False, None, True, True],
    }
)
FIVE, MINUS_SIX = b"\x2c\x15\x0a", b"\x2c\x15\x0b"
"""The header of a page of data, and how many values it has, as they are written."""


@pytest.fixture(params=["lz4", "zstd", "uncompressed"])
def content(request, tmp_path):
    path = tmp_path / "table.parquet"
    TABLE.write_parquet(path, compression=request.param, row_group_size=5)
    return path.read_bytes()


def test_every_page_is_found(content):
    """All values are counted, those of lists one by one, an empty or unknown list as one."""
    assert not parquet._has_impossible_page(content)
    values = list(parquet._values_of_pages(content))
    assert sum(values) >= 5 * 3 + 6
    assert {5, 6} <= set(values)


def test_a_negative_number_of_values_is_refused(content, tmp_path):
    """Polars would ask for 2 EiB, and end the process."""
    assert FIVE in content
    path = tmp_path / "spoilt.parquet"
    path.write_bytes(content.replace(FIVE, MINUS_SIX, 1))
    with pytest.raises(InputError, match=r"spoilt\.parquet: the Parquet file is damaged"):
        require_possible_pages(path)


def test_what_is_no_parquet_is_left_to_polars(tmp_path):
    """As are files that are not there, and empty ones."""
    (tmp_path / "empty").touch()
    require_possible_pages(tmp_path / "empty")
    require_possible_pages(tmp_path / "missing")
    require_possible_pages(tmp_path)


@settings(deadline=None)
@given(st.binary(max_size=40), st.binary(max_size=40), st.integers(0, 60))
def test_any_bytes_are_looked_at(before, footer, length):
    """Never another error, however long what is written says that it is."""
    end = length.to_bytes(4, "little") + b"PAR1"
    parquet._has_impossible_page(b"PAR1" + before + footer + end)
