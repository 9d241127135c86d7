import importlib
import importlib.util
import json
import shutil

import pytest
from family_checkpoints import FAMILIES
from PIL import Image
from plain_forward import OPTIONS, frame_prompts, readings, text_prompts

from benchcheck.backends import ModelSpec, checkpoint, families, open_backend
from benchcheck.backends.families import FamilyRenderer
from benchcheck.backends.plain import PlainBackend
from benchcheck.backends.transformers import TransformersBackend
from benchcheck.errors import BackendError, ModelRefusedError
from benchcheck.screen.prompts import Prompt
from benchcheck.screen.readings import MISSING_LOGPROB, Failure, Reading, letter_of_token, log_sum_exp
from benchcheck.screen.steps import Sight

pytestmark = pytest.mark.model
torch = pytest.importorskip("torch")

# What each family's own examples write for a user who shows images and asks, with the answer begun.
WRITTEN = {
    "InternVL": "<|im_start|>user\n{images}{text}<|im_end|>\n<|im_start|>assistant\nAnswer:",
    "LLaVA-OneVision": "<|im_start|>user {images}{text}<|im_end|>\n<|im_start|>assistant Answer:",
    "SmolVLM": "<|im_start|>User:{images}{text}<end_of_utterance>\nAssistant: Answer:",
    "Gemma 3": "<bos><start_of_turn>user\n{images}{text}<end_of_turn>\n<start_of_turn>model\nAnswer:",
}
IMAGE = {
    "InternVL": "<IMG_CONTEXT>\n",
    "LLaVA-OneVision": "<image>",
    "SmolVLM": "<image>",
    "Gemma 3": "<start_of_image>",
}
ARGUMENTS = {
    "InternVL": {"video_processor": None, "image_seq_length": 4},
    "LLaVA-OneVision": {"video_processor": None, "num_image_tokens": 16, "vision_feature_select_strategy": "full"},
    "SmolVLM": {"video_processor": None, "image_seq_len": 4},
    "Gemma 3": {"image_seq_length": 4},
}


class ByHand:
    """One forward of the whole model with the family's processor, put together here."""

    def __init__(self, family, folder, monkeypatch):
        import transformers
        from transformers.processing_utils import ProcessorMixin

        module, name = families.FAMILIES[checkpoint.architecture(folder)].pictures
        pictures = getattr(importlib.import_module(f"transformers.models.{module}"), name)
        kind = {"LLaVA-OneVision": "LlavaOnevision", "Gemma 3": "Gemma3"}.get(family, family)
        monkeypatch.setattr(ProcessorMixin, "check_argument_for_proper_class", lambda *_: None)
        self.tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
        self.processor = getattr(transformers, f"{kind}Processor")(
            pictures.from_pretrained(folder), self.tokenizer, **ARGUMENTS[family]
        )
        self.model = transformers.AutoModelForImageTextToText.from_pretrained(folder, dtype=torch.float32).eval()
        self.family = family

    def letters(self, prompt):
        text = prompt.text
        if self.family == "SmolVLM" and not prompt.frames:
            text = f" {text}"
        written = WRITTEN[self.family].format(images=IMAGE[self.family] * len(prompt.frames), text=text)
        images = [Image.open(path).convert("RGB") for path in prompt.frames]
        inputs = self.processor(
            text=[written], images=[images] if images else None, return_tensors="pt", add_special_tokens=False
        )
        with torch.inference_mode():
            logprobs = self.model(**inputs).logits[0, -1].double().log_softmax(-1)
        found = {letter: [] for letter in "ABCDE"[: len(prompt.order)]}
        for token, logprob in enumerate(logprobs.tolist()):
            letter = letter_of_token(self.tokenizer.decode([token]))
            if letter in found:
                found[letter].append(logprob)
        return [log_sum_exp(values) for values in found.values()], inputs["input_ids"].shape[1]


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    root = tmp_path_factory.mktemp("families")
    return {name: make(root / name.replace(" ", "")) for name, make in FAMILIES.items()}


@pytest.fixture(scope="module", params=list(FAMILIES))
def family(request):
    if request.param == "SmolVLM":
        pytest.importorskip("num2words")
    return request.param


@pytest.fixture(scope="module")
def opened(family, made):
    backend = open_backend("transformers", ModelSpec(str(made[family])))
    assert isinstance(backend, PlainBackend)
    yield backend
    backend.close()


