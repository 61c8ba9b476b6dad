"""Commands of jobs that are not done with: of thousands that wait, few are asked for at a time."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from foresail.live.command_job import CommandJob


class CommandsById(Mapping[str, CommandJob]):
    """Commands by the ids of their jobs; one that was stored is read when it is first asked for.

    Parameters
    ----------
    stored
        Ids and the lines of their commands, as ``CommandJob.to_json`` writes them.
    """

    def __init__(self, stored: Iterable[tuple[str, str]]) -> None:
        self._commands: dict[str, CommandJob | str] = dict(stored)

    def __getitem__(self, job_id: str) -> CommandJob:
        command = self._commands[job_id]
        if isinstance(command, str):
            command = self._commands[job_id] = CommandJob.from_json(command)
        return command

    def __iter__(self) -> Iterator[str]:
        return iter(self._commands)

    def __len__(self) -> int:
        return len(self._commands)

    def put(self, job: CommandJob) -> None:
        """Keep another; as a line, which takes a third of the room until it is run."""
        self._commands[job.job_id] = job.to_json()

    def forget(self, job_ids: Iterable[str]) -> None:
        """These will not be run again."""
        for job_id in job_ids:
            self._commands.pop(job_id, None)
