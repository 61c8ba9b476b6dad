"""The spawner as the adapter sees it: a process that forks shims when asked to."""

from __future__ import annotations

import errno
import json
import subprocess
import sys
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

import foresail

_PACKAGES: Final = str(Path(foresail.__file__).parents[1])
_PROGRAM: Final = (
    "import sys; sys.path.append(sys.argv[1]); "
    "from foresail.live.adapters.local.job_shim import serve; serve()"
)


class ProcessSpawner:
    """Forks shims; started with the first of them, and anew should it die."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None

    def fork(self, request: Mapping[str, Any]) -> int:
        """Start a shim (see ``job_shim.serve``) and return its process id.

        The id stays that shim's until the next call, even if it ends at once.

        Raises
        ------
        OSError
            If no process can be started.
        """
        line = json.dumps(dict(request)).encode() + b"\n"
        for _ in range(2):  # asking again does no harm: only one shim can claim an attempt
            answer = self._ask(line)
            if answer.endswith(b"\n"):
                return int(answer)
            self.close()
        raise OSError(errno.EAGAIN, "no process can be started")

    def close(self) -> None:
        """Let it go; its shims live on."""
        process, self._process = self._process, None
        if process is None or process.stdin is None or process.stdout is None:
            return
        with suppress(BrokenPipeError):  # what a dead one has not read
            process.stdin.close()
        process.stdout.close()
        process.wait()

    def _ask(self, line: bytes) -> bytes:
        if self._process is None:
            self._process = subprocess.Popen(
                [sys.executable, "-I", "-S", "-c", _PROGRAM, _PACKAGES],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                env={},
                cwd="/",
                start_new_session=True,
            )
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        try:
            self._process.stdin.write(line)
            self._process.stdin.flush()
            return self._process.stdout.readline()
        except BrokenPipeError:
            return b""
