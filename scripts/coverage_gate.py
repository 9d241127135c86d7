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
    "pool/adding/guess",
    "pool/adding/lmms_",
    "pool/adding/spec_text.py",
    "pool/building/drift.py",
    "pool/building/summary.py",
    "pool/catalogue.py",
    "pool/checking/balance.py",
    "pool/checking/figures.py",
    "pool/checking/findings.py",
    "pool/embedded.py",
    "pool/fields.py",
    "pool/footage.py",
    "pool/gold.py",
    "pool/issues.py",
    "pool/items.py",
    "pool/leaks.py",
    "pool/mapping.py",
    "pool/options.py",
    "pool/raw.py",
    "pool/reading/jsontext.py",
    "pool/reading/nesting.py",
    "pool/specs.py",
    "pool/texts.py",
    "pool/times.py",
    "pool/together.py",
    "pool/transforms.py",
    "pool/wording.py",
    "transfer/original/fitting.py",
    "transfer/original/layout.py",
    "video/task.py",
    "video/proving/recorded.py",
    "video/failures.py",
    "video/faults.py",
    "video/decoding/seeks.py",
    "video/preparing/cadence.py",
    "video/preparing/fingerprint.py",
    "video/amounts.py",
    "video/grid.py",
    "video/shards/layout.py",
    "video/sources/names.py",
    "video/sources/parts.py",
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
    "transfer/packaged.py",
    "transfer/protocol.py",
    "transfer/far/sums.py",
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