def test_letters_are_those_of_a_forward_by_hand(family, made, opened, video, monkeypatch):
    by_hand = ByHand(family, made[family], monkeypatch)
    one, many = video(0, 1), (*video(0, 2), *video(1, 1), *video(3, 1))
    prompts = text_prompts(1) + frame_prompts(one, 1, Sight.SINGLE_FRAME, "s") + frame_prompts(many, 2)
    for prompt, reading in zip(prompts, readings(opened, prompts), strict=True):
        expected, tokens = by_hand.letters(prompt)
        assert isinstance(reading, Reading)
        assert reading.letters.logprobs == pytest.approx(expected, abs=1e-4)
        assert reading.prompt_tokens == tokens
        assert reading.letters.missing == ()


def test_pixels_and_their_order_reach_the_model(opened, video):
    frames = video(0, 3)
    shown = [frame_prompts(order, 1)[0] for order in (frames, frames[::-1], video(2, 3))]
    first, turned, other = (reading.letters.logprobs for reading in readings(opened, shown))
    assert first != pytest.approx(turned, abs=1e-6)
    assert first != pytest.approx(other, abs=1e-6)


def test_what_cannot_be_read_fails_alone(opened, video, tmp_path, monkeypatch):
    control = opened._renderer._control
    bad = [Prompt("b_0", 1, (0, 1), f"What is {token}?") for token in control[:3]]
    missing = frame_prompts((str(tmp_path / "none.jpg"),), 1)
    results = readings(opened, [*bad, *missing, text_prompts(1)[0]])
    assert [result.kind for result in results[:-1]] == ["control_token_in_text"] * len(bad) + ["undecodable_frames"]
    assert isinstance(results[-1], Reading)
    monkeypatch.setattr(opened, "max_tokens", 20)
    (long,) = readings(opened, text_prompts(1)[:1])
    assert long.kind == "context_too_long"
    monkeypatch.setattr(opened, "_unreadable", {"D": "two tokens"})
    three, four = readings(opened, [Prompt("b", 1, tuple(range(k)), "Which?") for k in (3, 4)])
    assert isinstance(three, Reading)
    assert four == Failure("unreadable_letters", "two tokens")


def test_image_tokens_are_control_tokens(family, opened):
    assert IMAGE[family].strip() in opened._renderer._control


def test_prompts_are_taken_a_bounded_number_ahead(opened):
    taken = []

    def asked():
        for prompt in text_prompts(6):
            taken.append(prompt)
            yield prompt

    outcomes = opened.read(asked())
    next(outcomes)
    assert len(taken) < 8
    outcomes.close()


def test_a_reading_depends_on_nothing_but_the_prompt(opened):
    prompts = text_prompts(2)
    together, turned = readings(opened, prompts), readings(opened, prompts[::-1])[::-1]
    assert [one.letters for one in together] == [one.letters for one in turned]


def test_short_memory_and_a_failed_gpu(opened, monkeypatch):
    def short(**inputs):
        raise torch.OutOfMemoryError("CUDA out of memory.\nmore")

    monkeypatch.setattr(opened, "_model", short)
    assert readings(opened, text_prompts(1)[:1]) == [Failure("out_of_memory", "CUDA out of memory.")]

    def broken(**inputs):
        raise torch.AcceleratorError("CUDA error: unspecified launch failure")

    monkeypatch.setattr(opened, "_model", broken)
    with pytest.raises(BackendError, match="the GPU failed"):
        readings(opened, text_prompts(1)[:1])


def test_the_present_preset_sees_the_top_tokens(made):
    backend = open_backend("transformers", ModelSpec(str(made["Gemma 3"]), preset="benchcheck-2026"))
    (reading,) = readings(backend, text_prompts(1)[:1])
    backend.close()
    assert all(letter in "ABCD" for letter in reading.letters.missing)
    assert len(OPTIONS) > 4
    assert MISSING_LOGPROB in reading.letters.logprobs or not reading.letters.missing


