"""A second annotation file laid beside the first, record by record, such as one with the answers.

The second file is held in memory whole, as one dict per record; the first streams past it. The answer files that were
seen have 10,002 records at most (559 kB). A file per folder stays in memory until the last record has passed.
"""

from collections.abc import Iterable, Iterator
from pathlib import Path

from benchcheck.errors import InputError
from benchcheck.pool.fields import shown, text_of, value_of
from benchcheck.pool.reading.readers import Record, read_records
from benchcheck.pool.specs import JOINED, Join

__all__ = ["Partners"]


class Partners:
    """The records of a spec's second file, or files: one lies beside each file of the first kind."""

    def __init__(self, join: Join) -> None:
        """Take what a spec declares."""
        self.join = join
        self._tables: dict[Path, dict[str, Record]] = {}
        self._unmet: dict[Path, set[str]] = {}

    @property
    def unmet(self) -> int:
        """Records of the second files that no record of the first asked for so far."""
        return sum(map(len, self._unmet.values()))

    def lay(self, records: Iterable[Record]) -> Iterator[Record]:
        """Give every record its partner's fields, where it has none of that name itself, or null there.

        A record without a partner passes as it is; the field `_joined` says so.

        Raises:
            InputError: a second file is missing or no annotation file, or a record of it has no key or another's.
        """
        for record in records:
            path = self.join.beside(record.file)
            if path not in self._tables:
                self._tables[path] = self._read(path, record)
                self._unmet[path] = set(self._tables[path])
            key = text_of(value_of(record.values, self.join.on))
            partner = self._tables[path].get(key)
            self._unmet[path].discard(key)
            values = {**record.values, JOINED: partner is not None}
            for name, value in partner.values.items() if partner else ():
                if values.get(name) is None:
                    values[name] = value
            yield Record(values, record.file, record.place, record.row, record.inside)

    def _read(self, path: Path, first: Record) -> dict[str, Record]:
        """Read a second file, by key."""
        join, name = self.join, self.join.key or self.join.on
        try:
            there = path.is_file()
        except OSError:  # a name that is too long
            there = False
        if not there:
            cure = f"put it beside {first.file.name}, or name it: join in the [[pool]] entry"
            raise InputError(f"{path}: no such file, and the spec joins it on {join.on!r}. Cure: {cure}")
        found: dict[str, Record] = {}
        for record in read_records(path, join.layout):
            key = text_of(value_of(record.values, name))
            if not key:
                has = ", ".join(map(repr, list(record.values)[:30]))
                raise InputError(f"{record.where}: no {name!r} to join it by. Its fields: {has}. Cure: join.key")
            if key in found:
                cure = "one record per key; a template such as '{video}_{qid}' can be a key"
                raise InputError(f"{record.where}: {name} = {shown(key)} is that of {found[key].place}. Cure: {cure}")
            found[key] = record
        return found
