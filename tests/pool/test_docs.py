"""The pages about the pool say what the code does."""

import csv
import io
import json
import re
from pathlib import Path

from benchcheck.config import PoolSource
from benchcheck.pool.building.build import build_pool
from benchcheck.pool.gold import GOLD_KINDS, Gold
from benchcheck.pool.issues import ISSUES
from benchcheck.pool.options import OPTION_KINDS, Options
from benchcheck.pool.reading.nesting import STEPS
from benchcheck.pool.specs import Expect, Join, Source, Spec, VideoFields, load_spec
from benchcheck.pool.transforms import TRANSFORMS

DOCS = Path(__file__).parents[2] / "docs"


def blocks(page: str, language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", (DOCS / page).read_text(encoding="utf-8"), re.DOTALL)


def test_every_issue_code_is_on_its_page_once() -> None:
    text = (DOCS / "issue-codes.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| `(\w+)` \| (blocks|notes) \| (.*?) \| .*\|$", text, re.MULTILINE)
    assert sorted(rows) == sorted(
        (name, "blocks" if code.blocks else "notes", code.meaning) for name, code in ISSUES.items()
    )


def test_the_example_spec_loads_and_names_every_key(tmp_path: Path) -> None:
    example = blocks("pool.md", "toml")[1]
    (tmp_path / "mybench.toml").write_text(example, encoding="utf-8")
    spec = load_spec("mybench.toml", tmp_path)
    assert (spec.bench, spec.gold.kind, spec.options.fields[4], spec.video.repo) == (
        "mybench",
        "index",
        "a4",
        "owner/dataset",
    )
    for kind in (Spec, VideoFields, Join, Expect, Source):
        for key in kind.__dataclass_fields__:
            assert re.search(rf"^(# )?\[?{key}\b", example, re.MULTILINE), key


def test_every_kind_step_and_transform_is_explained() -> None:
    text = (DOCS / "pool.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| (`.*?) \|", text, re.MULTILINE)
    named = {re.match(r"[a-z_?]+", name)[0] for row in rows for name in re.findall(r"`(.*?)`", row)}
    kinds = {re.match(r"[a-z?]+", name)[0] for name in (*STEPS, *TRANSFORMS)}
    assert named >= kinds | set(OPTION_KINDS) | set(GOLD_KINDS)
    for key in (*Options.__dataclass_fields__, *Gold.__dataclass_fields__):
        assert f"`{key}" in text or f".{key}" in text or re.search(rf"^{key} =", text, re.MULTILINE), key


def test_the_example_records_build(make_study, tmp_path: Path) -> None:
    (tmp_path / "items.jsonl").write_text(blocks("pool.md", "json")[0], encoding="utf-8")
    (tmp_path / "items.csv").write_text(blocks("pool.md", "csv")[0], encoding="utf-8")
    sources = [PoolSource(spec="generic", files=(name,), bench=name[-3:]) for name in ("items.jsonl", "items.csv")]
    study = make_study(*sources)
    build_pool(study)
    from_json, from_csv = study.items()
    assert json.loads(blocks("pool.md", "json")[0])["id"] == from_json.source_id
    assert (from_json.options, from_json.gold) == (from_csv.options, from_csv.gold) == (("a cup", "a ball", "a hat"), 1)
    assert (from_csv.start, from_csv.end) == (12.5, 30.0)
    assert next(csv.reader(io.StringIO(blocks("pool.md", "csv")[0])))[0] == "question"
