"""A report page, parsed: its tags, texts and tables."""

from collections import Counter
from html.parser import HTMLParser

from benchcheck.report.assemble import assemble
from benchcheck.report.page import write_report
from benchcheck.study import Study

VOID = {"meta", "img", "br", "link", "input", "hr"}


class Page(HTMLParser):
    """A parsed page: its tags, texts and tables; unbalanced tags are an error."""

    def __init__(self, html: str) -> None:
        super().__init__(convert_charrefs=True)
        self.tags: Counter[str] = Counter()
        self.attributes: list[tuple[str, dict[str, str | None]]] = []
        self.open: list[str] = []
        self.tables: list[list[list[str]]] = []
        self.pieces: list[str] = []
        self.feed(html)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags[tag] += 1
        self.attributes.append((tag, dict(attrs)))
        if tag == "table":
            self.tables.append([])
        elif tag == "tr":
            self.tables[-1].append([])
        elif tag in ("td", "th"):
            self.tables[-1][-1].append("")
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags[tag] += 1
        self.attributes.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open, f"</{tag}> closes nothing"
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.open and self.open[-1] in ("style", "title") and "svg" not in self.open:
            return
        self.pieces.append(data)
        if ("td" in self.open or "th" in self.open) and "svg" not in self.open:
            self.tables[-1][-1][-1] += data

    @property
    def text(self) -> str:
        return " ".join(" ".join(self.pieces).split())

    def table(self, *first_row: str) -> list[list[str]]:
        """The rows of the first table whose first row begins so, white space collapsed."""
        for rows in self.tables:
            flat = [[" ".join(cell.split()) for cell in row] for row in rows]
            if flat and flat[0][: len(first_row)] == list(first_row):
                return flat
        raise AssertionError(f"no table begins with {first_row}")


def page_of(study: Study) -> Page:
    assemble(study)
    return Page(write_report(study).read_text(encoding="utf-8"))
