"""The command line: it translates, calls and prints. What it does to a study, functions do too (docs/python.md).

Wrong use ends with exit code 2, a failed run with 1, Ctrl-C with 130; each in one line. A bug keeps its traceback.
"""

import errno
import io
import logging
import os
import signal
import sys
import threading
from typing import Annotated, NoReturn

import typer
from typer.exceptions import TyperException

from benchcheck import __version__
from benchcheck.cli import (
    adding,
    benchmarks,
    checking,
    frames,
    importing,
    places,
    planning,
    pools,
    remote,
    running,
    shards,
    studies,
    transfer,
    videos,
)
from benchcheck.cli.options import app
from benchcheck.errors import BenchcheckError
from benchcheck.settings import without_password

__all__ = [
    "adding",
    "app",
    "benchmarks",
    "checking",
    "frames",
    "importing",
    "main",
    "places",
    "planning",
    "pools",
    "remote",
    "running",
    "shards",
    "studies",
    "transfer",
    "videos",
]


def main() -> None:
    """Run the command line; expected failures become one line on standard error and an exit code."""
    _prepare()
    try:
        code = app(sys.argv[1:] or ["--help"], prog_name="benchcheck", standalone_mode=False)
        if sys.stdout is not None:
            sys.stdout.flush()
    except BenchcheckError as reason:
        _fail(str(reason), reason.exit_code)
    except TyperException as reason:
        what = reason.format_message().rstrip(".")
        if not what:  # a group of commands without one of them: its help was printed
            sys.exit(2)
        context = getattr(reason, "ctx", None)
        command = context.command_path if context else "benchcheck"
        _fail(f"{what}{'' if what.endswith('?') else '.'} See {command} --help", 2)
    except KeyboardInterrupt:
        code = 130
    except (OSError, RuntimeError) as reason:
        code = _ending(reason)
    if code == 130:
        _fail("stopped. What was written stays; the same command continues.", code)
    sys.exit(code)


def _prepare() -> None:
    """Set how this process is ended, and how it prints."""
    sys.unraisablehook = _unraisable
    logging.getLogger("benchcheck").handlers = [_Notes()]
    # A scheduler that takes the machine back sends SIGTERM: what was read is written, as after Ctrl-C.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    if isinstance(sys.stdout, io.TextIOWrapper):  # a sign that a terminal's encoding lacks is shown by its number
        sys.stdout.reconfigure(errors="backslashreplace")


class _Notes(logging.Handler):
    """What an engine wants to be known: a line on standard error, wherever that goes while a bar is drawn."""

    def emit(self, record: logging.LogRecord) -> None:
        """Print one line."""
        print(f"benchcheck: note: {record.getMessage()}", file=sys.stderr)


def _ending(reason: OSError | RuntimeError) -> int:
    """Say how what reaches the end of a command ends it: Ctrl-C inside DuckDB, or nowhere to print; a bug stays one."""
    if str(reason) == "Query interrupted":
        return 130
    if isinstance(reason, OSError) and reason.errno in (errno.ENOSPC, errno.EDQUOT, errno.EPIPE):
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # what is still to be printed would fail again when Python ends
        if reason.errno == errno.EPIPE:
            return 1
        where = reason.filename or "standard output"
        _fail(f"{where}: {reason.strerror}. Cure: free space and run the same command again; what was written stays", 1)
    raise reason


def _unraisable(reason: "sys.UnraisableHookArgs") -> None:
    """Ctrl-C that fell into a place where Python ignores it, such as a destructor, is pressed again."""
    if issubclass(reason.exc_type, KeyboardInterrupt):
        threading.Timer(0.05, os.kill, (os.getpid(), signal.SIGINT)).start()
    else:
        sys.__unraisablehook__(reason)


def _fail(message: str, code: int) -> NoReturn:
    """Print one line to standard error and end."""
    print(f"benchcheck: {without_password(' '.join(message.split()))}", file=sys.stderr)
    sys.exit(code)


def _version(wanted: bool) -> None:
    if wanted:
        print(__version__)
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    pass
