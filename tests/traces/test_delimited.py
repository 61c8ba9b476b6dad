"""Splitting delimited text into records, and what happens to records that are none."""

from __future__ import annotations

import csv
import io

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from foresail.model.errors import InputError
from foresail.traces import source
from foresail.traces.delimited import last_record_end, read_delimited, split_records
from foresail.traces.mapping import with_numbers
from foresail.traces.reading import LINE, Notes
from foresail.traces.source import LogFile

COMMA, QUOTE = ord(","), ord('"')


def table(tmp_path, text, columns, **options):
    path = tmp_path / "table.csv"
    path.write_bytes(text)
    notes = Notes(path, **options)
    chunks = list(read_delimited(LogFile(path), notes, columns))
    return chunks, notes


_CELLS = st.text("ab ,\"\n'é", max_size=5)


@given(rows=st.lists(st.lists(_CELLS, min_size=2, max_size=4), max_size=6))
def test_records_like_the_csv_module(rows):
    """Field counts and texts of quoted records agree with Python's csv module."""
    text = io.StringIO()
    csv.writer(text, lineterminator="\n", quoting=csv.QUOTE_ALL).writerows(rows)
    data = np.frombuffer(text.getvalue().encode(), dtype=np.uint8)
    records = split_records(data, COMMA, QUOTE)
    assert records.fields.tolist() == [len(row) for row in rows]
    parsed = [
        next(csv.reader(io.StringIO(bytes(data[start:end]).decode(), newline="")))
        for start, end in zip(records.starts, records.ends, strict=True)
    ]
    assert parsed == rows
    assert last_record_end(data, QUOTE) == data.size


def test_line_numbers_count_lines_not_records():
    """Blank lines and line ends within quotes count as lines."""
    text = b'a,b\n\n"x\ny",1\r\nz,2'
    records = split_records(np.frombuffer(text, dtype=np.uint8), COMMA, QUOTE)
    assert records.lines.tolist() == [0, 2, 4]
    assert records.fields.tolist() == [2, 2, 2]
    assert last_record_end(np.frombuffer(text, dtype=np.uint8), QUOTE) == text.index(b"z,2")


def test_chunks_across_blocks(tmp_path, monkeypatch):
    """Records cut by the end of a block are whole again, with their line numbers."""
    monkeypatch.setattr(source, "BLOCK_BYTES", 5)
    monkeypatch.setattr(source, "_READ_BYTES", 5)
    text = b'\xef\xbb\xbfname,number\n"a\nb",1\nc,2\n\nd,3'
    chunks, _ = table(tmp_path, text, ("number", "name"))
    rows = [row for chunk in chunks for row in chunk.rows()]
    assert rows == [("1", "a\nb", 2), ("2", "c", 4), ("3", "d", 6)]
    assert len(chunks) > 1


def test_wrong_number_of_fields(tmp_path):
    """Records with too many or too few fields are dropped and counted, or refused with the line."""
    text = b"a,b\n1,2\n3\n4,5,6\n7,8\n"
    chunks, notes = table(tmp_path, text, ("a",))
    assert chunks[0]["a"].to_list() == ["1", "7"]
    assert notes.repairs == {"dropped_malformed_line": 2}
    with pytest.raises(InputError, match=r"line 3: .*'1 fields'.*expected 2 fields"):
        table(tmp_path, text, ("a",), strict=True)


def test_numbers(tmp_path):
    """Texts that are no finite numbers lose their row; unknown ones only where required."""
    text = b"a,b\n1,x\n,y\nnan,z\n1e3,w\nten,v\n1e308,u\n"
    chunks, notes = table(tmp_path, text, ("a", "b"))
    assert with_numbers(chunks[0], ["a"], notes)["a"].to_list() == [1.0, None, 1000.0]
    assert notes.repairs == {"dropped_malformed_line": 3}
    strict = Notes(notes.path, strict=True)
    with pytest.raises(InputError, match=r"line 4, field 'a': .*'nan'.*expected a number"):
        with_numbers(chunks[0], ["a"], strict)
    with pytest.raises(InputError, match="line 3, field 'a'"):
        with_numbers(chunks[0].filter(chunks[0][LINE] == 3), ["a"], strict, required=["a"])


def test_undecodable_bytes(tmp_path):
    """Bytes that are no UTF-8 are replaced and counted, or refused."""
    chunks, notes = table(tmp_path, b"a,b\ncaf\xe9,1\n", ("a",))
    assert chunks[0]["a"].to_list() == ["caf\ufffd"]
    assert notes.repairs == {"replaced_undecodable_text": 1}
    with pytest.raises(InputError, match="replaced undecodable text"):
        table(tmp_path, b"a,b\ncaf\xe9,1\n", ("a",), strict=True)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (b"alpha,beta\n1,2\n", "no such column.*expected 'alpha', perhaps"),
        (b"alphas,alphas\n1,2\n", "no such column"),
        (b"alfa,alfa\n1,2\n", "two columns of the same name"),
        (b"\n\n", "holds no header line"),
    ],
)
def test_unusable_headers(tmp_path, text, words):
    """An absent column is refused with the nearest name; so is a name used twice."""
    with pytest.raises(InputError, match=words):
        table(tmp_path, text, ("alfa",))
