"""Starting servers, waiting for them, saying why one died, and leaving none behind."""

import os
import signal
import socket
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from benchcheck.backends import ModelSpec, launch
from benchcheck.backends.launch import Servers, plan_servers, served_model, vllm_words
from benchcheck.errors import BackendError, ModelRefusedError, UsageError
from benchcheck.settings import EngineSettings
from served import FAKE, alive, all_gone, free_port, kill_left, read_pids

Play = Callable[..., Servers]


@pytest.fixture
def pids(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[], list[int]]]:
    """The processes of the fake servers that were started; none may be left when the test ends."""
    path = tmp_path / "pids"
    monkeypatch.setenv("FAKE_VLLM_PIDS", str(path))
    yield lambda: read_pids(path)
    assert not kill_left(path)


@pytest.fixture
def play(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, pids: Any) -> Iterator[Play]:
    """Makes the servers of a folder's model, played by a fake vLLM; they are closed when the test ends."""
    model = tmp_path / "model"
    model.mkdir()
    made: list[Servers] = []

    def make(script: str, gpus: str = "", patience: float = 60, say: Any = lambda _: None) -> Servers:
        monkeypatch.setenv("FAKE_VLLM", script)
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", gpus)
        settings = EngineSettings(first_port=free_port(4), vllm=FAKE)
        planned = plan_servers(ModelSpec(str(model), settings=settings))
        logs = [tmp_path / "logs" / f"vllm_s1_gpu{server.number}.log" for server in planned]
        made.append(Servers(planned, logs, patience, say))
        return made[-1]

    yield make
    for servers in made:
        servers.close()


def test_one_server_a_gpu_starts_answers_and_goes(play: Play, pids: Any, tmp_path: Path) -> None:
    said: list[str] = []
    with play("engine delay=0.5", gpus="0,3", say=said.append) as servers:
        assert len(servers.servers) == 2
        running = pids()
        assert len(running) == 4
        assert all(map(alive, running))
        servers.watch()
        assert servers.take_down_the_sick() == []
        servers.start()  # nothing is missing
        assert pids() == running
    assert all_gone(running)
    assert any("waiting for the server on GPU 0 (" in line and line.endswith("INFO loading weights") for line in said)
    logs = [(tmp_path / "logs" / f"vllm_s1_gpu{number}.log").read_text() for number in (0, 1)]
    assert [f"on GPU {gpu}\n" in log for gpu, log in zip("03", logs, strict=True)] == [True, True]
    assert logs[0].startswith("# 20")
    assert " serve " in logs[0].splitlines()[0]


@pytest.mark.parametrize(
    ("word", "told"),
    [
        (
            "oom",
            r"exit code 1: out of memory\. Cure: lower --gpu-memory .*engine\.max_sequences\) .*CUDA out of memory",
        ),
        ("taken", "another process holds memory of this GPU"),
        ("cache", "raise --gpu-memory"),
        ("port", r"port \d+ is in use\. Cure: another first port \(--port, engine\.first_port\)"),
        ("model", "model cannot be fetched"),
        ("flag", "takes other arguments"),
        ("bug", "exit code 1: KeyError: 'vision_config'"),
        ("silent", "exit code 1: INFO loading weights|exit code 1: loading weights"),
    ],
)
def test_a_server_that_dies_is_told_at_once_and_takes_the_others_down(
    play: Play, pids: Any, tmp_path: Path, word: str, told: str
) -> None:
    servers = play(f"engine die={word}", gpus="0,1")
    with pytest.raises(
        BackendError, match=rf"^the server on GPU [01] ended, .*{told}.*vllm_s1_gpu[01]\.log\)$"
    ) as raised:
        servers.start()
    assert "\n" not in str(raised.value)
    assert all_gone(pids())


def test_only_what_a_server_said_since_it_was_started_counts(play: Play, tmp_path: Path) -> None:
    (tmp_path / "logs").mkdir()
    (tmp_path / "logs" / "vllm_s1_gpu0.log").write_text("torch.OutOfMemoryError: CUDA out of memory\n")
    with pytest.raises(BackendError, match="KeyError"):
        play("die=bug").start()


