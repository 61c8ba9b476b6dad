"""A progress bar over the bytes of a file, on standard error, if anybody is looking."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path


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
    with Progress(*columns, TimeRemainingColumn(), console=console, transient=True) as progress:
        task = progress.add_task(f"reading {path.name}", total=path.stat().st_size)
        yield lambda count: progress.advance(task, count)
