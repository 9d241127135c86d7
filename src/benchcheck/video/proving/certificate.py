"""The decode-parity certificate: a sample of the frames decoded again by a second decoder, and what came of it."""

import contextlib
import datetime as dt
import hashlib
import json
import os
import random
import time
from array import array
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from benchcheck import __version__
from benchcheck.errors import StudyError, UsageError
from benchcheck.files import publish
from benchcheck.pipes import cores
from benchcheck.study import FRAMES_FILE, Study
from benchcheck.video.crew import settled
from benchcheck.video.faults import VideoError
from benchcheck.video.frames import read_folder, refuse_other_spec, spec_in
from benchcheck.video.making.extract import LIMIT_S, FramesProgress
from benchcheck.video.proving.compare import LIMITS, Compared
from benchcheck.video.proving.second import second_versions
from benchcheck.video.wanted import WantedSet, tasks_of, wanted_sets

__all__ = ["CERTIFICATE_VERSION", "certificate_line", "certify"]

CERTIFICATE_VERSION = 1
_COUNTS = {
    "agrees": "agreeing",
    "differs": "differing",
    "not_decoded": "not_decoded",
    "not_recorded": "not_recorded",
    "source_missing": "source_missing",
    "source_changed": "source_changed",
}
"""Statuses of a set, and what their counts are called."""
_WORST = 10
_EXAMPLES = 5
_LOOKED_AT = 1000
"""Sets of a certificate that `status` looks at: 20 ms."""


def certify(
    study: Study,
    *,
    sample: int = 50,
    seed: int = 42,
    workers: int | None = None,
    progress: Callable[[FramesProgress], None] | None = None,
    limit_s: float = LIMIT_S,
) -> dict[str, Any]:
    """Decode a sample of the ready sets again (0 is all), compare, write the certificate and return it.

    Raises:
        MissingExtraError: the second decoder is not installed.
        StudyError: no set is ready, one was made with another `[frames]` config, which the study would not show, or the
            certificate cannot be written.
        UsageError: `workers`, `limit_s` or `sample` is out of range.
    """
    workers = cores() if workers is None else workers
    if workers < 1 or limit_s <= 0 or sample < 0:
        raise UsageError(f"workers = {workers} and limit_s = {limit_s:g} must be above 0, sample = {sample} not below")
    second = second_versions()
    ready = study.frames_ready()
    there = {each.frames_key: each for each in wanted_sets(study) if each.frames_key in ready}
    if not there:
        raise StudyError(f"{study.frames}: no set of frames is ready. Cure: benchcheck frames extract {study.root}")
    chosen = [there[key] for key in _drawn(sorted(there), sample, seed)]
    tables = ((each.frames_key, read_folder(study.frames / each.frames_key)) for each in chosen)
    refuse_other_spec(study, [(key, spec_in(table)) for key, table in tables if not isinstance(table, str)])
    # Before they are looked at: a set that is made again meanwhile makes the certificate stale.
    marks = {each.frames_key: _mark(study, each.frames_key) for each in chosen}
    tally = _tally(study, chosen, workers, limit_s, progress)
    rule = {"sample": sample, "seed": seed, "of": len(there), "drawn": len(chosen), "ready": len(ready)}
    certificate = tally.certificate(rule, second) | {"sets": marks}
    with publish(study.certificate_file) as path:
        path.write_text(json.dumps(certificate, indent=1) + "\n", encoding="utf-8")
    return certificate


def _drawn(keys: Sequence[str], sample: int, seed: int) -> list[str]:
    """The sample: the same for the same sets and seed."""
    if sample == 0 or sample >= len(keys):
        return list(keys)
    return sorted(random.Random(f"{seed}|frames check").sample(keys, sample))


def _tally(
    study: Study,
    chosen: Sequence[WantedSet],
    workers: int,
    limit_s: float,
    progress: Callable[[FramesProgress], None] | None,
) -> "_Tally":
    """Compare the chosen sets in worker processes."""
    tasks, hopeless = tasks_of(study, chosen)
    settings = {
        "job": "compare",
        "folder": os.path.abspath(study.frames),
        "normalized": os.path.abspath(study.normalized),
        "limit_s": limit_s,
    }
    tally, begun = _Tally(), time.monotonic()
    for outcomes in hopeless:
        for outcome in outcomes:
            tally.add(Compared(outcome.frames_key, "source_missing", f"{outcome.status}: {outcome.error}"))
    with contextlib.closing(settled(tasks, settings, max(1, min(workers, len(tasks))))) as answers:
        for done, (task, answer) in enumerate(answers, 1):
            if isinstance(answer, VideoError):
                found = [Compared(key, "not_decoded", f"{answer.status}: {answer.reason}") for key in task.windows]
            else:
                found = [Compared(**one) for one in answer["sets"]]
            for one in found:
                tally.add(one)
            if progress is not None:
                agrees, total = tally.counts["agrees"], len(chosen)
                failed = tally.counts.total() - agrees
                progress(FramesProgress(agrees, failed, total, done, time.monotonic() - begun))
    return tally


