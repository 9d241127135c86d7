"""A hub on this machine that can be written to: what huggingface_hub asks when it uploads and downloads without Xet.

Made after the requests that the library sends (its `_commit_api`, `lfs` and `hf_api`); datasets only.
"""

import base64
import hashlib
import json
import re
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, unquote, urlsplit

TOKEN = "hf_" + "S3cretS3cretS3cretS3cretS3cretS3cr"
_PAGE = 3
"""Entries of a page of a tree: small, so that pages are turned."""
_PART = 1 << 16
"""Bytes of a part of a large object."""

Answer = tuple[int, dict[str, str], bytes]


@dataclass(frozen=True)
class Blob:
    content: bytes
    large: bool

    @property
    def sha256(self) -> str:
        return hashlib.sha256(self.content).hexdigest()

    @property
    def git(self) -> str:
        return hashlib.sha1(b"blob %d\0" % len(self.content) + self.content).hexdigest()


@dataclass
class Dataset:
    """A dataset's commits, the newest last: all its files in each."""

    private: bool = True
    gated: bool = False
    ignored: str = ""
    commits: list[dict[str, Blob]] = field(default_factory=lambda: [{".gitattributes": Blob(b"*.tar lfs\n", False)}])

    @property
    def files(self) -> dict[str, bytes]:
        return {name: blob.content for name, blob in self.commits[-1].items() if name != ".gitattributes"}

    def find(self, revision: str) -> dict[str, Blob] | None:
        if revision == "main":
            return self.commits[-1]
        number = int(revision, 16) - 1 if re.fullmatch("[0-9a-f]{40}", revision) else -1
        return self.commits[number] if 0 <= number < len(self.commits) else None

    @property
    def head(self) -> str:
        return f"{len(self.commits):040x}"


@dataclass
class WritableHub:
    """Datasets by name, the store of large objects, and what was asked.

    `faults` are tried first: a pattern for `METHOD /path`, a status, and how many times (-1: always). `body` replaces
    the content of files that are resolved. `slow_s` is how long each large object takes.
    """

    datasets: dict[str, Dataset] = field(default_factory=dict)
    objects: dict[str, bytes] = field(default_factory=dict)
    parts: dict[str, dict[int, bytes]] = field(default_factory=dict)
    asked: list[str] = field(default_factory=list)
    faults: list[list[object]] = field(default_factory=list)
    body: dict[str, bytes] = field(default_factory=dict)
    meanwhile: list[tuple[str, str, bytes]] = field(default_factory=list)
    slow_s: float = 0.0
    url: str = ""
    lock: threading.RLock = field(default_factory=threading.RLock)

    def fails(self, line: str, status: int, times: int = -1) -> None:
        self.faults.append([line, status, times])


@contextmanager
def serving(hub: WritableHub) -> Iterator[WritableHub]:
    """Serve a hub until the end of the block."""

    class Desk(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def answer(self) -> None:
            size = int(self.headers.get("Content-Length") or 0)
            sent = self.chunks() if self.headers.get("Transfer-Encoding") == "chunked" else self.rfile.read(size)
            status, headers, content = Request(hub, self.command, self.path, dict(self.headers), sent).answer()
            self.send_response(status)
            for name, value in {"Content-Length": str(len(content)), **headers}.items():
                self.send_header(name, value)
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(content)

        def chunks(self) -> bytes:
            content = b""
            while size := int(self.rfile.readline(), 16):
                content += self.rfile.read(size)
                self.rfile.readline()
            self.rfile.readline()
            return content

        do_GET = do_HEAD = do_POST = do_PUT = answer  # noqa: N815 - the server's names

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Desk)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    hub.url = f"http://127.0.0.1:{server.server_port}"
    try:
        yield hub
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def refusal(status: int, code: str = "") -> Answer:
    """An error that repeats the token, as a careless server would."""
    headers = {"X-Error-Message": f"no: Authorization: Bearer {TOKEN} Invalid credentials in Authorization header"}
    if code:
        headers["X-Error-Code"] = code
    if status == 429:
        headers["Retry-After"] = "0"
    return status, headers, json.dumps({"error": f"no, {TOKEN}"}).encode()


def said(value: object, **headers: str) -> Answer:
    return 200, {"Content-Type": "application/json", **headers}, json.dumps(value).encode()


