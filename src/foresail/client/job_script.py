"""Job scripts: what a script's first comments ask for, as sbatch reads them."""

from __future__ import annotations

import re
import shlex
from typing import Final

from foresail.client.job_options import Asked, asked_by
from foresail.model.errors import InputError

_DIRECTIVE: Final = re.compile(r"#(?:FORESAIL|SBATCH)(?:\s+(.*))?")


def asked_by_script(text: str, source: object) -> Asked:
    """What the ``#SBATCH`` and ``#FORESAIL`` lines before the first command ask for.

    ``late`` is set to the numbers of such lines behind it, which ask for nothing.

    Raises
    ------
    InputError
        If nothing is named that runs the script, or a line asks for what there is not; names it.
    """
    lines = text.splitlines()
    first = lines[0] if lines else ""
    if not first.startswith("#!") or not first[2:].strip():
        raise InputError(
            "does not look like a script",
            source=source,
            line=1,
            value=first[:80],
            expected="#! and what runs it, such as #!/bin/sh; `foresail submit -- COMMAND` else",
        )
    if "\r\n" in text:
        raise InputError("has DOS line breaks (\\r\\n)", source=source, expected="\\n alone")
    asked: Asked = {}
    for number, line in enumerate(lines, 1):
        if not line.startswith("#"):
            if line.strip():
                break
            continue
        found = _DIRECTIVE.fullmatch(line)
        if found is not None and found[1]:
            asked |= _asked_by_line(found[1], source, number)
    late = [at for at, line in enumerate(lines, 1) if at > number and _DIRECTIVE.fullmatch(line)]
    return asked | ({"late": ("", late)} if late else {})


def _asked_by_line(options: str, source: object, number: int) -> Asked:
    try:
        words = shlex.split(options, comments=True)
    except ValueError as error:
        raise InputError(
            f"cannot be read: {error}", source=source, line=number, value=options
        ) from error
    asked, rest = asked_by(words, source, number)
    if rest:
        raise InputError(
            "not an option", source=source, line=number, value=rest[0], expected="--option=value"
        )
    return asked
