"""Starts vLLM servers, waits until they answer, says why one died, and takes them down whatever happens.

Each server runs under a keeper process (keeper.py) in a session of its own: a terminal's Ctrl-C reaches the driver
alone, and a driver that is killed takes its servers with it.
"""

import contextlib
import errno
import http.client
import importlib.util
import json
import os
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from benchcheck.backends import ModelSpec, keeper
from benchcheck.backends.checkpoint import local_revision, resolve
from benchcheck.backends.gpus import visible_gpus
from benchcheck.backends.serving import HOST, ServedModel, Server, servers_of, why_ended
from benchcheck.errors import BackendError, UsageError
from benchcheck.settings import EngineSettings

__all__ = ["Servers", "plan_servers", "served_model", "vllm_words"]

_LOOK_S = 0.2
_PORT_WAIT_S = 10.0
"""A port of a run that was killed just now is free again within a few seconds."""
_TAIL_BYTES = 65_536
_IN_USE = "is in use"
_TIMEOUT_S = 10.0
"""A server that does not say within this that all is well answers no more; reading prompts does not keep it from it."""

Say = Callable[[str], None]
"""Hears what the launcher waits for, several times a second, one line each."""


def vllm_words(settings: EngineSettings) -> tuple[str, ...]:
    """Return the words that start vLLM: `engine.vllm`, else `engine.python`, else what is installed here.

    Raises:
        UsageError: there is none; with what was tried and the cure.
    """
    if settings.vllm:
        try:
            words = tuple(shlex.split(settings.vllm))
        except ValueError as reason:
            raise UsageError(f"vllm = {settings.vllm!r} is no command ({reason}). Allowed: words of a shell") from None
        return _found(words, words[0] if words else "", f"vllm = {settings.vllm!r}")
    module = ("-m", "vllm.entrypoints.cli.main")
    if settings.python:
        return _found((settings.python, *module), settings.python, f"python = {settings.python!r}")
    beside = Path(sys.executable).with_name("vllm")
    command = str(beside) if os.access(beside, os.X_OK) else shutil.which("vllm")
    if command:
        return (command,)
    if importlib.util.find_spec("vllm"):
        return (sys.executable, *module)
    raise UsageError(
        "vLLM is not installed here. Cure: pip install 'benchcheck[vllm]', or name it with --vllm COMMAND "
        "(engine.vllm) or --python INTERPRETER (engine.python)"
    )


def _found(words: tuple[str, ...], program: str, setting: str) -> tuple[str, ...]:
    """Refuse a command that there is not."""
    if not program or shutil.which(program) is None:
        raise UsageError(f"{setting}: no such command. Allowed: a program of this machine, with its path or on PATH")
    return words


def served_model(spec: ModelSpec) -> ServedModel:
    """Return what a server of this checkpoint serves.

    Raises:
        UsageError: no such model, or a hub id without a revision.
        ModelRefusedError: a folder's files are of another revision.
    """
    place, revision = resolve(spec.model), spec.revision
    longest = 0
    if isinstance(place, Path):
        if revision:
            _local_revision(place, revision)
        revision, longest = "", _positions(place)
    elif not revision:
        raise UsageError(
            f"{spec.model}: no folder of that name here, and a hub id needs a revision, since a branch moves. "
            "Allowed: a commit of the hub repository. Cure: set `revision` in the config"
        )
    name = spec.settings.served_name or spec.model
    exact = spec.preset == "exact"
    return ServedModel(str(place), revision, name, longest, exact, spec.images, spec.image_side, spec.cache)


_local_revision = cache(local_revision)
"""A folder's files are read once a run, not once a step."""


def _positions(folder: Path) -> int:
    """The number of tokens that a checkpoint's config allows; 0 where it does not say."""
    try:
        config = json.loads((folder / "config.json").read_bytes())
        return int(config.get("text_config", config).get("max_position_embeddings", 0))
    except (OSError, ValueError, AttributeError, TypeError):
        return 0


def plan_servers(spec: ModelSpec, host: str = HOST, devices: Path = Path("/dev")) -> list[Server]:
    """Return the servers that this machine would run for a checkpoint: one a GPU, or one on the CPU.

    Raises:
        UsageError: no such model, no vLLM, or settings that this machine cannot follow.
    """
    settings, gpus = spec.settings, visible_gpus(os.environ, devices)
    try:
        return servers_of(served_model(spec), settings, gpus, vllm_words(settings), host)
    except ValueError as reason:
        raise UsageError(f"engine: {reason}") from None


