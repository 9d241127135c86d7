"""The session against a stand-in for the engine: order, bounds, failures of one prompt and of all."""

import queue
import threading
from collections import Counter
from itertools import count
from types import SimpleNamespace

import numpy as np
import pytest

from benchcheck.backends import vllm_session
from benchcheck.backends.decoding import Decoded, FramePatches, Lost
from benchcheck.backends.letters import unreadable_letters, variants_of_letters
from benchcheck.backends.queries import Queries
from benchcheck.backends.rendering import Renderer
from benchcheck.backends.sharing import Sharing
from benchcheck.backends.vllm_engine import Answered
from benchcheck.backends.vllm_inputs import Frames
from benchcheck.backends.vllm_session import Limits, Session
from benchcheck.errors import BackendError
from benchcheck.screen.prompts import INTROS, Prompt, option_orders, render_text
from benchcheck.screen.readings import Failure, Reading
from benchcheck.screen.steps import Sight

pytestmark = pytest.mark.model
torch = pytest.importorskip("torch")
OPTIONS = ["a red ball", "a green box", "blue", "two dogs", "nothing"]


@pytest.fixture(scope="module")
def renderer(model_folder):
    return Renderer(model_folder)


class StandInCore:
    """An engine that answers what it is asked at once, or as `behave` says."""

    def __init__(self, events, max_tokens=2000, images=4):
        self.events, self.max_tokens = events, max_tokens
        self.plan = SimpleNamespace(images=images)
        self.sent, self.aborted = [], []
        self.behave = lambda name, ids: [Answered(name, dict.fromkeys(ids or range(30), -2.0), 16)]
        self.refuse = None
        self.dead = False

    def text(self, ids):
        return ids

    def add(self, name, prompt, ids):
        if self.refuse:
            return self.refuse
        self.sent.append((name, prompt))
        answers = self.behave(name, ids)
        if answers:
            self.events.put(answers)
        return None

    def check(self):
        if self.dead:
            raise BackendError("vLLM's engine stopped")

    def abort(self, names):
        self.aborted += names


class StandInDecoders:
    """Decodes at once, two patches a frame; what has `bad` in its name is lost."""

    def __init__(self, events):
        self.events, self.submitted, self.released = events, [], []
        self.hold = False

    def submit(self, key, paths):
        self.submitted.append(paths)
        if self.hold:
            return
        if any("bad" in path for path in paths):
            self.events.put(Lost(key, "undecodable_frames", f"{paths[0]}: no image"))
            return
        frames = tuple(FramePatches(2, 4, f"digest of {path}") for path in paths)
        self.events.put(Decoded(key, frames, np.full((8 * len(paths), 768), len(paths), np.uint8), 0))

    def release(self, decoded):
        self.released.append(decoded.key)


class StandInRoute:
    """Frames of 1 x 2 tokens."""

    def frames(self, paths, frames, patches):
        digests = {path: frame.digest for path, frame in zip(paths, frames, strict=True)}
        return Frames(digests, dict.fromkeys(paths, (1, 2)), dict.fromkeys(paths, patches))

    def prompt(self, rendered, paths, made):
        return (rendered.ids.tolist(), tuple(made.digests[path] for path in paths))


@pytest.fixture
def desk(renderer):
    tokens = renderer.vocabulary()
    variants = variants_of_letters(tokens)
    events = queue.SimpleQueue()
    numbers = count()
    return SimpleNamespace(
        core=StandInCore(events),
        decoders=StandInDecoders(events),
        events=events,
        limits=Limits(prompts=100, videos=3, timeout_s=30.0),
        queries=Queries("exact", tokens, variants),
        renderer=renderer,
        route=StandInRoute(),
        sharing=Sharing(16),
        unreadable=unreadable_letters(renderer.specimen, renderer.tokenize, variants),
        number=lambda: next(numbers),
    )


def text_prompts(items=3, k=4):
    return [
        Prompt(f"t{i}", 1, order, render_text(INTROS[Sight.BLIND], f"What is {i}?", [OPTIONS[j] for j in order]))
        for i in range(items)
        for order in option_orders(f"t{i}", k)
    ]


