import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchcheck.backends.sharing import Asked, Sharing


def asked(ids, images=()):
    return Asked(np.array(ids, dtype=np.int64), tuple(images))


@given(st.lists(st.integers(0, 2), min_size=1), st.lists(st.integers(0, 2), min_size=1), st.integers(1, 5))
def test_whole_blocks_of_the_common_prefix_without_the_last_token(first, second, block):
    same = 0
    while same < min(len(first), len(second)) and first[same] == second[same]:
        same += 1
    found = asked(first).shared_with(asked(second), block)
    assert found == min(same, len(first) - 1) // block * block


def test_equal_tokens_of_another_image_are_not_shared():
    ids = [1, 2, 9, 9, 9, 9, 3, 9, 9, 9, 9, 4]
    one = asked(ids, [(2, "a"), (7, "b")])
    assert one.shared_with(asked(ids, [(2, "a"), (7, "b")]), 2) == 10
    assert one.shared_with(asked(ids, [(2, "a"), (7, "c")]), 2) == 6
    assert one.shared_with(asked(ids, [(2, "c"), (7, "b")]), 1) == 2


def test_neighbours_are_compared_and_sums_kept():
    sharing = Sharing(block=2)
    assert sharing.expect(asked([1, 2, 3, 4])) == 0
    assert sharing.expect(asked([1, 2, 3, 5])) == 2
    assert sharing.rate == 1.0
    sharing.count(4, 0, 0)
    sharing.count(4, 2, 4)
    assert (sharing.prompts, sharing.tokens, sharing.shareable, sharing.cached, sharing.missed) == (2, 8, 2, 4, 0)
    sharing.count(4, 2, 1)
    assert sharing.missed == 1
    assert sharing.rate == 0.75


@pytest.mark.parametrize(
    ("prompts", "expected", "cached", "noted"),
    [
        (200, 2000, 1990, False),
        (200, 2000, 400, True),  # what a full encoder cache does
        (10, 2000, 0, False),  # too few to judge
        (200, 100, 0, False),  # hardly anything to share
    ],
)
def test_an_engine_that_does_not_share_is_told_of(prompts, expected, cached, noted):
    sharing = Sharing(block=16)
    for _ in range(prompts):
        sharing.count(3767, expected, cached)
    note = sharing.note()
    assert (note is not None) == noted
    if noted:
        assert note.startswith("the engine used 20% of the tokens that neighbouring prompts share (80,000 cached, ")
        assert "Cure: " in note
