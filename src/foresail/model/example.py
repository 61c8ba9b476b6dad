"""A small example of what a reader reads: for its users, and to check it with."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Example:
    """Files as a user would hand them in."""

    files: Mapping[str, bytes]
    """Content by name; a name may have folders."""
    given: str = ""
    """The name to read; empty: the folder that all of them are in."""
    options: Mapping[str, str] = field(default_factory=dict)
    """Names of files by the option of the reader that takes them."""

    @classmethod
    def of_text(cls, name: str, text: str) -> Example:
        """One file of text."""
        return cls({name: text.encode()}, name)

    def write(self, folder: Path) -> Path:
        """Write the files into a folder; what is to be read."""
        for name, content in self.files.items():
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
        return folder / self.given