@dataclass
class Request:
    """One request and its answer."""

    hub: WritableHub
    method: str
    url: str
    headers: dict[str, str]
    sent: bytes

    def answer(self) -> Answer:
        parts = urlsplit(self.url)
        self.query = parse_qs(parts.query)
        path = parts.path
        line = f"{self.method} {unquote(path)}"
        with self.hub.lock:
            self.hub.asked.append(line)
            for fault in self.hub.faults:
                if re.search(str(fault[0]), line) and fault[2] != 0:
                    fault[2] = int(str(fault[2])) - 1
                    return refusal(int(str(fault[1])))
        if path.startswith("/store/"):
            return self.store(path.split("/")[2:])
        heads = {name.lower(): value for name, value in self.headers.items()}
        known = heads.get("authorization") == f"Bearer {TOKEN}"
        with self.hub.lock:
            if path.startswith("/api/"):
                return self.api(path.split("/")[2:], known)
            return self.git(path.split("/")[1:], known)

    @property
    def data(self) -> dict[str, object]:
        return dict(json.loads(self.sent))

    def api(self, path: list[str], known: bool) -> Answer:
        if path == ["validate-yaml"]:
            return said({"errors": [], "warnings": [{"message": "empty or missing yaml metadata in repo card"}]})
        if path == ["repos", "create"]:
            return self.create(known)
        if len(path) < 3:
            return refusal(404)
        self.name, rest = "/".join(path[:3]), [unquote(part) for part in path[3:]]
        found = self.dataset("/".join(path[1:3]), known)
        return self.asked_of(found, rest) if isinstance(found, Dataset) else found

    def asked_of(self, found: Dataset, rest: list[str]) -> Answer:
        """What is asked of one dataset."""
        files = found.find(rest[1] if rest else "main")
        if files is None:
            return refusal(404, "RevisionNotFound")
        if not rest or rest[0] == "revision":
            at = rest[1] if rest and re.fullmatch("[0-9a-f]{40}", rest[1]) else found.head
            return said({"id": self.name.partition("/")[2], "sha": at, "private": found.private, "siblings": []})
        work = {"tree": self.tree, "paths-info": self.infos, "preupload": self.preupload, "commit": self.commit}
        return work[rest[0]](found, files, "/".join(rest[2:]))

    def create(self, known: bool) -> Answer:
        name = f"{self.data['organization']}/{self.data['name']}"
        if not known:
            return refusal(401)
        if name in self.hub.datasets:
            return 409, {}, json.dumps({"url": f"{self.hub.url}/datasets/{name}"}).encode()
        self.hub.datasets[name] = Dataset(private=self.data.get("visibility") == "private")
        return said({"url": f"{self.hub.url}/datasets/{name}"})

    def dataset(self, name: str, known: bool) -> Dataset | Answer:
        found = self.hub.datasets.get(name)
        if found is None or (found.private and not known):
            return refusal(404, "RepoNotFound")
        return refusal(403, "GatedRepo") if found.gated else found

    def tree(self, found: Dataset, files: dict[str, Blob], folder: str) -> Answer:
        names = [name for name in sorted(files) if not folder or name.startswith(f"{folder}/")]
        if folder and not names:
            return refusal(404, "EntryNotFound")
        first = int(self.query.get("cursor", ["0"])[0])
        headers = {}
        if first + _PAGE < len(names):
            path = urlsplit(self.url).path
            headers["Link"] = f'<{self.hub.url}{path}?recursive=true&cursor={first + _PAGE}>; rel="next"'
        entries = [about(name, files[name]) for name in names[first : first + _PAGE]]
        if not first:
            entries.append({"type": "directory", "path": "a folder", "oid": "0" * 40})
        return said(entries, **headers)

    def infos(self, found: Dataset, files: dict[str, Blob], _: str) -> Answer:
        wanted = parse_qs(self.sent.decode())["paths"] if b"paths=" in self.sent else self.data["paths"]
        return said([about(name, files[name]) for name in wanted if name in files])  # type: ignore[attr-defined]

    def preupload(self, found: Dataset, files: dict[str, Blob], _: str) -> Answer:
        answers = []
        for file in self.data["files"]:  # type: ignore[attr-defined]
            name, sample = file["path"], base64.b64decode(file["sample"])
            large = name.endswith(".tar") or b"\0" in sample or file["size"] > 10 << 20
            blob = files.get(name)
            answers.append(
                {
                    "path": name,
                    "uploadMode": "lfs" if large else "regular",
                    "shouldIgnore": bool(found.ignored) and name.endswith(found.ignored),
                    "oid": (blob.sha256 if blob.large else blob.git) if blob else None,
                }
            )
        return said({"files": answers})

    def commit(self, found: Dataset, files: dict[str, Blob], _: str) -> Answer:
        if self.hub.meanwhile:
            name, path, content = self.hub.meanwhile.pop()
            self.hub.datasets[name].commits.append({**self.hub.datasets[name].commits[-1], path: Blob(content, False)})
        after = dict(found.commits[-1])
        for line in self.sent.splitlines():
            row = json.loads(line)
            value = row["value"]
            if row["key"] == "header" and value.get("parentCommit", found.head) != found.head:
                return refusal(412)
            if row["key"] == "file":
                after[value["path"]] = Blob(base64.b64decode(value["content"]), False)
            if row["key"] == "lfsFile":
                if value["oid"] not in self.hub.objects:
                    return refusal(400)
                after[value["path"]] = Blob(self.hub.objects[value["oid"]], True)
        found.commits.append(after)
        return said({"commitUrl": f"{self.hub.url}/{self.name}/commit/{found.head}", "commitOid": found.head})

    def git(self, path: list[str], known: bool) -> Answer:
        name = f"{path[1]}/{path[2].removesuffix('.git')}"
        found = self.dataset(name, known)
        if not isinstance(found, Dataset):
            return found
        if path[3:] == ["info", "lfs", "objects", "batch"]:
            return said({"transfer": "basic", "objects": [self.place(entry) for entry in self.data["objects"]]})  # type: ignore[attr-defined]
        files, wanted = found.find(unquote(path[4])), unquote("/".join(path[5:]))
        if files is None or wanted not in files:
            return refusal(404, "RevisionNotFound" if files is None else "EntryNotFound")
        return self.resolve(files[wanted], self.hub.body.get(wanted), found.head)

    def place(self, entry: dict[str, object]) -> dict[str, object]:
        """Where a large object goes: nowhere when it is there, in parts when it is large."""
        oid, size = str(entry["oid"]), int(str(entry["size"]))
        if oid in self.hub.objects:
            return {"oid": oid, "size": size}
        where = f"{self.hub.url}/store/{oid}"
        header = {"chunk_size": str(_PART)} if size > _PART else {}
        header |= {f"{n + 1:05}": f"{where}/{n + 1}" for n in range(-(-size // _PART) if header else 0)}
        upload = {"href": f"{where}/complete" if header else where, "header": header}
        return {"oid": oid, "size": size, "actions": {"upload": upload, "verify": {"href": f"{where}/verify"}}}

    def store(self, path: list[str]) -> Answer:
        oid, what = path[0], path[1] if len(path) > 1 else ""
        time.sleep(self.hub.slow_s)
        with self.hub.lock:
            if what == "complete":
                parts = self.hub.parts.pop(oid)
                self.sent = b"".join(parts[number] for number in sorted(parts))
            elif what.isdigit():
                self.hub.parts.setdefault(oid, {})[int(what)] = self.sent
                return 200, {"ETag": f'"{what}"'}, b""
            elif what == "verify":
                return (200, {}, b"{}") if oid in self.hub.objects else refusal(404)
            if hashlib.sha256(self.sent).hexdigest() != oid:
                return refusal(422)
            self.hub.objects[oid] = self.sent
            return 200, {}, b"{}"

    def resolve(self, blob: Blob, instead: bytes | None, head: str) -> Answer:
        headers = {"X-Repo-Commit": head, "ETag": f'"{blob.sha256 if blob.large else blob.git}"'}
        headers["Accept-Ranges"] = "bytes"
        if blob.large:
            headers |= {"X-Linked-Etag": headers["ETag"], "X-Linked-Size": str(len(blob.content))}
        content = blob.content if instead is None else instead
        asked = re.fullmatch(
            r"bytes=(\d+)-", {name.lower(): text for name, text in self.headers.items()}.get("range", "")
        )
        if asked and self.method == "GET" and int(asked[1]) < len(content):
            headers["Content-Range"] = f"bytes {asked[1]}-{len(content) - 1}/{len(content)}"
            return 206, headers, content[int(asked[1]) :]
        if self.method == "HEAD":
            headers["Content-Length"] = str(len(blob.content))
        return 200, headers, content


def about(name: str, blob: Blob) -> dict[str, object]:
    """A file in a tree."""
    entry: dict[str, object] = {"type": "file", "path": name, "size": len(blob.content), "oid": blob.git}
    if blob.large:
        entry["lfs"] = {"oid": blob.sha256, "size": len(blob.content), "pointerSize": 130}
    return entry
