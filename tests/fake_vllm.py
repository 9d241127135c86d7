"""A program that takes the words of `vllm serve` and answers as vLLM would; readings depend on the text alone.

`FAKE_VLLM` in the environment says what it plays: words such as `delay=0.5`, `engine` (a child process, as vLLM has
one), `die=oom`, `die-after=40` (requests), `deaf` (to SIGTERM), `mute` (never answers), `slow=0.01` (seconds a
prompt). Its processes' ids are appended to the file `FAKE_VLLM_PIDS`, what it was asked, as sha256 of the text, to
`FAKE_VLLM_ASKED`. It imports the standard library only.
"""

import hashlib
import itertools
import json
import math
import os
import random
import signal
import subprocess
import sys
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, ClassVar

LAST_WORDS = {
    "oom": "(EngineCore pid=7) ERROR 11-30 12:00:00 [core.py:1] torch.OutOfMemoryError: CUDA out of memory. Tried to "
    "allocate 20.00 GiB.\n(APIServer pid=6) RuntimeError: Engine core initialization failed. See root cause above.",
    "taken": "ValueError: Free memory on device cuda:0 (3.1/79.2 GiB) on startup is less than desired GPU memory "
    "utilization (0.85, 67.3 GiB).",
    "cache": "ValueError: No available memory for the cache blocks. Try increasing `gpu_memory_utilization`.",
    "port": "OSError: [Errno 98] error while attempting to bind on address ('127.0.0.1', 8001): address already in use",
    "model": "OSError: nobody/nothing is not a local folder and is not a valid model identifier listed on the hub",
    "flag": "vllm: error: unrecognized arguments: --max-num-batched-tokens",
    "bug": "Traceback (most recent call last):\n  File \"x.py\", line 1, in f\nKeyError: 'vision_config'",
    "silent": "",
}


def letters(text: str) -> list[dict[str, Any]]:
    """Log-probabilities of all 26 letters: one stands out, which one the text decides."""
    rng = random.Random(hashlib.sha256(text.encode()).digest())
    shown = max(2, sum(line[1:3] == ". " for line in text.splitlines()))
    scores = [rng.gauss(0, 0.2) if index < shown else -9.0 for index in range(26)]
    scores[rng.randrange(shown)] += 4
    total = math.log(sum(map(math.exp, scores)))
    return [{"token": f" {chr(65 + index)}", "logprob": score - total} for index, score in enumerate(scores)]


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    name = ""
    play: ClassVar[dict[str, str]] = {}
    asked = 0

    def log_message(self, *_: Any) -> None:
        pass

    def reply(self, what: Any) -> None:
        body = json.dumps(what).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_GET(self) -> None:
        if self.path == "/v1/models":
            self.reply({"data": [{"id": self.name, "owned_by": "vllm"}]})
        elif self.path == "/version":
            self.reply({"version": "0.0.fake"})
        elif self.path == "/health":
            self.reply({})
        else:
            self.send_error(404)

    def do_POST(self) -> None:
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if self.path != "/v1/chat/completions":
            self.send_error(404)
            return
        Handler.asked += 1
        if Handler.asked > float(self.play.get("die-after", math.inf)):
            print("CUDA error: an illegal memory access was encountered", flush=True)
            os._exit(3)
        time.sleep(float(self.play.get("slow", 0)))
        content = asked["messages"][0]["content"]
        text = content if isinstance(content, str) else content[-1]["text"]
        note("FAKE_VLLM_ASKED", hashlib.sha256(text.encode()).hexdigest())
        top = letters(text)
        entry = {**max(top, key=lambda letter: letter["logprob"]), "top_logprobs": top}
        self.reply({"choices": [{"index": 0, "logprobs": {"content": [entry]}}], "usage": {}})


class Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128

    def handle_error(self, *_: Any) -> None:
        pass


def note(variable: str, line: str) -> None:
    """Append a line to the file that an environment variable names: what the test reads later."""
    if path := os.environ.get(variable):
        with open(path, "ab", buffering=0) as file:
            file.write(f"{line}\n".encode())


def main(words: list[str]) -> None:
    play = dict((*word.split("=", 1), "")[:2] for word in os.environ.get("FAKE_VLLM", "").split())
    assert words[0] == "serve", words
    options = dict(itertools.pairwise(words[2:]))
    port, name = int(options["--port"]), options["--served-model-name"]
    note("FAKE_VLLM_PIDS", str(os.getpid()))
    print(f"INFO fake vLLM: {name} on GPU {os.environ.get('CUDA_VISIBLE_DEVICES', 'none')}", flush=True)
    if "deaf" in play:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    if "engine" in play:
        engine = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)  # fake_vllm"])
        note("FAKE_VLLM_PIDS", str(engine.pid))
    print("INFO loading weights", flush=True)
    time.sleep(float(play.get("delay", 0)))
    if "die" in play:
        print(LAST_WORDS[play["die"]], file=sys.stderr, flush=True)
        sys.exit(1)
    if "mute" in play:
        time.sleep(600)
    Handler.name, Handler.play = name, play
    Server((options["--host"], port), Handler).serve_forever()


if __name__ == "__main__":
    main(sys.argv[1:])
