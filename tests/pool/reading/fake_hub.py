"""A hub on this machine: the few answers that huggingface_hub needs to fetch files of datasets at a commit."""

import hashlib
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import unquote, urlsplit

COMMIT = "c0ffee" * 6 + "c0ff"
OTHER = "0" * 40


@dataclass
class FakeHub:
    """Datasets by name, each with its files at `COMMIT`, and what was asked."""

    datasets: dict[str, dict[str, bytes]] = field(default_factory=dict)
    gated: set[str] = field(default_factory=set)
    asked: list[str] = field(default_factory=list)
    url: str = ""


@contextmanager
def serving(hub: FakeHub) -> Iterator[FakeHub]:
    """Serve a hub until the end of the block."""

    class Desk(BaseHTTPRequestHandler):
        def do_HEAD(self) -> None:
            self.answer(body=False)

        def do_GET(self) -> None:
            self.answer(body=True)

        def log_message(self, *_: object) -> None:
            pass

        def answer(self, *, body: bool) -> None:
            path = unquote(urlsplit(self.path).path)
            hub.asked.append(f"{self.command} {path}")
            status, headers, content = reply(hub, path)
            self.send_response(status)
            for name, value in {**headers, "Content-Length": str(len(content))}.items():
                self.send_header(name, value)
            self.end_headers()
            if body:
                self.wfile.write(content)

    server = ThreadingHTTPServer(("127.0.0.1", 0), Desk)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    hub.url = f"http://127.0.0.1:{server.server_port}"
    try:
        yield hub
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def reply(hub: FakeHub, path: str) -> tuple[int, dict[str, str], bytes]:
    """Status, headers and body for a path."""
    parts = path.strip("/").split("/")
    api = parts[0] == "api"
    name = "/".join(parts[2:4] if api else parts[1:3])
    rest = parts[4:] if api else parts[3:]
    files = hub.datasets.get(name)
    if files is None:
        return error(404, "RepoNotFound", "Repository not found")
    if name in hub.gated and not (api and not rest):
        return error(403, "GatedRepo", "Access to this dataset is restricted")
    revision = rest[1] if len(rest) > 1 else COMMIT
    if revision not in (COMMIT, "main"):
        return error(404, "RevisionNotFound", "Invalid rev id")
    if not api:
        return content(files, "/".join(rest[2:]))
    tree = [
        {"type": "file", "path": file, "size": len(data), "oid": hashlib.sha1(data).hexdigest()}
        for file, data in sorted(files.items())
    ]
    about = {"id": name, "sha": COMMIT, "siblings": [{"rfilename": file} for file in sorted(files)]}
    found = tree if rest and rest[0] == "tree" else about
    return 200, {"Content-Type": "application/json"}, json.dumps(found).encode()


def error(status: int, code: str, message: str) -> tuple[int, dict[str, str], bytes]:
    return status, {"X-Error-Code": code, "X-Error-Message": message}, b"{}"


def content(files: dict[str, bytes], name: str) -> tuple[int, dict[str, str], bytes]:
    if name not in files:
        return error(404, "EntryNotFound", "Entry not found")
    etag = hashlib.sha1(files[name]).hexdigest()
    return 200, {"ETag": f'"{etag}"', "X-Repo-Commit": COMMIT}, files[name]
