"""Hold the coverage gates on coverage.py's JSON report: pure modules 100 %, all others at least 90 %.

Run by `make test-long` as `python scripts/coverage_gate.py .coverage.json`; exits with 1 and the lines that are missed.
"""

import json
import sys
from pathlib import Path

PURE = (
    "config.py",
    "errors.py",
    "inputs.py",
    "settings.py",
    "screen/",
    "pool/balance.py",
    "pool/catalogue.py",
    "pool/items.py",
    "pool/jsontext.py",
    "pool/specs.py",
    "pool/gold.py",
    "pool/embedded.py",
    "pool/checks.py",
    "pool/issues.py",
    "pool/options.py",
    "pool/raw.py",
    "pool/fields.py",
    "pool/figures.py",
    "pool/findings.py",
    "pool/nesting.py",
    "pool/transforms.py",
    "pool/times.py",
    "pool/leaks.py",
    "pool/texts.py",
    "pool/footage.py",
    "pool/mapped.py",
    "pool/mapping.py",
    "pool/drift.py",
    "pool/summary.py",
    "pool/guess",
    "pool/lmms_",
    "pool/spec_text.py",
    "video/grid.py",
    "backends/affinity.py",
    "backends/letters.py",
    "backends/packed.py",
    "backends/queries.py",
    "backends/replies.py",
    "backends/scripted.py",
    "backends/serving.py",
    "backends/sharing.py",
    "doctor/checks.py",
    "doctor/findings.py",
    "doctor/speed.py",
    "doctor/stability.py",
    "run/batch_script.py",
    "run/estimate.py",
    "run/pilot.py",
    "run/shard.py",
)
"""Modules without input and output, below src/benchcheck."""


def main(report: Path) -> int:
    """Print each file under its gate; return how the process ends."""
    files = json.loads(report.read_text(encoding="utf-8"))["files"]
    low = 0
    for name, entry in sorted(files.items()):
        module = name.partition("src/benchcheck/")[2]
        gate = 100.0 if module.startswith(PURE) else 90.0
        covered = entry["summary"]["percent_covered"]
        if covered < gate:
            low += 1
            print(f"{name}: {covered:.1f} % < {gate:.0f} %; missing lines {entry['missing_lines']}")
    total = sum(entry["summary"]["covered_lines"] for entry in files.values())
    print(f"{len(files)} files, {total} lines covered, {low} under their gate")
    return 1 if low or not files else 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