def frame_prompts(name, frames=2, questions=3):
    paths = tuple(f"{name}_{k}.jpg" for k in range(frames))
    return [
        Prompt(f"{name}{q}", 3, (0, 1, 2, 3), render_text(INTROS[Sight.FRAMES], f"{q}?", OPTIONS[:4]), paths)
        for q in range(questions)
    ]


def read(desk, prompts):
    outcomes = list(Session(desk, prompts).outcomes())
    assert Counter(outcome.index for outcome in outcomes) == Counter(range(len(outcomes)))
    return {outcome.index: outcome.result for outcome in outcomes}


def test_text_prompts_are_sent_in_order_and_read(desk):
    prompts = text_prompts(40)
    found = read(desk, prompts)
    assert len(found) == 160
    assert all(isinstance(result, Reading) for result in found.values())
    sent = [ids for _, ids in desk.core.sent]
    assert sent == [desk.renderer.render(prompt, ()).ids.tolist() for prompt in prompts]
    assert found[3].prompt_tokens == len(sent[3])
    assert found[3].cached_tokens == 16
    assert desk.sharing.prompts == 160
    assert desk.sharing.shareable > 0


def test_prompts_are_taken_a_bounded_number_ahead_and_in_the_thread_that_asks(desk):
    desk.limits = Limits(prompts=10, videos=3, timeout_s=30.0)
    taken, threads = [], set()

    def source():
        for prompt in text_prompts(10):
            taken.append(prompt)
            threads.add(threading.current_thread())
            yield prompt

    outcomes = Session(desk, source()).outcomes()
    assert taken == []
    for answered in range(1, 41):
        next(outcomes)
        assert len(taken) <= answered + 20  # 10 at the engine, 10 answered and not handed out
    assert threads == {threading.main_thread()}
    assert next(outcomes, None) is None


def test_a_video_is_decoded_once_for_neighbours_also_in_another_order(desk):
    a, b = frame_prompts("a"), frame_prompts("b")
    turned = Prompt("a9", 5, a[0].order, a[0].text, a[0].frames[::-1])
    found = read(desk, [*a, turned, *b, a[0]])
    assert all(isinstance(result, Reading) for result in found.values())
    assert desk.decoders.submitted == [a[0].frames, b[0].frames, a[0].frames]
    assert len(desk.decoders.released) == 3
    sent = {name: prompt[1] for name, prompt in desk.core.sent}
    assert ("digest of a_1.jpg", "digest of a_0.jpg") in sent.values()
    ids = desk.core.sent[0][1][0]
    assert ids.count(desk.renderer.image_token) == 4


@pytest.mark.parametrize("limit", [1, 2])
def test_no_more_videos_than_allowed_are_under_way(desk, limit):
    desk.limits = Limits(prompts=100, videos=limit, timeout_s=30.0)
    prompts = [prompt for name in "abcdef" for prompt in frame_prompts(name)]
    outcomes = Session(desk, prompts).outcomes()
    next(outcomes)
    assert len(desk.decoders.submitted) <= 2 * limit  # so many answered and not handed out, so many under way
    assert len(list(outcomes)) == 17
    assert len(desk.decoders.submitted) == 6


def test_a_video_that_cannot_be_read_fails_its_prompts_only(desk):
    found = read(desk, [*frame_prompts("bad"), *frame_prompts("b"), *frame_prompts("bad2", questions=1)])
    lost = [index for index, result in found.items() if isinstance(result, Failure)]
    assert sorted(lost) == [0, 1, 2, 6]
    assert found[0] == Failure("undecodable_frames", "bad_0.jpg: no image")


def test_a_prompt_that_comes_after_its_video_failed_fails_too(desk):
    desk.limits = Limits(prompts=1, videos=2, timeout_s=30.0)
    found = read(desk, frame_prompts("bad"))
    assert {result.kind for result in found.values()} == {"undecodable_frames"}
    assert desk.decoders.submitted == [("bad_0.jpg", "bad_1.jpg")]


def test_what_cannot_be_asked_fails_alone(desk):
    desk.core.max_tokens = 150
    fine = text_prompts(1)[0]
    long = Prompt("long", 1, fine.order, fine.text * 9)
    control = Prompt("control", 1, fine.order, fine.text + "<|im_end|>")
    found = read(desk, [long, control, fine])
    assert found[0].kind == "context_too_long"
    assert found[0].detail.endswith("tokens; the model takes 150")
    assert found[1].kind == "control_token_in_text"
    assert isinstance(found[2], Reading)


