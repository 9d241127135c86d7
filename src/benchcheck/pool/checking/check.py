"""`benchcheck pool check`: what a pool says about each benchmark without any model (docs/pool-check.md)."""

import csv
import difflib
import hashlib
import json
import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from benchcheck.config import COMMIT
from benchcheck.errors import StudyError, UsageError
from benchcheck.pool.checking.arrays import read_arrays
from benchcheck.pool.checking.balance import Shortcut, expected_letters, holm
from benchcheck.pool.checking.figures import BenchFigures, Overlap, bench_figures, overlaps, repeats
from benchcheck.pool.issues import ISSUES
from benchcheck.screen.prompts import LETTERS
from benchcheck.screen.statistics import wilson
from benchcheck.study import Study

__all__ = ["ALPHA", "DECLARED", "BenchCheck", "PoolCheck", "check_pool"]

ALPHA = 0.001
"""A signal is marked where its adjusted p-value is below this."""
DECLARED = frozenset({"open_ended", "erratum"})
"""Blocking codes that a spec asks for: no fault of the file."""
_TESTS = ("letters", "longest", "shortest", "option_prior")


@dataclass(frozen=True, slots=True)
class BenchCheck:
    """What was found about one benchmark."""

    bench: str
    items: int
    formats: Mapping[str, int]
    figures: BenchFigures
    issues: Counter[str]
    repeats: int
    repeats_any_video: int
    other_gold: int
    shared: int
    """Items whose question and options another benchmark has."""
    spec: str = ""
    checked: str = ""
    drift: str = ""
    files: Mapping[str, str] = field(default_factory=dict)
    """`same`, `pinned`, `changed` or `missing`, for each annotation file that the manifest names."""
    adjusted: Mapping[str, float] = field(default_factory=dict)
    """p-values of `letters`, `longest`, `shortest` and `option_prior` after Holm, over all benchmarks of the pool."""

    @property
    def blocked(self) -> dict[str, int]:
        """Items per code that keeps them from being screened, the most first. A code of another version is a note."""
        return {code: count for code, count in self.issues.most_common() if code in ISSUES and ISSUES[code].blocks}

    @property
    def p_values(self) -> dict[str, float]:
        """p-values before they are adjusted."""
        found = self.figures
        return {
            "letters": found.letter_test.p,
            "longest": found.longest.p_other,
            "shortest": found.shortest.p_other,
            "option_prior": found.option_prior_p,
        }

    def marked(self, test: str) -> bool:
        """Whether a test's result is beyond chance."""
        return self.adjusted.get(test, 1.0) < ALPHA

    @property
    def majority(self) -> int:
        """Place of the letter that is right most often, the first of equals."""
        letters = self.figures.letters
        return letters.index(max(letters)) if letters else 0

    @property
    def majority_letter(self) -> str:
        """That letter, empty where there is none."""
        return _letter(self.majority) if self.figures.mcq else ""

    @property
    def majority_acc(self) -> float | None:
        """Accuracy of always answering that letter."""
        return self.figures.letters[self.majority] / self.figures.mcq if self.figures.mcq else None

    @property
    def moved(self) -> dict[str, str]:
        """Files that are not what the pool was built from."""
        return {path: state for path, state in self.files.items() if state in ("changed", "missing")}

    @property
    def faults(self) -> list[str]:
        """What `--strict` fails for, in a few words each: what puts all else in doubt comes first."""
        found = [f"{path} {state}" for path, state in self.moved.items()]
        found += [f"drift: {self.drift}"] if self.drift else []
        found += [f"{count:,} {code}" for code, count in self.blocked.items() if code not in DECLARED]
        return found + ([f"{self.repeats:,} repeats"] if self.repeats else [])

    def row(self) -> dict[str, Any]:
        """The JSON object of one benchmark; docs/pool-check.md describes every key."""
        found, letters = self.figures, self.figures.letters
        row: dict[str, Any] = {
            "bench": self.bench,
            "spec": self.spec,
            "checked": self.checked,
            "drift": self.drift,
            "files": dict(self.files),
            "items": self.items,
            "mcq": found.mcq,
            "open": self.items - found.mcq,
            "formats": dict(self.formats),
            "option_counts": {str(size): count for size, count in found.sizes.items()},
            "categories": found.categories,
            "questions": found.questions,
            "videos": found.videos,
            "chance": found.chance,
            "chance_nominal": 1 / max(found.sizes) if found.sizes else None,
            "chance_macro": found.chance_macro,
            "letters": {_letter(place): count for place, count in enumerate(letters)},
            "letters_expected": {
                _letter(place): count for place, count in enumerate(expected_letters(found.sizes, len(letters)))
            },
            "letters_chi_square": found.letter_test.statistic if math.isfinite(found.letter_test.statistic) else None,
            "letters_df": found.letter_test.df,
            "majority_letter": self.majority_letter,
            "majority_acc": self.majority_acc,
        }
        for name in _TESTS[1:]:
            rule: Shortcut = getattr(found, name)
            band = wilson(rule.hits, rule.n)
            values = (rule.share, band.low, band.high) if rule.n else (None, None, None)
            row |= dict(zip((f"{name}_acc", f"{name}_low", f"{name}_high"), values, strict=True))
        for name in _TESTS:
            row |= {f"{name}_p": self.p_values[name], f"{name}_p_adjusted": self.adjusted.get(name)}
        return row | {
            "above_items": found.above,
            "above_right": found.above_right,
            "unknown_items": found.unknown,
            "unknown_right": found.unknown_right,
            "issues": dict(self.issues.most_common()),
            "blocked": self.blocked,
            "repeats": self.repeats,
            "repeats_any_video": self.repeats_any_video,
            "other_gold": self.other_gold,
            "shared_items": self.shared,
            "faults": self.faults,
        }


