"""All records of a benchmark: what they show together and one alone does not (protocol 1). Pure.

`mapping.map_record` is the work, one record at a time, in any process; `Together` is the thin part that needs them in
order: it finds repeats, and a file that is not what its spec says. A million items cost it about 110 MB.
"""

import dataclasses
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from benchcheck.errors import InputError
from benchcheck.pool.fields import shown
from benchcheck.pool.issues import Issue
from benchcheck.pool.items import Item
from benchcheck.pool.mapping import Mapped, map_record, sorted_texts
from benchcheck.pool.options import COLUMN_FAMILIES
from benchcheck.pool.reading.readers import Record
from benchcheck.pool.specs import Spec

__all__ = ["CheckedItem", "Together", "checked_items", "items_of"]


@dataclass(frozen=True, slots=True)
class CheckedItem:
    """An item, where its record stands (the values are not kept), and its issues with the values that show them."""

    item: Item
    record: Record
    issues: tuple[Issue, ...]


class Together:
    """What only all records of a benchmark show, taken in one by one in their order.

    `left_out` counts the records that `where` left out; `unmet_errata` are the ids that no item has.
    """

    def __init__(self, spec: Spec) -> None:
        """Begin with no record seen."""
        self.spec = spec
        self.left_out = 0
        self.unmet_errata = dict.fromkeys(spec.errata)
        self._needed = spec.needed_fields()
        self._present = 0
        self._options_seen = False
        self._numbers: Counter[str] = Counter()
        self._first: dict[int, int] = {}
        """Identity to gold of the first item with it, both as `Mapped` has them."""
        self._last: Mapped | None = None
        self._left_all = True
        self._fields: tuple[str, ...] = ()

    def add(self, mapped: Mapped) -> CheckedItem | None:
        """Take in the next record; return its item, with what was said before it, or None when it is left out."""
        self._last = mapped
        self._present |= mapped.present
        self._options_seen = self._options_seen or mapped.has_options
        self._fields = mapped.fields or self._fields
        if mapped.item is None:
            self.left_out += 1
            return None
        self._left_all = False
        if mapped.number:
            self._numbers[mapped.number] += 1
        if self.unmet_errata:
            self.unmet_errata.pop(mapped.item.source_id, None)
        repeat = self._repeat(mapped.identity, mapped, mapped.item) if mapped.identity is not None else None
        if repeat is None:
            return CheckedItem(mapped.item, mapped.record, mapped.issues)
        item = dataclasses.replace(mapped.item, issues=(*mapped.item.issues, repeat.code))
        return CheckedItem(item, mapped.record, (*mapped.issues, repeat))

    def finish(self) -> None:
        """Refuse files that are not what the spec says: only all records show it. Nothing to say of no records.

        Raises:
            InputError: a field that the spec needs is in no record, `where` left all records out, or the golds count
                from another number than declared.
        """
        if self._last is not None:
            self._check_fields(self._last.record)
            self._check_left(self._last.record)
            self._check_base(self._last.record)

    def _repeat(self, identity: int, mapped: Mapped, item: Item) -> Issue | None:
        """Note an item that an earlier row asked already, with the same gold or with another."""
        count, place = len(self._first), mapped.gold_place
        earlier = self._first.setdefault(identity, place)
        if len(self._first) > count:
            return None
        texts = sorted_texts(item.options)  # none where another process keeps the item
        gold, before = (shown(texts[at]) if 0 <= at < len(texts) else at for at in (place, earlier))
        if earlier == place:
            return Issue("repeated_item", f"gold {gold}" if place >= 0 else "no gold")
        return Issue("other_gold", f"gold {gold}, before {before}") if min(earlier, place) >= 0 else None

    def _check_fields(self, last: Record) -> None:
        """Refuse a file of which no record has a field that the spec needs."""
        spec, has = self.spec, f"Its fields: {', '.join(map(repr, self._fields))}"
        for bit, (name, use) in enumerate(self._needed.items()):
            if not self._present >> bit & 1:
                cure = f"rename a column to {name!r}, or write a spec that names yours (docs/pool.md)"
                raise InputError(f"{last.file}: no record has {name!r}, which is needed for {use}. {has}. Cure: {cure}")
        if not self._options_seen:
            families = ", ".join(f"{family[0]} {family[1]} …" for family in COLUMN_FAMILIES[:4])
            options = spec.options
            known = f"{options.field!r}, or columns such as {families}" if options.kind == "auto" else ""
            declared = options.fields or (options.field or options.gold_field, *options.others)
            names = known or ", ".join(map(repr, declared))
            cure = "give the options, or write a spec that names yours (docs/pool.md)"
            note = f" {spec.source.note}" if spec.source.note else ""
            raise InputError(f"{last.file}: no record has options. Allowed: {names}. {has}.{note} Cure: {cure}")

    def _check_left(self, last: Record) -> None:
        """Refuse a filter that no record passes."""
        if self._left_all:
            where = ", ".join(f"{name} = {shown(value)}" for name, value in self.spec.where.items())
            raise InputError(
                f"{last.file}: no record is one of {where}: all {self.left_out} are left out. "
                f"Cure: mend where in the spec, or give the file of that split"
            )

    def _check_base(self, last: Record) -> None:
        """Refuse golds that count from another number than declared: nearly all would be shifted in silence."""
        gold, numbers = self.spec.gold, self._numbers
        outside, never = ("past", "first") if gold.base == 0 else ("before", "last")
        if numbers[outside] and not numbers[never]:
            found = f"{gold.field!r} names an option just {outside} the options {numbers[outside]} times"
            raise InputError(
                f"{last.file}: read as counting from {gold.base}, {found}, and never the {never} one: it seems to "
                f"count from {1 - gold.base}. Cure: gold.base = {1 - gold.base} in a spec, or mend those rows"
            )


def items_of(spec: Spec, records: Iterable[Record]) -> Iterator[Item]:
    """Turn records into items, in order; those that `where` leaves out are none.

    Raises:
        InputError: as `checked_items`.
    """
    return (checked.item for checked in checked_items(spec, records))


def checked_items(spec: Spec, records: Iterable[Record], together: Together | None = None) -> Iterator[CheckedItem]:
    """Turn records into items, each with its place and its issues in full.

    A `Together` of the caller's counts what was left out, for whoever asks after the last item.

    Raises:
        InputError: as `map_record`, and when the records have ended as `Together.finish`.
    """
    together = together or Together(spec)
    for row, record in enumerate(records):
        checked = together.add(map_record(spec, record, row))
        if checked is not None:
            yield checked
    together.finish()
