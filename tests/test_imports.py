"""The walls of the house: who imports whom, what stays pure, what stays light, and how large a file may be."""

import ast
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

SOURCE = Path(__file__).resolve().parents[1] / "src" / "benchcheck"

# Each room and the rooms that it may import from, apart from itself. `items` is pool/items.py and `answers` is
# screen/answers.py: an item is a noun of every room, and an answer needs the config, so both stand on their own.
WALLS: dict[str, set[str]] = {
    "errors": set(),
    "settings": set(),
    "inputs": {"settings"},
    "pipes": set(),
    "screen": set(),
    "items": {"screen"},
    "files": {"errors"},
    "config": {"errors", "inputs", "screen", "settings"},
    "answers": {"config", "items", "screen"},
    "places": {"errors", "inputs"},
    "study": {"config", "errors", "files", "items", "places"},
    "pool": {"config", "errors", "files", "items", "pipes", "places", "screen", "study"},
    "video": {"config", "errors", "files", "items", "pipes", "places", "pool", "screen", "study", "tars"},
    "backends": {"errors", "pipes", "screen", "settings"},
    "run": {
        "answers",
        "backends",
        "config",
        "errors",
        "files",
        "items",
        "places",
        "screen",
        "settings",
        "study",
        "video",
    },
    "report": {"answers", "config", "errors", "files", "items", "pool", "run", "screen", "study", "video"},
    "demo": {"errors", "screen"},
    # It asks a stack as a run does, about a made-up world, and about the study's own models.
    "doctor": {"answers", "backends", "config", "demo", "errors", "items", "places", "run", "screen", "study"},
    "tars": {"errors", "files"},
    "transfer": {
        *("config", "errors", "files", "items", "places", "pool", "run"),
        *("screen", "settings", "study", "tars", "video"),
    },
    "console": {"config", "errors", "files", "items", "pool", "report", "run", "screen", "study", "video"},
}
# Rooms inside a room, and which of them each may import from; what lies beside them, "", may be imported by all.
INNER_ROOMS: dict[str, dict[str, set[str]]] = {
    "pool": {
        "": {"reading"},
        "reading": set(),
        "building": {"reading"},
        "checking": set(),
        "adding": {"building", "reading"},
    },
    "video": {
        "": {"sources"},
        "sources": set(),
        "decoding": set(),
        "preparing": {"decoding", "sources"},
        "making": {"decoding", "preparing", "sources"},
        "proving": {"decoding", "making", "preparing", "sources"},
        "shards": set(),
    },
    "transfer": {"": set(), "far": set(), "original": set()},
}
# What drives all the rest, and what only names it.
COMMANDS = {
    "cli",
    "cli.adding",
    "cli.benchmarks",
    "cli.certificate_table",
    "cli.check_table",
    "cli.checking",
    "cli.frames",
    "cli.importing",
    "cli.clusters",
    "cli.options",
    "cli.places",
    "cli.planning",
    "cli.pools",
    "cli.proposals",
    "cli.remote",
    "cli.running",
    "cli.shards",
    "cli.specs_table",
    "cli.studies",
    "cli.videos",
    "cli.transfer",
}
DOORS = COMMANDS | {"demo.walk", "__init__", "__main__"}
PRIVATE_TO_DOORS = COMMANDS | {"demo.walk", "console", "__main__"}
OWN_ROOM = {"pool.items": "items", "screen.answers": "answers"}

INPUT_AND_OUTPUT = {
    *(
        "aiohttp",
        "av",
        "duckdb",
        "fcntl",
        "glob",
        "httpx",
        "mmap",
        "multiprocessing",
        "os",
        "PIL",
        "pathlib",
        "pyarrow",
    ),
    *("shutil", "socket", "subprocess", "sys", "tempfile", "threading", "time", "torch", "transformers", "urllib"),
}
HEAVY = {
    *("aiohttp", "altair", "av", "duckdb", "jinja2", "numpy", "PIL", "pyarrow", "ray", "torch", "transformers"),
    "vl_convert",
}
FORBIDDEN_NAMES = ("util", "helper", "common", "misc", "base", "manager", "handler", "processor", "registry")