def _letter(place: int) -> str:
    """A place's letter; its number where there is none."""
    return LETTERS[place] if place < len(LETTERS) else str(place)


@dataclass(frozen=True, slots=True)
class PoolCheck:
    """What was found about the benchmarks of a pool, or about some of them."""

    pool: Path
    benches: tuple[BenchCheck, ...]
    overlaps: tuple[dict[str, Any], ...]
    tests: int
    """How many p-values were adjusted together."""

    def row(self) -> dict[str, Any]:
        """The check as JSON, without findings."""
        return {
            "pool": str(self.pool),
            "items": sum(bench.items for bench in self.benches),
            "mcq": sum(bench.figures.mcq for bench in self.benches),
            "alpha": ALPHA,
            "correction": "holm",
            "tests": self.tests,
            "benches": [bench.row() for bench in self.benches],
            "overlaps": list(self.overlaps),
            "faults": self.faults,
        }

    @property
    def faults(self) -> list[str]:
        """What `--strict` fails for."""
        return [f"{bench.bench}: {fault}" for bench in self.benches for fault in bench.faults]

    def named(self, names: Sequence[str]) -> "PoolCheck":
        """Return what was found about some benchmarks alone; figures are those of the whole pool.

        Raises:
            UsageError: the pool has no benchmark of a name.
        """
        known = [bench.bench for bench in self.benches]
        for name in names:
            if name not in known:
                close = difflib.get_close_matches(name, known, 1)
                hint = f" Did you mean {close[0]!r}?" if close else ""
                raise UsageError(f"{self.pool}: no benchmark is called {name!r}.{hint} Allowed: {', '.join(known)}")
        return PoolCheck(
            self.pool,
            tuple(bench for bench in self.benches if bench.bench in names),
            tuple(pair for pair in self.overlaps if {pair["one"], pair["other"]} & set(names)),
            self.tests,
        )