def test_letters_without_a_token_fail_their_prompts(desk):
    desk.unreadable = {"D": "' D' after the prompt is 2 tokens"}
    found = read(desk, [*text_prompts(1, k=4), *text_prompts(1, k=3)])
    assert found[0] == Failure("unreadable_letters", "' D' after the prompt is 2 tokens")
    assert isinstance(found[4], Reading)


def test_a_refused_or_failed_request_is_a_failure_of_its_prompt(desk):
    desk.core.behave = lambda name, ids: [Answered(name, {}, 0, "no log-probabilities (finish reason error)")]
    assert read(desk, text_prompts(1))[0] == Failure("engine_error", "no log-probabilities (finish reason error)")
    desk.core.behave = lambda name, ids: [Answered(name, {ids[0]: -1.0}, 0)]
    assert read(desk, text_prompts(1))[0].kind == "letters_not_returned"
    desk.core.refuse = "prompt has 3 images, at most 2 are allowed"
    assert read(desk, text_prompts(1))[0] == Failure("refused_by_engine", desk.core.refuse)


def test_letters_that_need_two_requests_are_one_outcome(desk):
    desk.queries = Queries("exact", [], {letter: tuple(range(9)) for letter in "ABCDEFGHIJKLMNOPQRSTUVWXYZ"})
    desk.unreadable = {}
    prompt = Prompt("many", 1, tuple(range(26)), "x")
    found = read(desk, [prompt])
    assert [name for name, _ in desk.core.sent] == ["0.0", "0.1"]
    assert isinstance(found[0], Reading)


def test_more_frames_than_the_engine_was_opened_for_is_a_mistake_of_ours(desk):
    with pytest.raises(BackendError, match="a prompt shows 5 frames and the engine was opened for 4"):
        read(desk, frame_prompts("a", frames=5))


def test_a_dead_engine_is_told_while_waiting(desk, monkeypatch):
    monkeypatch.setattr(vllm_session, "_LOOK_S", 0.01)
    desk.core.behave = lambda name, ids: []
    desk.core.dead = True
    with pytest.raises(BackendError, match="vLLM's engine stopped"):
        read(desk, text_prompts())
    assert sorted(desk.core.aborted) == sorted(name for name, _ in desk.core.sent)


def test_an_engine_that_says_nothing_has_hung(desk, monkeypatch):
    monkeypatch.setattr(vllm_session, "_LOOK_S", 0.01)
    desk.limits = Limits(prompts=100, videos=3, timeout_s=0.05)
    desk.core.behave = lambda name, ids: []
    with pytest.raises(BackendError, match="gave no answer for 0 s"):
        read(desk, text_prompts())


def test_an_error_event_ends_the_read(desk):
    desk.core.behave = lambda name, ids: desk.events.put(BackendError("no memory for decoded frames"))
    with pytest.raises(BackendError, match="no memory"):
        read(desk, text_prompts())


def test_what_a_given_up_read_left_behind_means_nothing_to_the_next(desk):
    desk.core.behave = lambda name, ids: []
    desk.decoders.hold = True
    monitored = Session(desk, [*text_prompts(1), *frame_prompts("a")])
    outcomes = monitored.outcomes()
    desk.events.put([])
    desk.events.put(BackendError("stop"))
    with pytest.raises(BackendError):
        next(outcomes)
    left = [name for name, _ in desk.core.sent]
    assert sorted(desk.core.aborted) == sorted(left)
    # Its answers and its video come late.
    desk.events.put([Answered(name, {}, 0, "aborted") for name in left])
    frames = (FramePatches(2, 4, "x"), FramePatches(2, 4, "y"))
    desk.events.put(Decoded(4, frames, np.zeros((16, 768), np.uint8), 0))
    desk.events.put(Lost(5, "undecodable_frames", "late"))
    desk.decoders.hold = False
    desk.core.behave = StandInCore(desk.events).behave
    found = read(desk, [*text_prompts(1), *frame_prompts("a")])
    assert all(isinstance(result, Reading) for result in found.values())
    assert desk.decoders.released[0] == 4