def modules() -> dict[str, Path]:
    """Every module by its name below the package."""
    names = {}
    for path in sorted(SOURCE.rglob("*.py")):
        parts = path.relative_to(SOURCE).with_suffix("").parts
        names[".".join(parts[:-1] if parts[-1] == "__init__" and len(parts) > 1 else parts)] = path
    return names


@cache
def tree_of(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


def for_types_only(node: ast.AST) -> bool:
    return isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test)


def imports(path: Path, everywhere: bool = True) -> Iterator[str]:
    """Full names of what a module imports when it runs; `everywhere` is also inside functions."""
    waiting: list[ast.AST] = [node for node in tree_of(path).body if not for_types_only(node)]
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative import"
            yield from (f"{node.module}.{alias.name}" for alias in node.names)
        if everywhere or not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            waiting += [
                child
                for child in ast.iter_child_nodes(node)
                if not isinstance(child, ast.stmt) or not for_types_only(child)
            ]


def inside(path: Path) -> set[str]:
    """Modules of the package that a module imports."""
    known, found = modules(), set()
    for name in imports(path):
        if name.partition(".")[0] == "benchcheck":
            below = name.removeprefix("benchcheck").lstrip(".")
            found.add(below if below in known else below.rpartition(".")[0])
    return found - {""}  # the version, which stands in the package itself


def room(module: str) -> str:
    return OWN_ROOM.get(module, module.partition(".")[0])


@pytest.mark.parametrize("module", sorted(set(modules()) - DOORS))
def test_imports_go_one_way(module: str) -> None:
    here = room(module)
    assert here in WALLS, f"{here} is a new room: say in WALLS what it may import"
    for other in sorted(inside(modules()[module])):
        allowed = WALLS[here] | {here} - (PRIVATE_TO_DOORS - {module})
        assert room(other) in allowed, f"{module} imports {other}, but {here} may import only {sorted(allowed)}"
        assert other not in PRIVATE_TO_DOORS


def inner_room(module: str) -> str:
    """The room inside a room; empty for what lies beside them."""
    outer, _, rest = module.partition(".")
    part = rest.partition(".")[0]
    return part if part in INNER_ROOMS[outer] else ""


@pytest.mark.parametrize("module", sorted(name for name in modules() if name.partition(".")[0] in INNER_ROOMS))
def test_inside_a_room_imports_go_one_way(module: str) -> None:
    outer, here = module.partition(".")[0], inner_room(module)
    others = {inner_room(other) for other in inside(modules()[module]) if other.startswith(f"{outer}.")}
    assert others - {here, ""} <= INNER_ROOMS[outer][here], f"{module} is in {here or 'none'} and imports from {others}"


def test_the_walls_have_no_way_round() -> None:
    done: list[str] = []
    while len(done) < len(WALLS):
        free = [name for name, allowed in WALLS.items() if name not in done and allowed <= set(done)]
        assert free, f"a circle among {sorted(set(WALLS) - set(done))}"
        done += free


def test_no_module_imports_itself_by_a_detour() -> None:
    below = {name: inside(path) for name, path in modules().items()}
    done: set[str] = set()
    while rest := {name for name in below if name not in done}:
        free = {name for name in rest if below[name] - {name} <= done}
        assert free, f"a circle among {sorted(rest)}"
        done |= free


def says_pure(path: Path) -> bool:
    return "Pure." in (ast.get_docstring(tree_of(path)) or "")


NAMED_PURE = {name for name in modules() if name.startswith("screen")} | {"pool.items", "run.pilot"}
PURE = sorted(NAMED_PURE | {name for name, path in modules().items() if says_pure(path)})


@pytest.mark.parametrize("module", PURE)
def test_what_is_pure_touches_nothing(module: str) -> None:
    """Data in, data out: no file, clock, process or network, and no chance but a seeded one."""
    path = modules()[module]
    assert not {name.partition(".")[0] for name in imports(path)} & INPUT_AND_OUTPUT
    calls = [ast.unparse(node.func) for node in ast.walk(tree_of(path)) if isinstance(node, ast.Call)]
    assert not set(calls) & {"open", "print", "input", "exec", "eval", "__import__"}
    assert not [call for call in calls if call.startswith("random.") and call != "random.Random"]


def test_the_screen_is_pure() -> None:
    assert set(PURE) > {"screen.verdicts", "screen.answers", "pool.items", "run.pilot"}