@dataclass(slots=True)
class _Tally:
    """What was found so far; numbers of single frames are kept as doubles, 24 bytes a frame."""

    counts: Counter[str] = field(default_factory=Counter)
    pts: "array[float]" = field(default_factory=lambda: array("d"))
    psnr: "array[float]" = field(default_factory=lambda: array("d"))
    mean: "array[float]" = field(default_factory=lambda: array("d"))
    flagged: int = 0
    worst: list[dict[str, Any]] = field(default_factory=list)
    reasons: dict[str, list[list[str]]] = field(default_factory=dict)
    decoders: Counter[str] = field(default_factory=Counter)
    digests: list[str] = field(default_factory=list)

    def add(self, found: Compared) -> None:
        """Count one set."""
        self.counts[found.status] += 1
        self.flagged += found.flagged
        if found.digest:
            self.digests.append(f"{found.frames_key} {found.digest}\n")
            made_by = {name: version for name, version in found.decoder.items() if name != "name"}
            self.decoders[json.dumps(made_by, sort_keys=True)] += 1
        if found.status in ("agrees", "differs"):
            for name in ("pts", "psnr", "mean"):
                getattr(self, name).extend(getattr(found, name))
            self.worst = sorted([*self.worst, _numbers(found)], key=_badness)[:_WORST]
        if found.status != "agrees" and len(shown := self.reasons.setdefault(found.status, [])) < _EXAMPLES:
            shown.append([found.frames_key, found.reason])

    def certificate(self, rule: Mapping[str, Any], second: Mapping[str, str]) -> dict[str, Any]:
        """Return all of it as JSON values."""
        return {
            "version": CERTIFICATE_VERSION,
            "at": dt.datetime.now(dt.UTC).isoformat(timespec="seconds"),
            "benchcheck": __version__,
            "first_decoder": [{**json.loads(made_by), "sets": count} for made_by, count in self.decoders.most_common()],
            "second_decoder": dict(second),
            "rule": dict(rule),
            "counts": {name: self.counts[status] for status, name in _COUNTS.items()},
            "frames": {"timed": len(self.pts), "compared": len(self.psnr), "flagged_damaged": self.flagged},
            "limits": dict(LIMITS),
            "pts_difference_s": _quantiles(self.pts, ("median", "p95", "p99", "most")),
            "psnr_db": _quantiles(self.psnr, ("least", "p1", "p5", "median")),
            "mean_difference": _quantiles(self.mean, ("median", "p95", "p99", "most")),
            "worst": self.worst,
            "reasons": self.reasons,
            "digest": hashlib.sha256("".join(sorted(self.digests)).encode()).hexdigest(),
        }


def _numbers(found: Compared) -> dict[str, Any]:
    """A set's own figures."""
    return {
        "frames_key": found.frames_key,
        "status": found.status,
        "reason": found.reason,
        "pts_difference_s": max(found.pts, default=None),
        "psnr_db": min(found.psnr, default=None),
        "mean_difference": max(found.mean, default=None),
    }


def _badness(numbers: Mapping[str, Any]) -> tuple[bool, float, str]:
    """Sorts sets that differ first, then by their worst picture."""
    psnr = numbers["psnr_db"]
    return (numbers["status"] == "agrees", 0.0 if psnr is None else psnr, numbers["frames_key"])


_SHARES = {"least": 0.0, "p1": 0.01, "p5": 0.05, "median": 0.5, "p95": 0.95, "p99": 0.99, "most": 1.0}


def _quantiles(values: Sequence[float], names: Sequence[str]) -> dict[str, float | None]:
    """Return quantiles by name; null where there are no values."""
    import numpy as np

    if not values:
        return dict.fromkeys(names)
    found = np.quantile(np.asarray(values), [_SHARES[name] for name in names])
    return {name: round(float(value), 6) for name, value in zip(names, found, strict=True)}


def _mark(study: Study, frames_key: str) -> str:
    """16 hex digits over a set's frames.json, by which a set that was made again is told; empty where there is none."""
    try:
        return hashlib.sha256((study.frames / frames_key / FRAMES_FILE).read_bytes()).hexdigest()[:16]
    except (OSError, ValueError):  # a name that no file can have
        return ""


def certificate_line(study: Study) -> str:
    """Return what a study's certificate says in one line, and whether it is stale; empty where there is none."""
    path = study.certificate_file
    try:
        table = json.loads(path.read_bytes())
        counts, marks, rule = dict(table["counts"]), dict(table["sets"]), table["rule"]
        line = (
            f"frames checked on {table['at'][:10]}: of {rule['drawn']:,} sets drawn from {rule['of']:,}, "
            f"{counts['agreeing']:,} agree with a second decoder, {counts['differing']:,} differ"
        )
        others = rule["drawn"] - counts["agreeing"] - counts["differing"]
        stale = _stale(study, marks, rule["ready"])
    except FileNotFoundError:
        return ""
    except (OSError, ValueError, TypeError, LookupError, AttributeError, RecursionError):
        # Begins with a word: where it stands in a sentence of its own it is given a capital, which a path must not be.
        what = f"no frames are certified: {path}: not readable as a certificate"
        return f"{what}. Cure: benchcheck frames check {study.root}"
    return line + (f", {others:,} could not be compared" if others else "") + (f"; stale: {stale}" if stale else "")


def _stale(study: Study, marks: Mapping[str, str], then: int) -> str:
    """Why a certificate no longer speaks of the frames that are there, `then` so many sets; empty where it does."""
    looked_at = sorted(marks)[:_LOOKED_AT]
    changed = sum(_mark(study, key) != marks[key] for key in looked_at)
    if changed:
        return f"{changed:,} of its sets are others now"
    new = len(study.frames_ready()) - then
    return f"{new:,} sets are newer" if new > 0 else ""