@dataclass(slots=True)
class _Running:
    """A server that was started."""

    keeper: "subprocess.Popen[bytes]"
    group: int
    """Number of its process group; 0 where it could not be started."""
    log: Path
    start: int
    """Where its own words begin in the log."""
    told: bytes | None = None
    """What its keeper said last, once it is gone."""

    def words(self) -> str:
        """What it wrote since it was started, or the last part of that."""
        with self.log.open("rb") as file:
            size = file.seek(0, os.SEEK_END)
            file.seek(max(self.start, size - _TAIL_BYTES))
            return file.read().decode("utf-8", "replace")

    def last_line(self) -> str:
        """The last line that it wrote."""
        lines = [line.strip() for line in self.words().splitlines() if line.strip()]
        return lines[-1][:200] if lines else "nothing written yet"

    def exit_code(self) -> int | None:
        """The exit code of a server that ended; None where its keeper was killed first."""
        if self.told is None and self.keeper.stdout is not None:
            self.told = self.keeper.stdout.read()
        return int(self.told) if self.told and self.told.strip() else None

    def end(self) -> None:
        """Close the pipe that it lives by; `wait` sees that it goes."""
        if self.keeper.stdin is not None:
            with contextlib.suppress(OSError):
                self.keeper.stdin.close()

    def wait(self) -> None:
        """Return when all its processes are gone."""
        try:
            self.keeper.wait(keeper.GRACE_S + 5)
        except subprocess.TimeoutExpired:
            self.keeper.kill()
            self.keeper.wait()
        if self.group:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self.group, signal.SIGKILL)
        if self.keeper.stdout is not None:
            self.keeper.stdout.close()


class Servers:
    """The servers of one checkpoint on this machine. Use as a context, or call `close`: nothing stays behind."""

    def __init__(
        self, servers: Sequence[Server], logs: Sequence[Path], patience_s: float, say: Say = lambda _: None
    ) -> None:
        """Start none yet.

        Args:
            servers: what to start.
            logs: the file that each writes to; it is appended.
            patience_s: seconds after which a server that neither answers nor writes to its log has hung.
            say: hears what is waited for.
        """
        self.servers = tuple(servers)
        self._logs, self._patience, self._say = tuple(logs), patience_s, say
        self._running: dict[int, _Running] = {}

    def __enter__(self) -> "Servers":
        """Start them."""
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        """End them."""
        self.close()

    def start(self) -> None:
        """Start every server that does not run, and return when all answer.

        Raises:
            UsageError: a port is in use.
            BackendError: one died or hangs; the message says why. All are taken down.
        """
        missing = [server for server in self.servers if server.number not in self._running]
        try:
            for server in missing:
                self._await_port(server)
            for server in missing:
                self._running[server.number] = _start(server, self._logs[server.number])
            for server in missing:
                self._await_answer(server)
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """End all servers, together."""
        for running in self._running.values():
            running.end()
        while self._running:
            number = next(iter(self._running))
            self._running[number].wait()
            del self._running[number]

    def watch(self) -> None:
        """Return at once while all run.

        Raises:
            BackendError: one has ended; the message says why.
        """
        for server in self.servers:
            self._check(server)

    def take_down_the_sick(self) -> list[str]:
        """End the servers that died or answer no more, and return why, one line each."""
        reasons = []
        for server in self.servers:
            running = self._running.get(server.number)
            if running is None or (running.keeper.poll() is None and _answers(server, "/health")):
                continue
            reasons.append(self._why(server, running))
            running.end()
            running.wait()
            del self._running[server.number]
        return reasons

    def _await_port(self, server: Server) -> None:
        """Wait a little for a port that a killed run may still hold."""
        end = time.monotonic() + _PORT_WAIT_S
        while (reason := _port_taken(server.host, server.port)) == _IN_USE and time.monotonic() < end:
            self._say(f"port {server.port} {reason}; waiting for it")
            time.sleep(_LOOK_S)
        if reason:
            raise UsageError(
                f"port {server.port} {reason}. Cure: another first port (--port, engine.first_port), end what listens "
                "there, or correct --host"
            )

    def _await_answer(self, server: Server) -> None:
        """Return when a server answers with its model; every other server that dies meanwhile is told at once."""
        running = self._running[server.number]
        start = still_since = time.monotonic()
        last = ""
        while not _answers(server, "/health"):
            for other in self.servers:
                self._check(other)
            line, now = running.last_line(), time.monotonic()
            if line != last:
                last, still_since = line, now
            if now - still_since > self._patience:
                raise BackendError(
                    f"the server on {server.place} has not answered for {now - start:.0f} s and its log stands still: "
                    f"{line} ({running.log}). Cure: look there; engine.timeout_s is how long that may last"
                )
            self._say(f"waiting for the server on {server.place} ({now - start:.0f} s): {line}")
            time.sleep(_LOOK_S)
        self._check(server)
        names = _names(server)
        wanted = server.command[server.command.index("--served-model-name") + 1]
        if wanted not in names:
            raise BackendError(f"port {server.port} serves {', '.join(names) or 'no model'}, not {wanted}")

    def _check(self, server: Server) -> None:
        """Raise why a server died."""
        running = self._running.get(server.number)
        if running is not None and running.keeper.poll() is not None:
            raise BackendError(self._why(server, running))

    def _why(self, server: Server, running: _Running) -> str:
        """Why a server ended or answers no more, and where its log is."""
        if running.keeper.poll() is None:
            return f"the server on {server.place} answers no more: {running.last_line()} ({running.log})"
        why = why_ended(running.words(), running.exit_code(), server.port)
        return f"the server on {server.place} ended, {why} ({running.log})"


