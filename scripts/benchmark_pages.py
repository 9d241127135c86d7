"""Write the tables of docs/benchmarks.md and DATA.md out of the specs that ship.

`python scripts/benchmark_pages.py` writes them; a test holds that they are as it would write them.
"""

import re
from pathlib import Path

from benchcheck.pool.catalogue import licence_rows, page_rows
from benchcheck.pool.specs import load_spec, spec_names

ROOT = Path(__file__).parents[1]
_TABLE = re.compile(r"(<!-- begin: scripts/benchmark_pages\.py -->\n).*(<!-- end -->\n)", re.DOTALL)


def pages() -> dict[Path, str]:
    """Return both pages as they should be, by path."""
    specs = [load_spec(name) for name in spec_names() if name != "generic"]
    tables = {ROOT / "docs" / "benchmarks.md": page_rows(specs), ROOT / "DATA.md": licence_rows(specs)}
    return {path: _with_table(path.read_text(encoding="utf-8"), rows) for path, rows in tables.items()}


def _with_table(page: str, rows: list[str]) -> str:
    """Return a page with the rows between its two marks."""
    table = "\n" + "\n".join(rows) + "\n\n"
    made, found = _TABLE.subn(lambda marks: marks.group(1) + table + marks.group(2), page)
    if found != 1:
        raise ValueError(f"a page has the marks {found} times, not once")
    return made


if __name__ == "__main__":
    for path, text in pages().items():
        path.write_text(text, encoding="utf-8")
        print(path)
