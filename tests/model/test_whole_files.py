"""Files that come whole, and several that come together."""

import errno
import os

import pytest

from foresail.model.errors import InputError
from foresail.model.whole_files import all_or_none, require_folder, write_whole


def write_both(folder):
    with all_or_none(folder) as drafts:
        write_whole(drafts / "a", b"new")
        write_whole(drafts / "b", b"new")


def test_all_come_together(tmp_path):
    """What is written replaces what was there, other files stay, and nothing else is left."""
    folder = tmp_path / "out"
    folder.mkdir()
    (folder / "a").write_text("old")
    (folder / "other").write_text("other")
    with all_or_none(folder) as drafts:
        write_whole(drafts / "a", b"new")
        write_whole(drafts / "b", b"new")
        assert (folder / "a").read_text() == "old"
    assert {each.name: each.read_text() for each in folder.iterdir()} == {
        "a": "new",
        "b": "new",
        "other": "other",
    }


def test_none_comes_where_one_does_not_fit(tmp_path, monkeypatch):
    """A disk that is full at the second file leaves everything as it was, and names that file."""
    (tmp_path / "a").write_text("old")
    sync, synced = os.fsync, []

    def full(file: int) -> None:
        synced.append(file)
        if len(synced) == 3:  # the first file and its folder, the second file
            raise OSError(errno.ENOSPC, "No space left on device")
        sync(file)

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(InputError) as raised:
        write_both(tmp_path)
    assert str(raised.value).startswith(f"{tmp_path}/b: cannot be written: No space left on device")
    assert [(each.name, each.read_text()) for each in tmp_path.iterdir()] == [("a", "old")]


def test_none_comes_where_a_folder_is_in_the_way(tmp_path):
    """It is looked for before the first file takes its place."""
    (tmp_path / "b").mkdir()
    with pytest.raises(InputError, match="b: is no file"):
        write_both(tmp_path)
    assert [each.name for each in tmp_path.iterdir()] == ["b"]


def test_a_folder_made_for_files_that_do_not_come_goes_again(tmp_path):
    """So do those it is in, and what was there stays."""
    with pytest.raises(ZeroDivisionError), all_or_none(tmp_path / "new" / "inner"):
        raise ZeroDivisionError
    require_folder(tmp_path / "new" / "inner")
    assert [*tmp_path.iterdir()] == []
    require_folder(tmp_path)
    (tmp_path / "file").touch()
    with pytest.raises(InputError, match="the folder cannot be made"):
        require_folder(tmp_path / "file")