def _start(server: Server, log: Path) -> _Running:
    """Start a server under a keeper."""
    try:
        log.parent.mkdir(parents=True, exist_ok=True)
        with log.open("ab") as file:
            file.write(f"# {time.strftime('%Y-%m-%dT%H:%M:%S%z')} {shlex.join(server.command)}\n".encode())
            file.flush()
            started = subprocess.Popen(
                [sys.executable, "-I", keeper.__file__, *server.command],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=file,
                env=_environment(os.environ, server.environment),
                start_new_session=True,
            )
            start = file.tell()
    except OSError as reason:
        raise BackendError(f"{log}: the server's log cannot be written ({reason.strerror})") from reason
    group = started.stdout.readline() if started.stdout else b""
    return _Running(started, int(group or 0), log, start)


def _environment(here: Mapping[str, str], own: Mapping[str, str]) -> dict[str, str]:
    """The variables of a server: those of this process; its own GPU wins, its other own ones give way."""
    forced = {key: value for key, value in own.items() if key == "CUDA_VISIBLE_DEVICES"}
    return {"PYTHONUNBUFFERED": "1", **own, **here, **forced}


def _port_taken(host: str, port: int) -> str:
    """Say why nobody can listen on a port; empty where one can."""
    with socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
            probe.listen(1)
        except PermissionError:
            return "needs more rights than this process has"
        except (OSError, UnicodeError) as reason:  # a host that is no name is a UnicodeError
            if isinstance(reason, OSError) and reason.errno == errno.EADDRINUSE:
                return _IN_USE
            return f"cannot be opened at {host}, which is no address of this machine"
    return ""


def _get(server: Server, path: str) -> tuple[int, bytes]:
    """Ask a server for a page; 0 where it does not answer."""
    host, port = server.endpoint.removeprefix("http://").removesuffix("/v1").rsplit(":", 1)
    connection = http.client.HTTPConnection(host.strip("[]"), int(port), timeout=_TIMEOUT_S)
    try:
        connection.request("GET", path)
        reply = connection.getresponse()
        return reply.status, reply.read()
    except (OSError, http.client.HTTPException):
        return 0, b""
    finally:
        connection.close()


def _answers(server: Server, path: str) -> bool:
    """Whether a server says that all is well."""
    return _get(server, path)[0] == 200


def _names(server: Server) -> list[str]:
    """The models that a server serves."""
    try:
        return [str(model["id"]) for model in json.loads(_get(server, "/v1/models")[1])["data"]]
    except (ValueError, LookupError, TypeError):
        return []
