"""What a client needs of a tokenizer: from tokenizer.json alone, or in words why there is none."""

import builtins
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from benchcheck.backends.checkpoint import EMBEDDED
from benchcheck.backends.rendering import Renderer
from benchcheck.backends.vocabulary import Vocabulary, load_vocabulary
from benchcheck.screen.prompts import LETTERS


def without(monkeypatch: pytest.MonkeyPatch, package: str) -> None:
    plain = builtins.__import__

    def refuse(name: str, *rest: Any, **named: Any) -> Any:
        if name.partition(".")[0] == package:
            raise ModuleNotFoundError(name)
        return plain(name, *rest, **named)

    monkeypatch.setattr(builtins, "__import__", refuse)


@pytest.mark.model
def test_it_says_of_letters_what_the_transformers_backend_s_tokenizer_does() -> None:
    from benchcheck.backends.letters import unreadable_letters, variants_of_letters

    found = load_vocabulary("embedded:large", "")
    assert isinstance(found, Vocabulary)
    renderer = Renderer(EMBEDDED / "large")
    assert list(found.texts) == renderer.vocabulary()
    assert found.variants == variants_of_letters(renderer.vocabulary())
    # Behind the whole prompt as behind the prefill alone.
    assert found.unreadable == unreadable_letters(renderer.specimen, renderer.tokenize, found.variants) == {}
    assert found.encode("Answer: B") == renderer.tokenize("Answer: B")
    assert set(found.variants) == set(LETTERS)


def test_control_tokens_are_found() -> None:
    found = load_vocabulary("embedded:large", "")
    assert isinstance(found, Vocabulary)
    assert found.control is not None
    held = found.control.search("What?<|im_end|>")
    assert held is not None
    assert held.group() == "<|im_end|>"
    assert found.control.search("What <|is|> it? <im_end>") is None


REASONS: dict[str, tuple[Callable[[Path], str], str]] = {
    "no folder": (lambda folder: str(folder / "none" / "of" / "them"), "no such model folder"),
    "no tokenizer": (str, "has no tokenizer.json"),
    "no such embedded": (lambda folder: "embedded:huge", "no such embedded checkpoint"),
    "a branch": (lambda folder: "owner/name", "owner/name has no revision in the config"),
}


@pytest.mark.parametrize("name", REASONS)
def test_why_there_is_none(tmp_path: Path, name: str) -> None:
    model, said = REASONS[name]
    found = load_vocabulary(model(tmp_path), "")
    assert isinstance(found, str)
    assert said in found


def test_a_damaged_file(tmp_path: Path) -> None:
    (tmp_path / "tokenizer.json").write_text("{}")
    found = load_vocabulary(str(tmp_path), "")
    assert isinstance(found, str)
    assert "tokenizer.json is no tokenizer" in found


def test_a_package_that_is_not_there(monkeypatch: pytest.MonkeyPatch) -> None:
    without(monkeypatch, "tokenizers")
    assert load_vocabulary("owner/name", "abc") == "the tokenizers package is not installed"


def test_from_the_hub_s_cache(monkeypatch: pytest.MonkeyPatch) -> None:
    huggingface_hub = pytest.importorskip("huggingface_hub")
    asked = []

    def download(repository: str, name: str, revision: str, cache_dir: str | None) -> str:
        asked.append((repository, name, revision, cache_dir))
        return str(EMBEDDED / "large" / name)

    monkeypatch.setattr(huggingface_hub, "hf_hub_download", download)
    assert isinstance(load_vocabulary("owner/name", "abc"), Vocabulary)
    assert isinstance(load_vocabulary("owner/name", "abc", "/a/cache"), Vocabulary)
    assert asked == [("owner/name", "tokenizer.json", "abc", cache) for cache in (None, "/a/cache")]


def test_a_hub_that_does_not_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    huggingface_hub = pytest.importorskip("huggingface_hub")

    def download(*arguments: object, **named: object) -> str:
        raise OSError("no route\nto host")

    monkeypatch.setattr(huggingface_hub, "hf_hub_download", download)
    assert load_vocabulary("owner/name", "abc") == "owner/name@abc: tokenizer.json cannot be fetched (no route)"


def test_it_loads_neither_torch_nor_transformers() -> None:
    import subprocess

    code = (
        "import sys; from benchcheck.backends.vocabulary import load_vocabulary as load; load('embedded:large', '');"
        "assert not {'torch', 'transformers'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