@pytest.mark.parametrize(
    "module", ["__init__", "__main__", *sorted(COMMANDS), "config", "errors", "files", "study", "backends"]
)
def test_the_front_rooms_import_nothing_heavy_at_their_top(module: str) -> None:
    assert not {name.partition(".")[0] for name in imports(modules()[module], everywhere=False)} & HEAVY


WAYS_IN = {
    "import benchcheck": "import benchcheck",
    "config and study": "import benchcheck.config, benchcheck.study, benchcheck.backends",
    "benchcheck --help": "call('--help')",
    "benchcheck screen --help": "call('screen', '--help')",
    "benchcheck --version": "call('--version')",
}
LISTENING = """
import atexit, sys
def call(*arguments):
    sys.argv[1:] = arguments
    from benchcheck.cli import main
    main()
atexit.register(lambda heavy=sys.argv[1]: print("LOADED", *sorted(set(heavy.split()) & set(sys.modules))))
"""


@pytest.mark.parametrize("name", WAYS_IN)
def test_looking_around_loads_nothing_heavy(name: str) -> None:
    command = [sys.executable, "-c", LISTENING + WAYS_IN[name], " ".join(HEAVY)]
    found = subprocess.run(command, capture_output=True, text=True, check=True)
    assert found.stdout.splitlines()[-1] == "LOADED"


def defined(tree: ast.Module) -> set[str]:
    """Names that a module holds at its top, those for type checkers included."""
    names: set[str] = set()
    waiting: list[ast.stmt] = list(tree.body)
    while waiting:
        node = waiting.pop()
        match node:
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
                names.add(name)
            case ast.Import(names=aliases) | ast.ImportFrom(names=aliases):
                names |= {alias.asname or alias.name for alias in aliases}
            case ast.Assign(targets=targets):
                names |= {target.id for target in targets if isinstance(target, ast.Name)}
            case ast.AnnAssign(target=ast.Name(id=name)):
                names.add(name)
            case ast.If(body=body, orelse=orelse):
                waiting += [*body, *orelse]
    return names


def offered(tree: ast.Module) -> list[str] | None:
    for node in tree.body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__":
            return list(ast.literal_eval(node.value))
    return None


@pytest.mark.parametrize("module", sorted(modules()))
def test_every_module_says_what_it_offers(module: str) -> None:
    """`__all__` is in ruff's order (constants, classes, functions), each name once and really there."""
    tree = tree_of(modules()[module])
    names, there = offered(tree), defined(tree)
    own = {name for name in there if not name.startswith("_")}
    if names is None:
        public = [n for n in tree.body if isinstance(n, ast.FunctionDef | ast.ClassDef) and not n.name.startswith("_")]
        assert not public, f"{module} has public names {sorted(own)} and no __all__"
        return
    assert set(names) <= there, f"{module}.__all__ names {sorted(set(names) - there)}, which are not there"

    def kind(name: str) -> int:
        return 0 if name.isupper() else 1 if name[:1].isupper() else 2

    assert names == sorted(set(names), key=lambda name: (kind(name), name))


@pytest.mark.parametrize("module", sorted(modules()))
def test_the_shape_of_a_module(module: str) -> None:
    path = modules()[module]
    assert len(path.read_text(encoding="utf-8").splitlines()) <= 400, f"{module}: split it by noun"
    tree = tree_of(path)
    assert ast.get_docstring(tree), f"{module} says nothing of itself"
    names = [module] + [node.name for node in ast.walk(tree) if isinstance(node, ast.ClassDef)]
    for name in names:
        assert not [word for word in FORBIDDEN_NAMES if word in name.lower().replace("database", "")], name


def test_the_package_offers_eleven_names_that_load_when_used() -> None:
    import benchcheck

    assert sorted(benchcheck.__all__) == benchcheck.__all__
    for name in benchcheck.__all__:
        assert getattr(benchcheck, name).__name__ == name
    assert set(benchcheck.__all__) <= set(dir(benchcheck))
    misspelt = "stduy"
    with pytest.raises(AttributeError, match=r"no attribute 'stduy'\. Public: BenchcheckError, Item"):
        getattr(benchcheck, misspelt)
