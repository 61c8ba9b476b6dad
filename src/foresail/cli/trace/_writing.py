"""Writing a workload where the user says: an SWF file by its ending, else a workload folder."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from foresail.cli.progress import doing

if TYPE_CHECKING:
    from foresail.traces.workload import Workload


def write(workload: Workload, path: Path) -> None:
    """Write an SWF file or a workload folder.

    Raises ``InputError`` if it cannot be written, or something else is there already.
    """
    from foresail.traces.folder import write_folder
    from foresail.traces.swf_writer import is_swf_name, write_swf

    with doing(f"writing {path}"):
        if is_swf_name(path):
            write_swf(workload, path)
        else:
            write_folder(workload, path)
