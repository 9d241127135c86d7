"""Checkpoints on disk: where one lies, whether it is whole, what its files are. Imports neither torch nor transformers.

Every refusal is one line: the path, what is wrong, what is allowed, the cure.
"""

import hashlib
import json
import re
import struct
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from benchcheck.errors import ModelRefusedError, UsageError, first_line

__all__ = [
    "ARCHITECTURES",
    "EMBEDDED",
    "OTHER_FAMILIES",
    "QWEN3_VL",
    "architecture",
    "check",
    "downloaded",
    "fetch",
    "fingerprint",
    "local_revision",
    "pinned",
    "resolve",
]

QWEN3_VL = ("Qwen3VLForConditionalGeneration", "Qwen3VLMoeForConditionalGeneration")
OTHER_FAMILIES = (
    "Gemma3ForConditionalGeneration",
    "InternVLForConditionalGeneration",
    "LlavaOnevisionForConditionalGeneration",
    "SmolVLMForConditionalGeneration",
)
"""Families that the transformers backend reads with their own code, one prompt a forward (`families`)."""
ARCHITECTURES = QWEN3_VL + OTHER_FAMILIES
EMBEDDED = Path(__file__).parent.parent / "demo" / "models"
"""The checkpoints that ship with the package, named `embedded:<folder>`."""

_COMMIT = re.compile(r"[0-9a-f]{40}")
_HUB_ID = re.compile(r"[A-Za-z0-9][\w.-]*/[\w.-]+")
_READ_PATTERNS = ("*.json", "*.jinja", "*.txt")
_WEIGHT_PATTERNS = ("*.safetensors",)
_LFS_POINTER = b"version https://git-lfs"
_FETCH_AGAIN = "Cure: fetch the checkpoint again (files kept by Git LFS: `git lfs pull`)"


def resolve(model: str) -> Path | str:
    """Return the folder that `model` names, or the hub id that it is.

    Raises:
        UsageError: there is no such embedded checkpoint or folder.
    """
    if model.startswith("embedded:"):
        return _embedded(model)
    folder = Path(model).expanduser()
    if folder.is_dir():
        return folder
    if _HUB_ID.fullmatch(model):
        return model
    raise UsageError(
        f"{model}: no such model folder. Allowed: a folder, a hub id (owner/name) or embedded:NAME. "
        "Cure: correct `model` in the config, or fetch the checkpoint to that folder"
    )


def _embedded(model: str) -> Path:
    folder = EMBEDDED / model.removeprefix("embedded:")
    shipped = sorted(path.parent.name for path in EMBEDDED.glob("*/config.json"))
    if folder.name not in shipped:
        raise UsageError(
            f"{model}: no such embedded checkpoint. Allowed: {', '.join(shipped) or 'none in this install'}"
        )
    return folder


def pinned(models: Mapping[str, tuple[str, str]]) -> dict[str, tuple[str, str]]:
    """Return embedded checkpoints by role with the fingerprints of their files: another release may ship others.

    A study that names them so never mixes the answers of two releases, and says which one it needs.
    """
    return {role: (model, fingerprint(_embedded(model))) for role, (model, _) in models.items()}


def fetch(model: str, revision: str, architectures: Sequence[str] = QWEN3_VL, cache: str = "") -> tuple[Path, str]:
    """Return the checked folder of a checkpoint and its revision; a hub id is downloaded, or taken from the cache.

    The small files come first and are checked, so that a wrong checkpoint is refused before its weights travel.

    Args:
        model: a folder, a hub id or `embedded:NAME`.
        revision: as in `ModelSpec`.
        architectures: those that whoever asks can read.
        cache: the hub cache; the library's own when empty.

    Raises:
        UsageError: no such folder, or a hub id without revision.
        ModelRefusedError: the checkpoint is damaged, of another kind, of another revision, or cannot be fetched.
    """
    place = resolve(model)
    if isinstance(place, Path):
        check(place, architectures=architectures)
        return place, local_revision(place, revision)
    if not revision:
        raise UsageError(
            f"{model}: no folder of that name here, and a hub id needs a revision, since a branch moves. "
            f"Allowed: a commit of the hub repository. Cure: set `revision` in the config, or name {model}@COMMIT"
        )
    check(_download(place, revision, _READ_PATTERNS, cache), weights=False, architectures=architectures)
    folder = _download(place, revision, _READ_PATTERNS + _WEIGHT_PATTERNS, cache)
    check(folder, architectures=architectures)
    return folder, folder.name