def test_a_port_that_is_in_use_is_found_before_anything_starts(
    play: Play, pids: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(launch, "_PORT_WAIT_S", 0.0)
    servers = play("", gpus="0,1")
    port = servers.servers[1].port
    with socket.socket() as other:
        other.bind(("127.0.0.1", port))
        other.listen()
        with pytest.raises(UsageError, match=rf"^port {port} is in use\. Cure: another first port \(--port, engine"):
            servers.start()
    assert pids() == []


def test_a_port_that_a_killed_run_still_holds_is_waited_for(play: Play) -> None:
    said: list[str] = []
    servers = play("", say=lambda text: (said.append(text), other.close()))
    with socket.socket() as other:
        other.bind(("127.0.0.1", servers.servers[0].port))
        other.listen()
        servers.start()
    assert said[0].endswith("is in use; waiting for it")


def test_a_port_that_takes_more_rights(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: Any) -> None:
        raise PermissionError

    monkeypatch.setattr(socket.socket, "bind", refuse)
    assert launch._port_taken("127.0.0.1", 80) == "needs more rights than this process has"


@pytest.mark.parametrize("host", ["a b", "192.0.2.1", "no.such.host.invalid", "x" * 80])
def test_a_host_that_is_not_this_machine_is_not_a_port_in_use(host: str) -> None:
    assert launch._port_taken(host, 8001) == f"cannot be opened at {host}, which is no address of this machine"


def test_a_vllm_command_with_an_open_quote() -> None:
    with pytest.raises(UsageError, match=r"^vllm = \"'a\" is no command \(No closing quotation\)"):
        launch.vllm_words(EngineSettings(vllm="'a"))


def test_a_server_that_never_answers_and_says_nothing_more_has_hung(play: Play, pids: Any) -> None:
    with pytest.raises(
        BackendError, match=r"has not answered for \d+ s and its log stands still: INFO loading weights"
    ):
        play("mute engine", patience=0.5).start()
    assert all_gone(pids())


def test_a_server_that_ignores_sigterm_goes_too(play: Play, pids: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    with play("deaf engine"):
        running = pids()
    assert all_gone(running)


def test_a_server_that_died_is_ended_with_its_engine_and_started_again(play: Play, pids: Any) -> None:
    with play("engine", gpus="0,1") as servers:
        main, engine = pids()[:2]
        os.kill(main, signal.SIGKILL)
        assert all_gone([main, engine]), "what a server leaves behind goes with it"
        servers._running[0].keeper.wait()
        with pytest.raises(BackendError, match="killed by signal 9"):
            servers.watch()
        (reason,) = servers.take_down_the_sick()
        assert "ended, killed by signal 9: " in reason
        servers.start()
        assert len(pids()) == 6
        assert servers.take_down_the_sick() == []


def test_a_server_that_answers_no_more_is_sick(play: Play, pids: Any) -> None:
    with play("") as servers:
        (main,) = pids()
        os.kill(main, signal.SIGSTOP)
        launch_timeout = launch._TIMEOUT_S
        try:
            launch._TIMEOUT_S = 0.5
            (reason,) = servers.take_down_the_sick()
        finally:
            launch._TIMEOUT_S = launch_timeout
        assert "answers no more" in reason
        assert all_gone([main])


def test_a_killed_keeper_leaves_nothing(play: Play, pids: Any) -> None:
    with play("engine") as servers:
        running = pids()
        servers._running[0].keeper.kill()
        servers._running[0].keeper.wait()
        (reason,) = servers.take_down_the_sick()
        assert "ended, killed" in reason
        assert all_gone(running)


def test_a_port_that_serves_something_else_is_refused(play: Play, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(launch, "_names", lambda _: ["other"])
    with pytest.raises(BackendError, match=r"^port \d+ serves other, not .*model$"):
        play("").start()


@pytest.mark.parametrize("body", [b"<html>", b"[]", b'{"data": 3}', b'{"data": [{}]}'])
def test_a_list_of_models_that_is_none(play: Play, monkeypatch: pytest.MonkeyPatch, body: bytes) -> None:
    monkeypatch.setattr(launch, "_get", lambda *_: (200, body))
    assert launch._names(play("").servers[0]) == []


def test_a_log_that_cannot_be_written_is_one_line(play: Play, tmp_path: Path) -> None:
    (tmp_path / "logs").write_text("a file")
    with pytest.raises(BackendError, match=r"vllm_s1_gpu0\.log: the server's log cannot be written"):
        play("").start()


# A driver that goes.

DRIVER = """
import os, sys, time
from pathlib import Path
from benchcheck.backends import ModelSpec
from benchcheck.backends.launch import Servers, plan_servers
from benchcheck.settings import EngineSettings
model, port, vllm, log = sys.argv[1:]
planned = plan_servers(ModelSpec(model, settings=EngineSettings(first_port=int(port), vllm=vllm)))
with Servers(planned, [Path(log)] * len(planned), 60):
    print("up", flush=True)
    time.sleep(600)
"""


@contextmanager
def driver(tmp_path: Path, script: str) -> Iterator["subprocess.Popen[str]"]:
    model = tmp_path / "model"
    model.mkdir()
    environment = os.environ | {"FAKE_VLLM": script, "CUDA_VISIBLE_DEVICES": ""}
    command = [sys.executable, "-c", textwrap.dedent(DRIVER), str(model), str(free_port()), FAKE, str(tmp_path / "log")]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment, start_new_session=True)
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


@pytest.mark.parametrize("sent", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_however_a_driver_ends_its_servers_go(tmp_path: Path, pids: Any, sent: signal.Signals) -> None:
    with driver(tmp_path, "engine") as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "up\n"
        running = pids()
        assert len(running) == 2
        process.send_signal(sent)
        assert all_gone(running)


def test_a_driver_that_is_killed_while_it_waits(tmp_path: Path, pids: Any) -> None:
    with driver(tmp_path, "engine mute") as process:
        end = time.monotonic() + 60
        while len(pids()) < 2 and time.monotonic() < end:
            time.sleep(0.02)
        process.kill()
        assert all_gone(pids())


# What is served, and by which vLLM.


def test_the_model_that_is_served(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text('{"text_config": {"max_position_embeddings": 4096}}')
    spec = ModelSpec(str(tmp_path), images=3, settings=EngineSettings(served_name="x"))
    found = served_model(spec)
    assert (found.path, found.revision, found.name, found.longest) == (str(tmp_path), "", "x", 4096)
    assert (found.exact, found.images, found.image_side) == (True, 3, 448)
    hub = served_model(ModelSpec("owner/name", revision="abc", preset="benchcheck-2026"))
    assert (hub.path, hub.revision, hub.name, hub.longest, hub.exact) == ("owner/name", "abc", "owner/name", 0, False)


@pytest.mark.parametrize("text", ["", "[]", '{"text_config": 3}', '{"max_position_embeddings": "many"}', "{}"])
def test_a_config_that_does_not_say_how_long_prompts_may_be(tmp_path: Path, text: str) -> None:
    (tmp_path / "config.json").write_text(text)
    assert served_model(ModelSpec(str(tmp_path))).longest == 0


def test_models_that_are_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no such model folder"):
        served_model(ModelSpec("/nowhere"))
    with pytest.raises(UsageError, match="a hub id needs a revision"):
        served_model(ModelSpec("owner/name"))
    (tmp_path / "config.json").write_text("{}")
    with pytest.raises(ModelRefusedError, match=r"the files are sha256:\w+, the revision asked for is sha256:0"):
        served_model(ModelSpec(str(tmp_path), revision="sha256:0"))


def test_settings_that_this_machine_cannot_follow(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "0,1")
    settings = EngineSettings(first_port=65_535, vllm=FAKE)
    with pytest.raises(UsageError, match=r"^engine: first_port = 65535 leaves no port"):
        plan_servers(ModelSpec(str(tmp_path), settings=settings))


def test_which_vllm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert vllm_words(EngineSettings(vllm=f"{sys.executable} 'a b'")) == (sys.executable, "a b")
    module = ("-m", "vllm.entrypoints.cli.main")
    assert vllm_words(EngineSettings(python=sys.executable)) == (sys.executable, *module)
    for settings in (EngineSettings(vllm="/nowhere/vllm"), EngineSettings(python="/nowhere/python"),
                     EngineSettings(vllm=" ")):  # fmt: skip
        with pytest.raises(UsageError, match=r"(vllm|python) = '.*': no such command"):
            vllm_words(settings)
    beside = tmp_path / "bin" / "vllm"
    beside.parent.mkdir()
    monkeypatch.setattr(sys, "executable", str(beside.with_name("python")))
    monkeypatch.setenv("PATH", str(tmp_path / "path"))
    monkeypatch.setattr(launch.importlib.util, "find_spec", lambda _: None)
    with pytest.raises(UsageError, match=r"vLLM is not installed here\. Cure: pip install .*--vllm COMMAND"):
        vllm_words(EngineSettings())
    monkeypatch.setattr(launch.importlib.util, "find_spec", lambda _: True)
    assert vllm_words(EngineSettings()) == (sys.executable, *module)
    on_path = tmp_path / "path" / "vllm"
    for path in (on_path, beside):
        path.parent.mkdir(exist_ok=True)
        path.write_text("#!/bin/sh\n")
        path.chmod(0o755)
        assert vllm_words(EngineSettings()) == (str(path),)


def test_a_command_that_cannot_be_run_is_told(play: Play, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    script = tmp_path / "vllm"
    script.write_text("#!/nowhere/python\n")
    script.chmod(0o755)
    planned = plan_servers(ModelSpec(str(tmp_path), settings=EngineSettings(vllm=str(script), first_port=free_port())))
    servers = Servers(planned, [tmp_path / "log"], 60)
    with pytest.raises(BackendError, match=r"exit code 127: vLLM was not found\. Cure: pip install"):
        servers.start()
