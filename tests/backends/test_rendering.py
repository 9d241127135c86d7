import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from benchcheck.backends.rendering import ControlTokenError, Renderer
from benchcheck.errors import ModelRefusedError
from benchcheck.screen.prompts import Prompt

pytestmark = pytest.mark.model


@pytest.fixture(scope="module")
def renderer(model_folder):
    return Renderer(model_folder)


def ask(text, frames=0):
    return Prompt("b_0", 1, (0, 1), text, tuple(f"{k}.jpg" for k in range(frames)))


def test_ids_are_those_of_the_models_own_processor(renderer, model_folder, video):
    """As Qwen3VLProcessor does it: the template's text with each placeholder repeated, then the tokenizer."""
    from transformers import AutoTokenizer
    from transformers.models.qwen2_vl.image_processing_pil_qwen2_vl import Qwen2VLImageProcessorPil

    tokenizer = AutoTokenizer.from_pretrained(model_folder)
    processor = Qwen2VLImageProcessorPil.from_pretrained(model_folder)
    frames = [path for number in range(4) for path in video(number, 1)]
    from PIL import Image

    grids = processor(images=[Image.open(path) for path in frames], return_tensors="np")["image_grid_thw"]
    content = [{"type": "image"} for _ in frames] + [{"type": "text", "text": "What is it?\nA. x"}]
    text = tokenizer.apply_chat_template(
        [{"role": "user", "content": content}], tokenize=False, add_generation_prompt=True
    )
    parts = (text + "Answer:").split("<|image_pad|>")
    expanded = parts[0]
    for grid, part in zip(grids, parts[1:], strict=True):
        expanded += "<|image_pad|>" * int(grid.prod() // processor.merge_size**2) + part
    expected = tokenizer(expanded)["input_ids"]
    sizes = [(int(h) // 2, int(w) // 2) for _, h, w in grids]
    rendered = renderer.render(ask("What is it?\nA. x", frames=4), sizes)
    assert rendered.ids.tolist() == expected
    image = tokenizer.convert_tokens_to_ids("<|image_pad|>")
    places = np.concatenate([np.arange(first, first + h * w) for first, h, w in rendered.images])
    assert np.flatnonzero(rendered.ids == image).tolist() == places.tolist()
    assert [size[1:] for size in rendered.images] == sizes


def test_text_ends_with_the_begun_answer(renderer):
    assert renderer.text("Which?", images=0).endswith("Which?<|im_end|>\n<|im_start|>assistant\nAnswer:")
    assert renderer.specimen.endswith("assistant\nAnswer:")


@pytest.mark.parametrize("token", ["<|image_pad|>", "<|im_end|>", "<|im_start|>", "<|video_pad|>", "<|endoftext|>"])
def test_a_question_that_holds_a_control_token_is_refused(renderer, token):
    with pytest.raises(ControlTokenError, match=re.escape(token)):
        renderer.render(ask(f"What does {token} mean?", frames=1), [(1, 1)])


def test_vocabulary_is_decoded_token_by_token(renderer):
    tokens = renderer.vocabulary()
    (letter,) = renderer.tokenize(" A")
    assert tokens[letter] == " A"


@pytest.mark.parametrize("template", ["{% for %}", "{{ raise_exception('only texts') }}", "{{ messages[9].role }}"])
def test_a_template_that_fails_is_refused(damaged, template):
    (damaged / "chat_template.jinja").write_text(template)
    with pytest.raises(ModelRefusedError, match=r"the chat template cannot be used \(.*Cure: fetch"):
        Renderer(damaged)


def test_a_template_without_images_is_refused(damaged):
    (damaged / "chat_template.jinja").write_text("{{ messages[0]['content'][-1]['text'] }}")
    with pytest.raises(ModelRefusedError, match=r"the chat template shows 0 of 2 images as <\|image_pad\|>"):
        Renderer(damaged)


def test_a_tokenizer_that_cannot_be_read_is_refused_in_one_line(damaged):
    (damaged / "tokenizer.json").write_text('{"model": 3}')
    with pytest.raises(ModelRefusedError, match="the tokenizer cannot be loaded") as raised:
        Renderer(damaged)
    assert "\n" not in str(raised.value)


@settings(deadline=None, max_examples=100)
@given(st.text(max_size=40), st.integers(0, 3))
def test_the_template_is_not_run_for_every_prompt_and_gives_the_same(renderer, text, images):
    content = [{"type": "image"} for _ in range(images)] + [{"type": "text", "text": text}]
    turns = [{"role": "user", "content": content}]
    want = renderer._tokenizer.apply_chat_template(turns, tokenize=False, add_generation_prompt=True) + "Answer:"
    assert renderer.text(text, images=images) == want


def test_a_template_that_changes_the_text_is_run_for_every_prompt(damaged):
    path = damaged / "chat_template.jinja"
    template = path.read_text()
    assert "['text']" in template
    path.write_text(template.replace("['text']", "['text'] | trim"))
    renderer = Renderer(damaged)
    assert "user\na  b<|im_end|>" in renderer.text("  a  b \n", images=0)


def test_many_prompts_are_rendered_as_one_by_one(renderer):
    prompts = [Prompt(f"p{n}", 3, (0, 1), f"What is {n}?", ("f",) * n) for n in range(4)]
    sizes = [[(n + 1, 2)] * n for n in range(4)]
    together = renderer.render_all(prompts, sizes)
    for prompt, size, one in zip(prompts, sizes, together, strict=True):
        alone = renderer.render(prompt, size)
        assert one.ids.tolist() == alone.ids.tolist()
        assert one.images == alone.images
    assert renderer.render_all([], []) == []
    assert together[2].ids.tolist().count(renderer.image_token) == 2 * 6
