"""Partitions as jobs name them: each is all nodes that belong to it, some to others as well."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from foresail.model.cluster import Cluster, Partition
from foresail.model.resources import Resources

_BETWEEN = ","


def names_in(text: str | None) -> tuple[str, ...]:
    """The partitions that a job or a node names: ``a,b`` is two of them."""
    names = () if text is None else (name.strip() for name in text.split(_BETWEEN))
    return tuple(dict.fromkeys(name for name in names if name))


def belongs(record: str, names: Iterable[str]) -> bool:
    """Whether nodes of a record belong to any of these partitions."""
    return not {record, *names_in(record)}.isdisjoint(names)


class NamedPartitions:
    """Which ``Partition`` records of a cluster make up each partition that jobs may name.

    Nodes that belong to several have a record of their own, called ``a,b``: partition ``a`` is that
    one and the one called ``a``.
    """

    def __init__(self, cluster: Cluster) -> None:
        records: dict[str, list[str]] = {}
        for each in cluster.partitions:
            for name in names_in(each.name) or (each.name,):
                records.setdefault(name, []).append(each.name)
        self.records: Mapping[str, tuple[str, ...]] = {
            name: tuple(sorted(some, key=lambda record: len(names_in(record))))
            for name, some in records.items()
        }
        """Names of records by name of the partition, those that belong to the fewest first."""
        self._asked: dict[str | None, tuple[str, ...]] = {None: ()}

    def whole(self, cluster: Cluster) -> Iterator[Partition]:
        """Each partition as a record of its own: what all of its nodes have."""
        known = {each.name: each for each in cluster.partitions}
        for name, records in self.records.items():
            if records == (name,):
                yield known[name]
            else:
                total = sum((known[each].total for each in records), Resources())
                yield Partition(name, total, tuple(n for r in records for n in known[r].nodes))

    def asked(self, text: str | None) -> tuple[str, ...]:
        """The partitions in any one of which a job is to run; none if it names none there is."""
        known = self._asked.get(text)
        if known is None:
            known = tuple(name for name in names_in(text) if name in self.records)
            self._asked[text] = known
        return known

    def allows(self, text: str | None, *records: str) -> bool:
        """Whether a job that names these partitions may run on nodes of these records at once."""
        asked = self.asked(text)
        return not asked or any({*self.records[name]}.issuperset(records) for name in asked)
