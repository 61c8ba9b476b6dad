"""Room in a database's own file for what must be written whatever else has filled the disk."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path
from typing import Final

from sqlalchemy import Engine, delete, func, insert, text
from sqlalchemy.exc import DBAPIError

from foresail.service.store.protocol import StoreUnavailable
from foresail.service.store.tables import ROOM

LITTLE_BYTES: Final = 32_000_000
"""Where a disk has less than this, what can wait is refused."""

_KEPT_BYTES: Final = 8_000_000


class DiskRoom:
    """Pages of a SQLite file that are full of nothing, and given up when its disk fills.

    No other file can take them, however fast it grows: writing them has made file and journal as
    large as they have to be, so that what follows is written in place.

    Parameters
    ----------
    path
        The file.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self.is_kept = False
        """Whether the pages are full."""

    def keep(self, engine: Engine) -> None:
        """Fill the pages, unless they are full or the disk is."""
        if not self.is_kept and self._free_bytes() > 2 * LITTLE_BYTES:
            self._fill(engine, _KEPT_BYTES)
            self.is_kept = True

    def give_up_if_needed(self, engine: Engine) -> None:
        """Let the pages be used where the disk is about to be full."""
        if self.is_kept and self._free_bytes() < LITTLE_BYTES:
            self._fill(engine, 0)
            self.is_kept = False

    def require(self) -> None:
        """Refuse what can wait.

        Raises
        ------
        StoreUnavailable
            If the disk is about to be full.
        """
        free = self._free_bytes()
        if free < LITTLE_BYTES:
            raise StoreUnavailable(
                f"the disk of {self._path} is full but for {free / 1e6:.0f} MB: no job is accepted "
                "until there is room; cancel, hold, release and drain are"
            )

    def _fill(self, engine: Engine, size_bytes: int) -> None:
        with suppress(DBAPIError):  # what is to be written tells whether it can be
            with engine.begin() as connection:
                connection.execute(delete(ROOM))
                if size_bytes:
                    connection.execute(
                        insert(ROOM).values(one=1, filling=func.zeroblob(size_bytes))
                    )
            with engine.connect() as connection:
                connection.execute(text("PRAGMA wal_checkpoint(PASSIVE)"))

    def _free_bytes(self) -> int:
        disk = os.statvfs(self._path.parent)
        return disk.f_bavail * disk.f_frsize
