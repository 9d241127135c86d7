"""Version drift: counts that are not those of the files that a spec was checked on (protocol 1). Pure.

Another version of a file is not wrong in any row, so nothing else would show it: the items would be other ones than
the spec's author saw, under the same name. A part of a file, such as a pilot's subset, is drift as well.
"""

from collections.abc import Sequence

from benchcheck.errors import UsageError
from benchcheck.pool.building.summary import BenchSummary
from benchcheck.pool.specs import Expect

__all__ = ["drift_of", "refuse_drift"]


def drift_of(expect: Expect, found: BenchSummary) -> str:
    """Return what differs from the counts that a spec expects, empty where nothing does."""
    pairs = (("items", found.rows, expect.items), ("mcq", found.mcq, expect.mcq))
    parts = [
        f"{count:,} {name} where {wanted:,} were expected" for name, count, wanted in pairs if wanted not in (0, count)
    ]
    if expect.options and set(expect.options) != set(found.options):
        numbers = ", ".join(map(str, sorted(found.options))) or "no"
        parts.append(f"{numbers} options where {', '.join(map(str, sorted(set(expect.options))))} were expected")
    return f"{', '.join(parts)}: another version of the file, or a part of it" if parts else ""


def refuse_drift(drifted: Sequence[BenchSummary]) -> None:
    """Refuse benchmarks whose counts differ, all at once; the first two are told in full.

    Raises:
        UsageError: there is one.
    """
    if not drifted:
        return
    # Written with an @, the commit would look like the host of an address with a password, which no message shows.
    origins = [" at ".join(bench.source.rsplit("@", 1)) for bench in drifted[:2]]
    pairs = zip(drifted, origins, strict=False)
    told = "; ".join(f"{bench.bench}: {bench.drift} (the spec is for {origin})" for bench, origin in pairs)
    others = [bench.bench for bench in drifted[2:]]
    named = ", ".join(others[:10]) + (", …" if len(others) > 10 else "")
    more = f"; and {len(others)} more benchmarks: {named}" if others else ""
    raise UsageError(
        f"{told}{more}. Nothing was written. Cure: get those files, or accept these with "
        "`benchcheck pool build --accept-drift` or accept_drift = true in the [[pool]] entry"
    )