def local_revision(folder: Path, revision: str) -> str:
    """Return the fingerprint of a folder's files, which a revision that is asked for must be.

    Raises:
        ModelRefusedError: it is another.
    """
    if _COMMIT.fullmatch(revision) and downloaded(folder) == revision:
        return revision
    found = fingerprint(folder)
    if revision not in ("", found):
        raise ModelRefusedError(
            f"{folder}: the files are {found}, the revision asked for is {revision}. Allowed: that fingerprint, an "
            "empty revision, or the commit that `hf download NAME --revision COMMIT --local-dir FOLDER` took them "
            "from. Cure: set `revision` to one of these, or fetch the files of the revision"
        )
    return found


def downloaded(folder: Path) -> str:
    """Return the commit that `hf download --local-dir` took a folder's files from; empty where that is not so.

    The hub's library leaves beside them the commit and each file's hash (`.cache/huggingface`): SHA-256 for large
    files, git's SHA-1 for small ones. Every file that counts must be there with its hash, so no edit goes unseen.
    """
    commits = set()
    for path in _files(folder):
        try:
            note = (folder / ".cache" / "huggingface" / "download" / f"{path.name}.metadata").read_text("utf-8")
            commit, mark = note.split()[:2]
        except (OSError, ValueError):
            return ""
        if mark not in (_digest(path), _git_digest(path) if len(mark) == 40 else ""):
            return ""
        commits.add(commit)
    return commits.pop() if len(commits) == 1 else ""


def _download(repository: str, revision: str, patterns: tuple[str, ...], cache: str) -> Path:
    """Return the hub cache's folder of a revision, fetching the files that are not in it unless offline."""
    import huggingface_hub
    from huggingface_hub.errors import HfHubHTTPError, HFValidationError

    try:
        return Path(
            huggingface_hub.snapshot_download(
                repository, revision=revision, allow_patterns=list(patterns), cache_dir=cache or None
            )
        )
    except (HfHubHTTPError, HFValidationError, OSError) as error:
        # LocalEntryNotFoundError, what an offline machine gets, is an OSError too.
        raise ModelRefusedError(
            f"{repository}@{revision}: cannot be fetched ({first_line(error)}). Allowed: a commit of the "
            "hub or of its cache. Cure: check name, commit and network, or name a local folder"
        ) from error


def fingerprint(folder: Path) -> str:
    """Return `sha256:…` of a checkpoint's config, tokenizer, template and weight files, by name and content.

    A note or a licence beside them does not count. Reads every byte: about a second per GB and core.
    """
    files = _files(folder)
    # Hashing and reading release the GIL, so the shards of a large checkpoint go in parallel.
    with ThreadPoolExecutor(max_workers=8) as pool:
        digests = list(pool.map(_digest, files))
    lines = "".join(f"{path.name} {digest}\n" for path, digest in zip(files, digests, strict=True))
    return "sha256:" + hashlib.sha256(lines.encode()).hexdigest()


def _files(folder: Path) -> list[Path]:
    """The files of a checkpoint that count, by name."""
    patterns = _READ_PATTERNS + _WEIGHT_PATTERNS
    return sorted({path for pattern in patterns for path in folder.glob(pattern)}, key=lambda path: path.name)


def _git_digest(path: Path) -> str:
    """The SHA-1 by which git knows a file."""
    data = path.read_bytes()
    return hashlib.sha1(b"blob %d\0" % len(data) + data, usedforsecurity=False).hexdigest()


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def architecture(folder: Path) -> str:
    """Return the class that a checkpoint's config names, or `none`.

    Raises:
        ModelRefusedError: there is no config.
    """
    return str((_config(folder).get("architectures") or ["none"])[0])