def check_pool(study: Study) -> PoolCheck:
    """Read a study's pool and manifest, and say what they show about every benchmark.

    Raises:
        StudyError: there is no pool yet, or it or its manifest is damaged.
    """
    pool = read_arrays(study)
    manifest, again = _manifest(study), repeats(pool)
    benches = []
    for number, name in enumerate(pool.benches):
        mine = pool.bench == number
        row = manifest.get(name, {})
        formats = Counter(pool.formats[code] for code in pool.format[mine].tolist())
        benches.append(
            BenchCheck(
                bench=name,
                items=int(mine.sum()),
                formats=dict(formats.most_common()),
                figures=bench_figures(pool, number),
                issues=pool.issues[number],
                repeats=int(again.repeats[number]),
                repeats_any_video=int(again.any_video[number]),
                other_gold=int(again.other_gold[number]),
                shared=int(again.elsewhere[number]),
                spec=row.get("spec") or "",
                checked=row.get("checked") or "",
                drift=row.get("drift") or "",
                files=_states(study, row),
            )
        )
    adjusted, tests = _adjusted(benches)
    pairs = tuple(_pair(pair, pool.benches) for pair in overlaps(pool))
    return PoolCheck(study.pool_file, adjusted, pairs, tests)


def _adjusted(benches: Sequence[BenchCheck]) -> tuple[tuple[BenchCheck, ...], int]:
    """Adjust the p-values of all benchmarks together; returns the benchmarks with them, and how many there were."""
    tested = [bench for bench in benches if bench.figures.mcq]
    values = iter(holm([bench.p_values[test] for bench in tested for test in _TESTS]))
    found = [
        replace(bench, adjusted={test: next(values) for test in _TESTS}) if bench.figures.mcq else bench
        for bench in benches
    ]
    return tuple(found), len(tested) * len(_TESTS)


def _pair(pair: Overlap, names: Sequence[str]) -> dict[str, Any]:
    """The JSON object of two benchmarks with questions in common."""
    return {
        "one": names[pair.one],
        "other": names[pair.other],
        "questions": pair.questions,
        "one_items": pair.one_items,
        "other_items": pair.other_items,
        "one_gold_in_other": pair.gold_in_other,
        "other_gold_in_one": pair.gold_in_one,
    }


def _manifest(study: Study) -> dict[str, dict[str, str]]:
    """Rows of the pool's manifest by benchmark; none where there is no manifest."""
    path = study.pool_file.parent / study.manifest_file.name if study.pool_is_given else study.manifest_file
    try:
        with path.open(encoding="utf-8", newline="") as file:
            return {row["bench"]: row for row in csv.DictReader(file) if row.get("bench")}
    except FileNotFoundError:
        return {}
    except (OSError, UnicodeDecodeError, csv.Error) as reason:
        raise StudyError(f"{path}: not readable ({reason}). Cure: benchcheck pool build {study.root}") from None


def _files(study: Study, row: Mapping[str, str]) -> dict[str, str]:
    """The SHA-256 of each annotation file when the pool was built; none where the manifest does not say."""
    try:
        found = json.loads(row.get("files") or "{}")
    except ValueError:
        found = None
    if not isinstance(found, dict):
        raise StudyError(
            f"{study.manifest_file}: files of {row['bench']!r} is no JSON object of path and SHA-256. "
            f"Cure: benchcheck pool build {study.root}"
        )
    return {str(path): str(digest) for path, digest in found.items()}


def _states(study: Study, row: Mapping[str, str]) -> dict[str, str]:
    """Whether each annotation file is still what the pool was built from; not asked of a pool that another study built.

    A hub dataset at a commit cannot change, and need not be on this machine: its files are `pinned`.
    """
    if study.pool_is_given:
        return {}
    _, at, version = (row.get("source") or "").rpartition("@")
    pinned = bool(at) and COMMIT.fullmatch(version) is not None
    states = {path: _state(study.places.data / path, digest) for path, digest in _files(study, row).items()}
    return {
        path: "pinned" if pinned and state == "missing" and not Path(path).is_absolute() else state
        for path, state in states.items()
    }


def _state(path: Path, digest: str) -> str:
    """Whether a file is there and has this SHA-256."""
    try:
        with path.open("rb") as file:
            return "same" if hashlib.file_digest(file, "sha256").hexdigest() == digest else "changed"
    except (OSError, ValueError):
        return "missing"
