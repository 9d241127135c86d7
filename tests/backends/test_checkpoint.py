import json
import subprocess
import sys

import pytest

from benchcheck.backends import checkpoint
from benchcheck.errors import ModelRefusedError, UsageError


def small(folder, *, architecture="Qwen3VLForConditionalGeneration"):
    """A folder that passes every check that needs no torch, with 8 bytes of weights."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "config.json").write_text(json.dumps({"architectures": [architecture]}))
    (folder / "tokenizer.json").write_text("{}")
    (folder / "chat_template.jinja").write_text("template")
    (folder / "model.safetensors").write_bytes(weights())
    return folder


def weights():
    header = json.dumps({"__metadata__": {"format": "pt"}, "w": {"dtype": "F32", "data_offsets": [0, 8]}}).encode()
    return len(header).to_bytes(8, "little") + header + bytes(8)


def refusal(call, *arguments):
    with pytest.raises(UsageError) as raised:
        call(*arguments)
    message = str(raised.value)
    assert "\n" not in message
    assert "Allowed: " in message
    assert "Cure: " in message
    return message


def test_a_whole_folder_passes_and_is_its_own_revision(tmp_path):
    folder = small(tmp_path / "m")
    assert checkpoint.resolve(str(folder)) == folder
    found, revision = checkpoint.fetch(str(folder), "")
    assert (found, revision) == (folder, checkpoint.fingerprint(folder))
    assert checkpoint.fetch(str(folder), revision) == (folder, revision)


def test_fingerprint_is_of_names_and_contents_that_matter(tmp_path):
    folder = small(tmp_path / "m")
    before = checkpoint.fingerprint(folder)
    assert before.startswith("sha256:")
    assert len(before) == 7 + 64
    (folder / "README.md").write_text("a note")
    assert checkpoint.fingerprint(folder) == before
    assert checkpoint.fingerprint(small(tmp_path / "copy")) == before
    (folder / "chat_template.jinja").write_text("another")
    assert checkpoint.fingerprint(folder) != before


def test_another_revision_is_refused_with_the_one_that_is_there(tmp_path):
    folder = small(tmp_path / "m")
    message = refusal(checkpoint.fetch, str(folder), "sha256:00")
    assert checkpoint.fingerprint(folder) in message
    assert "sha256:00" in message
    assert "0c351dd0" in refusal(checkpoint.fetch, str(folder), "0c351dd0")


def break_config(folder):
    (folder / "config.json").unlink()


def break_json(folder):
    (folder / "config.json").write_text("{")


def break_object(folder):
    (folder / "config.json").write_text("[]")


def break_tokenizer(folder):
    (folder / "tokenizer.json").unlink()


def break_template(folder):
    (folder / "chat_template.jinja").unlink()


def break_weights(folder):
    (folder / "model.safetensors").unlink()


def break_pointer(folder):
    (folder / "model.safetensors").write_text(
        "version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 8735496\n"
    )


def break_empty(folder):
    (folder / "model.safetensors").write_bytes(b"")


def break_cut(folder):
    (folder / "model.safetensors").write_bytes(weights()[:-3])


def break_header(folder):
    (folder / "model.safetensors").write_bytes((4).to_bytes(8, "little") + b"{{{{")


def break_shards(folder):
    index = {"weight_map": {"a": "model-1.safetensors", "b": "model-2.safetensors"}}
    (folder / "model.safetensors.index.json").write_text(json.dumps(index))
    (folder / "model-1.safetensors").write_bytes(weights())


@pytest.mark.parametrize(
    ("damage", "says"),
    [
        (break_config, "no config.json"),
        (break_json, "config.json: not JSON"),
        (break_object, "config.json: not a JSON object"),
        (break_tokenizer, "no tokenizer"),
        (break_template, "no chat template"),
        (break_weights, "model.safetensors: no such weight file"),
        (break_pointer, "model.safetensors: a Git LFS pointer"),
        (break_empty, "model.safetensors: cut or damaged (0 bytes)"),
        (break_cut, "by its header"),
        (break_header, "a safetensors header"),
        (break_shards, "model-2.safetensors: no such weight file"),
    ],
)
def test_a_damaged_folder_is_refused_in_one_line(tmp_path, damage, says):
    folder = small(tmp_path / "m")
    damage(folder)
    message = refusal(checkpoint.check, folder)
    assert message.startswith(str(folder))
    assert says in message


def test_another_architecture_is_refused(tmp_path):
    message = refusal(checkpoint.check, small(tmp_path / "m", architecture="LlamaForCausalLM"))
    assert "LlamaForCausalLM. Allowed: Qwen3VLForConditionalGeneration" in message
    (tmp_path / "m" / "config.json").write_text("{}")
    assert "the architecture is none" in refusal(checkpoint.check, tmp_path / "m")


def test_a_template_in_the_tokenizer_config_counts(tmp_path):
    folder = small(tmp_path / "m")
    break_template(folder)
    (folder / "tokenizer_config.json").write_text(json.dumps({"chat_template": "template"}))
    checkpoint.check(folder)


def test_whole_shards_pass(tmp_path):
    folder = small(tmp_path / "m")
    break_shards(folder)
    (folder / "model-2.safetensors").write_bytes(weights())
    checkpoint.check(folder)


def test_a_folder_that_is_not_there_is_refused():
    assert "no such model folder" in refusal(checkpoint.resolve, "/nowhere/at/all")
    assert "no such model folder" in refusal(checkpoint.resolve, "models")


def test_embedded_checkpoints_are_named_by_their_folder(tmp_path, monkeypatch):
    monkeypatch.setattr(checkpoint, "EMBEDDED", tmp_path)
    with pytest.raises(UsageError, match="Allowed: none in this install"):
        checkpoint.resolve("embedded:large")
    small(tmp_path / "large")
    assert checkpoint.resolve("embedded:large") == tmp_path / "large"
    with pytest.raises(UsageError, match=r"embedded:medium: no such embedded checkpoint\. Allowed: large"):
        checkpoint.resolve("embedded:medium")


def test_a_hub_id_needs_a_revision():
    assert checkpoint.resolve("Qwen/Qwen3-VL-2B-Instruct") == "Qwen/Qwen3-VL-2B-Instruct"
    assert "a hub id needs a revision" in refusal(checkpoint.fetch, "Qwen/Qwen3-VL-2B-Instruct", "")


class Hub:
    """Stands for huggingface_hub.snapshot_download: a cache folder, filled up as patterns ask."""

    def __init__(self, root, error=None):
        self.root, self.error, self.patterns, self.caches = root, error, [], set()

    def __call__(self, repository, *, revision, allow_patterns, cache_dir):
        self.caches.add(cache_dir)
        if self.error:
            raise self.error
        self.patterns.append(allow_patterns)
        folder = small(self.root / repository / revision)
        if "*.safetensors" not in allow_patterns:
            (folder / "model.safetensors").unlink()
        return str(folder)


def test_a_hub_checkpoint_is_checked_before_its_weights_travel(tmp_path, monkeypatch):
    hub = Hub(tmp_path)
    monkeypatch.setattr("huggingface_hub.snapshot_download", hub)
    folder, revision = checkpoint.fetch("owner/name", "c0ffee")
    assert (folder, revision) == (tmp_path / "owner/name/c0ffee", "c0ffee")
    assert ["*.safetensors" in patterns for patterns in hub.patterns] == [False, True]
    assert hub.caches == {None}, "the library's own"
    checkpoint.fetch("owner/name", "c0ffee", cache="/a/cache")
    assert hub.caches == {None, "/a/cache"}


def test_a_hub_that_cannot_be_reached_is_one_line(tmp_path, monkeypatch):
    from huggingface_hub.errors import LocalEntryNotFoundError

    for error in (LocalEntryNotFoundError("offline, and not in the cache"), OSError()):
        monkeypatch.setattr("huggingface_hub.snapshot_download", Hub(tmp_path, error))
        message = refusal(checkpoint.fetch, "owner/name", "c0ffee")
        assert message.startswith("owner/name@c0ffee: cannot be fetched (")


def test_offline_mode_is_respected(tmp_path):
    code = "from benchcheck.backends import checkpoint; checkpoint.fetch('owner/name', 'c0ffee')"
    environment = {"HF_HUB_OFFLINE": "1", "HF_HOME": str(tmp_path), "PATH": "/usr/bin"}
    ended = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=False)
    assert "ModelRefusedError: owner/name@c0ffee: cannot be fetched" in ended.stderr


def test_a_damaged_checkpoint_is_refused_as_it_lies(damaged):
    weights_file = damaged / "model.safetensors"
    weights_file.write_bytes(weights_file.read_bytes()[:100_000])
    with pytest.raises(ModelRefusedError, match=r"cut or damaged \(100,000 bytes\)"):
        checkpoint.fetch(str(damaged), "")
