"""The demo: a control benchmark goes through the whole house, with the truth beside every verdict.

It calls what the commands call and prints each command, so that a reader can run them on a study of their own.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from rich.table import Table

from benchcheck.backends.checkpoint import pinned
from benchcheck.config import EMBEDDED, step_key
from benchcheck.console import Bars, columns, note, pool_table, states_line, tell
from benchcheck.demo.controls import make_controls
from benchcheck.errors import UsageError
from benchcheck.files import publish
from benchcheck.pool.building.build import build_pool
from benchcheck.report.assemble import assemble
from benchcheck.report.page import write_report
from benchcheck.report.tables import open_results, read_truth
from benchcheck.run.driver import StepSummary, screen
from benchcheck.run.local import Asked, Local
from benchcheck.run.plan import survey
from benchcheck.screen.steps import STEP_NUMBERS, Sight, Step
from benchcheck.screen.verdicts import State
from benchcheck.study import CONFIG_NAME, Study
from benchcheck.video.making.extract import extract_frames

__all__ = ["Cell", "accuracy", "accuracy_table", "falls", "falls_table", "walk"]

BENCH = "controls"
CLASSES: Mapping[str, tuple[str, str]] = {
    "blind": ("the question", "1"),
    "options": ("the options", "1 or 4"),
    "one_frame": ("any one frame", "2"),
    "many_frames": ("many frames", "3 or 5"),
    "order": ("frame order", "3 or 6"),
}
"""What each class can be answered from, and the step that should take it."""
_MARKS = {State.KEPT: "·", State.FAILED: "!", State.WAITING: "w", State.PENDING: "·", State.OUTSIDE: " "}


@dataclass(frozen=True, slots=True)
class Cell:
    """One class in one step: how many items were answered, the share of orders answered right, and chance."""

    answered: int
    right: float
    chance: float


def falls(study: Study) -> dict[str, Counter[str]]:
    """Count per true class at which step the items fell, `1` to `6`, or what else became of them."""
    query = (
        "select class, if(verdict = 'removed', left_at::varchar, verdict) as fate, count(*) as items "
        "from truth join verdicts using (item_id) group by all"
    )
    counts: dict[str, Counter[str]] = {}
    with open_results(study) as db:
        for klass, fate, items in db.sql(query).fetchall():
            counts.setdefault(klass, Counter())[fate] += items
    return counts


def accuracy(study: Study) -> dict[tuple[str, int], Cell]:
    """Return, per true class and step of an assembled study, how well the items were answered."""
    query = "select class, step, answered, right_share, chance from by_class"
    with open_results(study) as db:
        return {
            (klass, step): Cell(answered, right, chance)
            for klass, step, answered, right, chance in db.sql(query).fetchall()
        }


def falls_table(counts: Mapping[str, Counter[str]]) -> Table:
    """Where the items of every class fell."""
    table = columns("class", "answerable from", "items", *map(str, STEP_NUMBERS), "kept", "should fall at")
    for klass, (source, step) in CLASSES.items():
        fates = counts.get(klass, Counter())
        cells = [str(fates[str(number)] or "·") for number in STEP_NUMBERS]
        table.add_row(klass, source, str(fates.total()), *cells, str(fates["kept"] or "·"), step)
    return table


def accuracy_table(cells: Mapping[tuple[str, int], Cell]) -> Table:
    """How well every class was answered in every step, beside chance."""
    table = columns("class", *map(str, STEP_NUMBERS), "chance")
    for klass in CLASSES:
        row = [cells.get((klass, number)) for number in STEP_NUMBERS]
        chance = next((f"{cell.chance:.2f}" for cell in row if cell), "-")
        table.add_row(klass, *(f"{cell.right:.2f}" if cell else "-" for cell in row), chance)
    return table


class _Watch(Bars):
    """Bars, and after each step every item as one sign, class by class, with the truth at the left."""

    def __init__(self, study: Study, classes: Mapping[str, str]) -> None:
        super().__init__()
        self.study = study
        self.classes = classes

    def step_ends(self, summary: StepSummary) -> None:
        """Show where every item stands."""
        super().step_ends(summary)
        state = survey(self.study)
        ids = [str(item_id) for item_id in state.pool.item_id.to_pylist()]
        places = list(zip(ids, state.fold.state.tolist(), state.fold.left_at.tolist(), strict=True))
        fallen = [item for item, code, at in places if code == State.REMOVED and at == summary.step.number]
        signs: dict[str, list[str]] = {}
        for item, code, at in places:
            sign = str(at) if code == State.REMOVED else _MARKS[State(code)]
            signs.setdefault(self.classes.get(item, "?"), []).append(sign)
        if fallen:
            tell(f"  {_example(self.study, summary.step, fallen)}")
        for klass in CLASSES:
            tell(f"  {klass:12} {''.join(sorted(signs.get(klass, []), key='123456!w· '.index))}")


def _example(study: Study, step: Step, fallen: Sequence[str]) -> str:
    """Return one item that fell in a step: what was asked and how sure the model was."""
    item = study.items([min(fallen)])[0]
    wanted = f"item_id = '{item.item_id}' and status = 'ok' and step_key = '{step_key(study.config, step)}'"
    row = study.answers(step.number, wanted).table.to_pylist()[-1]
    asked = "(options only)" if step.sight is Sight.OPTIONS_ONLY else item.question
    right = f"right in {row['n_right']} of {row['n_perm']} orders" if row["n_perm"] > 1 else "right"
    return f"e.g. {asked} → {item.options[item.gold or 0]}: {right}, margin {row['mean_margin']:.2f} nats"


def walk(folder: Path, per_class: int) -> None:
    """Make the control benchmark and a study in `folder` and run the whole house on it; runs on where it stopped.

    Raises:
        UsageError: the folder holds a study that is not a demo.
        StudyError: the folder cannot be written.
    """
    controls = folder / "controls"
    study = _open(folder, controls, per_class)
    _says(f"benchcheck pool build {folder}")
    tell(pool_table(build_pool(study)))
    _says(f"benchcheck frames extract {folder}")
    for line in extract_frames(study).lines():
        tell(line)
    _says(f"benchcheck screen {folder}")
    tell("Each sign is an item: · is alive, a number is the step at which it fell. The truth stands at the left.")
    _screen(study, controls)
    assemble(study)
    tell("\nAt which step the items of each class fell:")
    tell(falls_table(falls(study)))
    _says(f"sed -i 's/^cascade = true/cascade = false/' {folder / CONFIG_NAME}  &&  benchcheck screen {folder}")
    study = _without_cascade(study)
    _screen(study, None)
    _says(f"benchcheck assemble {folder}  &&  benchcheck report {folder}")
    assembled = assemble(study)
    tell("\nShare of right answers per step, when every step reads every item:")
    tell(accuracy_table(accuracy(study)))
    tell(f"\n{states_line(assembled.states)}")
    tell("Steps 3 and 6 measure saturation, not a shortcut: a model that watches all frames answers it.")
    tell(f"The report: {write_report(study)}")


def _open(folder: Path, controls: Path, per_class: int) -> Study:
    """Open the demo study, or make it."""
    if (folder / CONFIG_NAME).exists():
        study = Study.open(folder)
        if [source.bench for source in study.config.pool] != [BENCH]:
            raise UsageError(f"{folder}: this study is not a demo. Cure: choose another folder")
        note(f"{folder} is there already; what is done is not done again (remove the folder for a fresh demo)")
        return study
    others = [path.name for path in folder.iterdir() if path != controls] if folder.is_dir() else []
    if others:
        raise UsageError(f"{folder}: this folder is not empty ({others[0]}). Cure: name one that is not there yet")
    _says(f"benchcheck controls make {controls} --per-class {per_class}")
    made = make_controls(controls, n_per_class=per_class, seed=1)
    tell(f"{len(made.controls)} items of {len(CLASSES)} classes on {len(made.videos)} videos, rendered now")
    _says(f"benchcheck init {folder} --embedded --file {made.items} --bench {BENCH} --videos {controls}")
    source = {"spec": "generic", "files": ["controls/items.jsonl"], "bench": BENCH, "truth": "controls/truth.jsonl"}
    return Study.create(folder, name="demo", pool=[source], videos="controls", models=pinned(EMBEDDED))


def _screen(study: Study, controls: Path | None) -> None:
    """Run all steps; with `controls`, show every item beside its truth."""
    bars = Bars()
    if controls is not None:
        truth = read_truth(controls / "truth.jsonl")
        bars = _Watch(study, {item.item_id: truth[item.source_id] for item in study.items()})
    executor = Local(study, Asked("transformers"))
    try:
        screen(study, executor, bars)
    finally:
        bars.close()
        executor.close()


def _without_cascade(study: Study) -> Study:
    """Let every step read every item: the config says so, and what was answered stands."""
    path = study.root / CONFIG_NAME
    text = path.read_text(encoding="utf-8")
    with publish(path) as temporary:
        temporary.write_text(text.replace("cascade = true ", "cascade = false"), encoding="utf-8")
    return Study.open(study.root)


def _says(command: str) -> None:
    """Print the command that a reader would type."""
    note(f"\n$ {command}")
