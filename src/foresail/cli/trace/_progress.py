"""A progress bar over the bytes of a file, on standard error, if it takes long and is seen."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from time import monotonic

_QUICK_SECONDS = 1.0


@contextmanager
def reading_progress(path: Path) -> Iterator[Callable[[int], None] | None]:
    """What to call with the number of bytes just read; None where nobody would see the bar."""
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn

    console = Console(stderr=True)
    if not console.is_terminal or not path.is_file():
        yield None
        return
    columns = (TextColumn("{task.description}"), BarColumn(), DownloadColumn())
    progress = Progress(*columns, TimeRemainingColumn(), console=console, transient=True)
    task = progress.add_task(f"reading {path.name}", total=path.stat().st_size)
    begin = monotonic()

    def advance(count: int) -> None:
        progress.advance(task, count)
        if not progress.live.is_started and monotonic() - begin > _QUICK_SECONDS:
            progress.start()

    try:
        yield advance
    finally:
        if progress.live.is_started:
            progress.stop()
