from dataclasses import dataclass

import av.logging
import pytest

from benchcheck.video.decoding.heard import Care, complaint, heard, level_of


@dataclass
class Packet:
    is_keyframe: bool = False
    is_corrupt: bool = False


KEY, OTHER, TORN = Packet(is_keyframe=True), Packet(), Packet(is_corrupt=True)


def test_damage_lasts_until_the_next_key_frame() -> None:
    care, tainted = Care(rigid=False), []
    for packet, words in ((KEY, ""), (OTHER, ""), (OTHER, "frame num gap"), (OTHER, ""), (KEY, ""), (OTHER, "")):
        assert care.judge(packet, words) == words
        tainted.append(care.tainted)
    assert tainted == [False, False, True, True, False, False]


def test_a_damaged_key_frame_is_no_new_start() -> None:
    care = Care(rigid=False)
    care.judge(KEY, "")
    assert care.judge(KEY, "error while decoding MB 1 2") != ""
    assert care.judge(OTHER, "") == ""
    assert care.tainted
    assert care.judge(TORN, "") == "a packet is incomplete"


@pytest.mark.parametrize(("rigid", "told"), [(True, "the first key frame is missing"), (False, "")])
def test_what_comes_before_the_first_key_frame(rigid: bool, told: str) -> None:
    care = Care(rigid)
    assert care.judge(OTHER, "could not find ref with POC 4") == told
    assert care.judge(KEY, "frame num gap 0 5") == "", "what it refers to was never there"
    assert not care.tainted


def test_only_words_of_damage_are_complaints() -> None:
    said = [(16, "h264", "SEI type 5 size 64 truncated\n"), (48, "h264", "Frame num gap 5 3\n")]
    assert complaint(said) == "Frame num gap 5 3"
    assert complaint(said[:1]) == complaint([]) == ""


def test_nothing_is_heard_outside_and_the_levels_are_put_back(capfd: pytest.CaptureFixture[str]) -> None:
    before = av.logging.get_level(), av.logging.get_skip_repeated()
    with heard() as told:
        av.logging.log(av.logging.ERROR, "test", "twice")
        av.logging.log(av.logging.ERROR, "test", "twice")
    assert [words for _, _, words in told] == ["twice", "twice"]
    assert (av.logging.get_level(), av.logging.get_skip_repeated()) == before
    av.logging.log(av.logging.ERROR, "test", "outside")
    assert capfd.readouterr() == ("", "")
    assert level_of("h264") > level_of("hevc")
