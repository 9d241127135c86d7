"""Findings: what each check measured, what was wanted, and the cure. Pure."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

__all__ = ["Diagnosis", "Finding", "Limits", "Verdict", "closing_line", "not_applicable"]


class Verdict(Enum):
    """What a check says."""

    PASS = "pass"
    WARN = "warn"
    FAIL = "fail"
    SKIPPED = "not applicable"


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """What one check found."""

    name: str
    verdict: Verdict
    measured: str
    wanted: str
    cure: str = ""
    """What to do about it, where it did not pass."""
    figures: Mapping[str, float] = field(default_factory=dict)
    """The numbers behind `measured`, for programs."""

    def row(self) -> dict[str, Any]:
        """The finding as JSON."""
        row: dict[str, Any] = {"check": self.name, "verdict": self.verdict.value}
        row |= {"measured": self.measured, "wanted": self.wanted}
        return row | ({"cure": self.cure} if self.cure else {}) | {"figures": dict(self.figures)}


@dataclass(frozen=True, slots=True)
class Limits:
    """A value up to `good` passes, up to `fair` warns; above it, or where it is no number, it fails."""

    good: float
    fair: float

    def judge(self, value: float) -> Verdict:
        """Say what a value that should be small is."""
        if value <= self.good:
            return Verdict.PASS
        return Verdict.WARN if value <= self.fair else Verdict.FAIL

    def judge_share(self, share: float) -> Verdict:
        """Say what a share is that should be large: at least `good` passes, at least `fair` warns."""
        if share >= self.good:
            return Verdict.PASS
        return Verdict.WARN if share >= self.fair else Verdict.FAIL


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """All findings about one model on one stack."""

    about: Mapping[str, str]
    """Role, model, revision, backend, version, dtype, device, kit."""
    findings: tuple[Finding, ...]

    @property
    def sound(self) -> bool:
        """Whether no check failed."""
        return all(finding.verdict is not Verdict.FAIL for finding in self.findings)

    def row(self) -> dict[str, Any]:
        """The diagnosis as JSON."""
        return {"about": dict(self.about), "checks": [finding.row() for finding in self.findings]}


def not_applicable(name: str, reason: str) -> Finding:
    """Return the finding of a check that says nothing here."""
    return Finding(name=name, verdict=Verdict.SKIPPED, measured=reason, wanted="-")


def closing_line(diagnoses: Sequence[Diagnosis]) -> str:
    """Return the line that ends the doctor's report."""
    verdicts = [finding.verdict for diagnosis in diagnoses for finding in diagnosis.findings]
    passed, warned, failed, skipped = (verdicts.count(verdict) for verdict in Verdict)
    left_out = f", {skipped} not applicable" if skipped else ""
    return f"doctor: {passed} checks passed, {warned} warned, {failed} failed{left_out}"
