"""What is counted of a run's decisions."""

from __future__ import annotations

from dataclasses import asdict, dataclass

from foresail.record.records import Corrected, Counted, Decided, Record, Refused


@dataclass(slots=True)
class Counters:
    """What a controller counts.

    ``passes`` in which a job could start (ticks without news pass by a scheduler that
    ``IgnoresTime``); ``corrections``; ``refusals``: parts of decisions that
    were let through to no job; ``delayed_heads``: passes after which the job planned first is the
    same as before and its planned start is later.
    """

    passes: int = 0
    corrections: int = 0
    refusals: int = 0
    delayed_heads: int = 0

    def take(self, record: Record) -> None:
        """Count what the next record of a run tells."""
        match record:
            case Decided():
                self.passes += 1
                self.delayed_heads += record.head_delayed
            case Corrected():
                self.corrections += 1
            case Refused():
                self.refusals += 1
            case Counted():
                for name, count in asdict(record).items():
                    setattr(self, name, count)
