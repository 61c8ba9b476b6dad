"""Numbers of tasks: a set of them as a value, of which another is made in next to no time."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from itertools import chain, islice


@dataclass(frozen=True, slots=True)
class TaskNumbers(Collection[int]):
    """Some tasks of a stage, by their numbers within it, in ascending order.

    They are kept as ranges. To take out the first of ten thousand, or any other, costs as much as
    there are gaps between those that are left.
    """

    ranges: tuple[range, ...] = ()
    """Ascending, none empty, none touching the next."""

    @classmethod
    def below(cls, count: int) -> TaskNumbers:
        """All of the first ``count`` tasks."""
        return cls((range(count),) if count > 0 else ())

    def __len__(self) -> int:
        return sum(map(len, self.ranges))

    def __bool__(self) -> bool:
        return bool(self.ranges)

    def __iter__(self) -> Iterator[int]:
        return chain.from_iterable(self.ranges)

    def __contains__(self, task: object) -> bool:
        if not isinstance(task, int) or not self.ranges:
            return False
        return task in self.ranges[max(bisect_right(self.ranges, task, key=_start) - 1, 0)]

    def first(self, count: int) -> tuple[int, ...]:
        """The lowest numbers, so many of them or as many as there are."""
        return tuple(islice(self, count))

    def without(self, tasks: Iterable[int]) -> TaskNumbers:
        """All but these.

        Raises
        ------
        KeyError
            If one of them is not among these.
        """
        ranges = list(self.ranges)
        for task in tasks:
            at = max(bisect_right(ranges, task, key=_start) - 1, 0)
            if not ranges or task not in ranges[at]:
                raise KeyError(task)
            whole = ranges[at]
            parts = (range(whole.start, task), range(task + 1, whole.stop))
            ranges[at : at + 1] = [each for each in parts if each]
        return TaskNumbers(tuple(ranges))

    def including(self, tasks: Iterable[int]) -> TaskNumbers:
        """These and those."""
        ranges = list(self.ranges)
        for task in tasks:
            at = bisect_right(ranges, task, key=_start)
            if at and task in ranges[at - 1]:
                continue
            low, high, begin, end = task, task + 1, at, at
            if at and ranges[at - 1].stop == low:
                low, begin = ranges[at - 1].start, at - 1
            if at < len(ranges) and ranges[at].start == high:
                high, end = ranges[at].stop, at + 1
            ranges[begin:end] = [range(low, high)]
        return TaskNumbers(tuple(ranges))


def _start(numbers: range) -> int:
    return numbers.start
