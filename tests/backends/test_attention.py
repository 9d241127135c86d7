import json

import numpy as np
import pytest
from plain_forward import Plain, assert_as_plain, frame_prompts, make_mixture, readings, text_prompts

from benchcheck.backends import ModelSpec
from benchcheck.backends.attention import FRAMES, TREE, DeviceLayout, attend_frames, attend_tree, bound, varlen
from benchcheck.backends.network import _recipe
from benchcheck.backends.packed import layout_of, pack
from benchcheck.backends.transformers import TransformersBackend

pytestmark = pytest.mark.model
torch = pytest.importorskip("torch")


def reference(query, key, value, lengths, *, causal, scale):
    """The kernel's contract in plain torch, one sequence after the other; causal from the bottom right."""
    outputs = []
    shared = query.shape[1] // key.shape[1]
    key, value = key.repeat_interleave(shared, 1), value.repeat_interleave(shared, 1)
    queries, keys = lengths.query_ends.tolist(), lengths.key_ends.tolist()
    assert lengths.longest_query == max(np.diff(queries))
    assert lengths.longest_key == max(np.diff(keys))
    for n in range(len(queries) - 1):
        q, k, v = query[queries[n] : queries[n + 1]], key[keys[n] : keys[n + 1]], value[keys[n] : keys[n + 1]]
        scores = torch.einsum("qhd,khd->hqk", q, k).float() * scale
        if causal:
            scores += torch.full(scores.shape[1:], -torch.inf).triu(len(k) - len(q) + 1)
        outputs.append(torch.einsum("hqk,khd->qhd", scores.softmax(-1).to(v.dtype), v))
    return torch.cat(outputs)


@pytest.fixture(scope="module")
def unmasked(model_folder):
    """A backend whose attention goes through the kernel's contract, as on a GPU."""
    opened = TransformersBackend(ModelSpec(str(model_folder)))
    opened._network.use(reference)
    yield opened
    opened.close()


@pytest.fixture(scope="module")
def plain(model_folder):
    return Plain(model_folder)


def test_text_reads_as_separate_forwards_do(unmasked, plain):
    assert_as_plain(unmasked, plain, text_prompts(5))


def test_frames_of_odd_sizes_read_as_separate_forwards_do(unmasked, plain, video):
    mixed = tuple(path for number in range(4) for path in video(number, 2))
    assert_as_plain(unmasked, plain, frame_prompts(mixed, 3) + text_prompts(1) + frame_prompts(video(3, 1), 2))


def test_a_mixture_of_experts_reads_as_separate_forwards_do(damaged, video):
    make_mixture(damaged)
    opened = TransformersBackend(ModelSpec(str(damaged)))
    opened._network.use(reference)
    assert_as_plain(opened, Plain(damaged), text_prompts(1) + frame_prompts(video(0, 4), 2))
    opened.close()


def test_with_and_without_masks_read_alike(unmasked, backend, video):
    prompts = text_prompts(6) + frame_prompts(video(5, 8))
    for one, other in zip(readings(unmasked, prompts), readings(backend, prompts), strict=True):
        assert one.letters.logprobs == pytest.approx(other.letters.logprobs, abs=1e-4)