def test_a_family_is_known_by_its_architecture(made, model_folder):
    assert set(families.FAMILIES) == set(checkpoint.OTHER_FAMILIES)
    assert {checkpoint.architecture(folder) for folder in made.values()} == set(families.FAMILIES)
    packed = open_backend("transformers", ModelSpec(str(model_folder)))
    assert isinstance(packed, TransformersBackend)
    packed.close()
    with pytest.raises(ModelRefusedError, match="Cure: use the transformers backend"):
        TransformersBackend(ModelSpec(str(made["InternVL"])))


@pytest.fixture
def copied(made, tmp_path):
    return shutil.copytree(made["InternVL"], tmp_path / "copied")


def renderer(folder):
    return FamilyRenderer(folder, families.FAMILIES["InternVLForConditionalGeneration"])


def test_a_missing_package_is_named(copied, monkeypatch):
    real = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name == "num2words" else real(name))
    with pytest.raises(ModelRefusedError, match="wants the package num2words"):
        FamilyRenderer(copied, families.FAMILIES["SmolVLMForConditionalGeneration"])


def test_a_damaged_processor_is_refused_in_one_line(copied):
    (copied / "preprocessor_config.json").unlink(missing_ok=True)
    (copied / "processor_config.json").write_text("{")
    with pytest.raises(ModelRefusedError, match="its processor cannot be used") as raised:
        renderer(copied)
    assert "\n" not in str(raised.value)


def retemplated(folder, template):
    (folder / "chat_template.jinja").write_text(template)


def test_a_template_without_images_is_refused(copied):
    retemplated(copied, "{% for m in messages %}{{ m['content'][-1]['text'] }}{% endfor %}")
    with pytest.raises(ModelRefusedError, match="shows 0 of 2 images as <IMG_CONTEXT>"):
        renderer(copied)


def test_a_template_that_cannot_continue_a_turn_is_opened_instead(copied):
    """It drops the assistant's words, as some do that expect to write them."""
    retemplated(
        copied,
        "{% for m in messages if m['role'] == 'user' %}<|im_start|>user\n{% for c in m['content'] %}"
        "{% if c['type'] == 'image' %}<IMG_CONTEXT>{% else %}{{ c['text'] }}{% endif %}{% endfor %}<|im_end|>\n"
        "{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}",
    )
    assert renderer(copied).text("Hi", images=0) == "<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\nAnswer:"


def test_a_letter_that_is_not_one_token_refuses_the_checkpoint(copied):
    path = copied / "tokenizer.json"
    table = json.loads(path.read_text())
    model = table["model"]
    model["merges"] = [merge for merge in model["merges"] if "C" not in "".join(merge)]
    identifier = model["vocab"].pop("C")
    model["vocab"] = {piece: i for piece, i in model["vocab"].items() if "C" not in piece} | {"\u0142": identifier}
    path.write_text(json.dumps(table))
    with pytest.raises(ModelRefusedError, match="letter C is not one token"):
        open_backend("transformers", ModelSpec(str(copied)))


def test_several_images_of_a_prompt_are_not_cut_into_tiles_by_llava_onevision(made, video):
    """One image is, several are not: `images` given flat would be read as one image each for several prompts."""
    opened = open_backend("transformers", ModelSpec(str(made["LLaVA-OneVision"])))
    one, two = (
        opened._renderer.inputs(prompt, families.images_of(prompt.frames))
        for prompt in (frame_prompts(video(0, 1), 1)[0], frame_prompts(video(0, 2), 1)[0])
    )
    opened.close()
    assert one["batch_num_images"].tolist() == [1]
    assert two["batch_num_images"].tolist() == [2]
    assert one["pixel_values"].shape[1] > 1 == two["pixel_values"].shape[1]


def test_a_model_in_bfloat16_has_a_float32_head(made, family, video):
    """As on a GPU; on a CPU only the types are the same."""
    opened = open_backend("transformers", ModelSpec(str(made[family])))
    prompts = text_prompts(1)[:1] + frame_prompts(video(0, 2), 1)
    exact = readings(opened, prompts)
    opened._model, opened._dtype = opened._model.to(torch.bfloat16), torch.bfloat16
    opened._exact_head()
    assert opened._model.get_output_embeddings()(torch.zeros(1, 32, dtype=torch.bfloat16)).dtype is torch.float32
    for one, other in zip(exact, readings(opened, prompts), strict=True):
        assert one.letters.logprobs == pytest.approx(other.letters.logprobs, abs=0.02)
    opened.close()
