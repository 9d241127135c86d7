"""Amounts in words: bytes and numbers of things, as every command on frames says them. Pure."""

__all__ = ["counted", "shown_size"]


def shown_size(size: float) -> str:
    """Return bytes for people, such as 5.1 GB."""
    for unit, one in (("TB", 10**12), ("GB", 10**9), ("MB", 10**6), ("kB", 10**3)):
        if size >= one:
            return f"{size / one:.3g} {unit}" if size < 999.5 * one else f"{size / one:,.0f} {unit}"
    return f"{size:.0f} bytes"


def counted(count: int, noun: str) -> str:
    """Return a number of things for people: 1 shard, 2 shards."""
    return f"{count:,} {noun}{'' if count == 1 else 's'}"