def check(folder: Path, *, weights: bool = True, architectures: Sequence[str] = QWEN3_VL) -> None:
    """Refuse a folder that is not a whole checkpoint of an allowed architecture.

    Args:
        folder: the checkpoint.
        weights: whether its weight files should be there already.
        architectures: those that are allowed.

    Raises:
        ModelRefusedError: with the file, what is wrong with it and the cure.
    """
    found = architecture(folder)
    if found not in architectures:
        other = found in ARCHITECTURES
        raise ModelRefusedError(
            f"{folder}: the architecture is {found}. Allowed: {', '.join(architectures)}. "
            f"Cure: {'use the transformers backend' if other else 'name a Qwen3-VL checkpoint'}"
        )
    _check_tokenizer(folder)
    if weights:
        for path in _weight_files(folder):
            _check_weights(path)


def _config(folder: Path) -> dict[str, Any]:
    path = folder / "config.json"
    if not path.is_file():
        raise ModelRefusedError(
            f"{folder}: no config.json. Allowed: the folder of a checkpoint. Cure: name that folder"
        )
    config = _json(path)
    if not isinstance(config, dict):
        raise ModelRefusedError(f"{path}: not a JSON object. Allowed: the checkpoint's config. {_FETCH_AGAIN}")
    return config


def _json(path: Path) -> Any:
    try:
        return json.loads(path.read_bytes())
    except ValueError as error:
        raise ModelRefusedError(
            f"{path}: not JSON ({error}). Allowed: the checkpoint's own file. {_FETCH_AGAIN}"
        ) from error


def _check_tokenizer(folder: Path) -> None:
    if not any((folder / name).is_file() for name in ("tokenizer.json", "vocab.json")):
        raise ModelRefusedError(
            f"{folder}: no tokenizer. Allowed: tokenizer.json, or vocab.json with merges.txt. {_FETCH_AGAIN}"
        )
    if any((folder / name).is_file() for name in ("chat_template.jinja", "chat_template.json")):
        return
    settings = folder / "tokenizer_config.json"
    if not (settings.is_file() and _json(settings).get("chat_template")):
        raise ModelRefusedError(
            f"{folder}: no chat template. Allowed: chat_template.jinja, chat_template.json or `chat_template` in "
            "tokenizer_config.json. Cure: copy it from the instruction-tuned checkpoint"
        )


def _weight_files(folder: Path) -> list[Path]:
    index = folder / "model.safetensors.index.json"
    if index.is_file():
        return [folder / name for name in sorted(set(_json(index)["weight_map"].values()))]
    return [folder / "model.safetensors"]


def _check_weights(path: Path) -> None:
    """Refuse a weight file that is absent, a pointer, empty or cut, by its header and size alone."""
    if not path.is_file():
        raise ModelRefusedError(f"{path}: no such weight file. Allowed: weights as safetensors. {_FETCH_AGAIN}")
    size = path.stat().st_size
    with path.open("rb") as file:
        start = file.read(max(8, len(_LFS_POINTER)))
        if start.startswith(_LFS_POINTER):
            raise ModelRefusedError(f"{path}: a Git LFS pointer, not weights. Allowed: weights. {_FETCH_AGAIN}")
        header = struct.unpack("<Q", start[:8])[0] if len(start) >= 8 else size
        file.seek(8)
        end = _data_end(file.read(header)) if 8 + header <= size else None
    if end is None or 8 + header + end != size:
        wanted = "a safetensors header" if end is None else f"{8 + header + end:,} bytes by its header"
        raise ModelRefusedError(f"{path}: cut or damaged ({size:,} bytes). Allowed: {wanted}. {_FETCH_AGAIN}")


def _data_end(header: bytes) -> int | None:
    """Return the bytes of tensor data that a safetensors header describes, or None where it is none."""
    try:
        tensors = json.loads(header)
        return max((int(t["data_offsets"][1]) for name, t in tensors.items() if name != "__metadata__"), default=0)
    except (ValueError, LookupError, TypeError, AttributeError):
        return None