def test_the_kernel_takes_the_place_of_masks_only_where_it_is_used(unmasked, backend):
    for opened, name in ((unmasked, TREE), (backend, "sdpa")):
        assert opened._network.model.model.language_model.config._attn_implementation == name
    assert unmasked._network.model.model.visual.config._attn_implementation == FRAMES


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_a_tree_sees_what_each_prompt_sees_alone(dtype):
    rng, generator = np.random.default_rng(0), torch.Generator().manual_seed(0)
    stem = rng.integers(0, 50, 11)
    prompts = [np.concatenate([stem[: 3 + n % 5], rng.integers(50, 99, 1 + n)]) for n in range(9)]
    prompts += [prompts[2], prompts[3][:4], stem]
    trees = [pack(prompts[:5]), pack(prompts[5:])]
    layout = DeviceLayout.of(layout_of(trees), torch.device("cpu"))
    nodes = sum(len(tree.symbols) for tree in trees)
    shape = (1, 4, nodes, 8)
    query, key, value = (torch.randn(shape, generator=generator).to(getattr(torch, dtype)) for _ in range(3))
    key, value = key[:, :2], value[:, :2]
    packed, weights = attend_tree(None, query, key, value, None, scaling=0.3, layout=layout, kernel=reference)
    assert weights is None
    assert packed.shape == (1, nodes, 4, 8)
    start = 0
    for tree in trees:
        for path in tree.paths:
            at = torch.from_numpy(start + path)
            alone = torch.nn.functional.scaled_dot_product_attention(
                *(part[:, :, at].float() for part in (query, key, value)), is_causal=True, scale=0.3, enable_gqa=True
            )
            error = (packed[:, at].float() - alone.transpose(1, 2)).abs().max()
            assert error < (1e-5 if dtype == "float32" else 2e-2)
        start += len(tree.symbols)


def test_frames_see_themselves_alone():
    query, key, value = torch.randn(3, 1, 2, 10, 4, generator=torch.Generator().manual_seed(1)).unbind()
    ends = torch.tensor([0, 4, 10], dtype=torch.int32)
    seen, _ = attend_frames(
        None, query, key, value, attention_mask=None, scaling=0.5, cu_seq_lens_q=ends, max_length_q=6, kernel=reference
    )
    for part in (slice(0, 4), slice(4, 10)):
        alone = torch.nn.functional.scaled_dot_product_attention(
            *(whole[:, :, part] for whole in (query, key, value)), scale=0.5
        )
        torch.testing.assert_close(seen[:, part], alone.transpose(1, 2))


def called(signature):
    """A stand-in for torch's function with the keywords of one of its versions; keeps what it is called with."""
    calls = []
    names = {"calls": calls}
    exec(f"def attention(q, k, v, cu_q, cu_k, max_q, max_k, {signature}): calls.append(locals()); return q", names)
    return names["attention"], calls


LENGTHS = DeviceLayout("q ends", "k ends", 3, 5)


@pytest.mark.parametrize("causal", [True, False])
@pytest.mark.parametrize(
    "signature",
    [
        "is_causal=False, return_aux=None, scale=None",
        "*, return_aux=None, scale=None, window_size=(-1, -1)",
        "*, scale=None, window_size=(-1, -1), enable_gqa=False",
    ],
)
def test_every_version_of_torchs_function_is_called_as_it_wants(signature, causal):
    attention, calls = called(signature)
    query, key = torch.zeros(1, 4, 8), torch.zeros(1, 2, 8)
    assert bound(attention)(query, key, key, LENGTHS, causal=causal, scale=0.5) is query
    (call,) = calls
    assert [call[name] for name in ("cu_q", "cu_k", "max_q", "max_k", "scale")] == ["q ends", "k ends", 3, 5, 0.5]
    assert call.get("is_causal", causal) is causal
    assert call.get("window_size", (-1, 0 if causal else -1)) == (-1, 0 if causal else -1)
    assert call.get("enable_gqa", True) is True


def test_a_function_of_other_keywords_is_left_alone():
    attention, _ = called("is_causal=False")
    assert bound(attention) is None


def test_a_torch_without_the_function_has_no_kernel(monkeypatch):
    assert varlen() is not None
    monkeypatch.setitem(__import__("sys").modules, "torch.nn.attention.varlen", None)
    assert varlen() is None


def test_frames_that_need_the_checkpoints_own_processor_have_no_recipe(damaged):
    assert _recipe(damaged).patch == 16
    path = damaged / "processor_config.json"
    config = json.loads(path.read_text())
    config["image_processor"]["resample"] = 2
    path.write_text(json.dumps(config))
    assert _recipe(damaged) is None
