import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchcheck.backends.packed import (
    ancestors,
    image_symbols,
    is_image,
    layout_of,
    mrope_positions,
    pack,
    plan_batches,
    plan_rows,
    shared_length,
    split_symbol,
)

# Few symbols and short prompts, so that shared beginnings, equal prompts and prompts within prompts are common.
symbols = st.one_of(st.integers(0, 2), st.integers(-3, -1))
prompts = st.lists(st.lists(symbols, min_size=1, max_size=8), min_size=1, max_size=8).map(
    lambda rows: [np.array(row, dtype=np.int64) for row in rows]
)


@given(prompts)
def test_every_prompt_can_be_read_back_from_its_path(given_prompts):
    tree = pack(given_prompts)
    for prompt, path, leaf in zip(given_prompts, tree.paths, tree.leaves, strict=True):
        assert tree.symbols[path].tolist() == prompt.tolist()
        assert path[-1] == leaf
        assert (np.diff(path) > 0).all()


@given(prompts)
def test_a_node_stands_for_one_beginning_and_each_beginning_for_one_node(given_prompts):
    tree = pack(given_prompts)
    beginnings = {tuple(prompt[: n + 1].tolist()) for prompt in given_prompts for n in range(len(prompt))}
    assert len(tree.symbols) == len(beginnings) == len(tree.post)


@given(prompts)
def test_mask_is_the_relation_of_ancestors(given_prompts):
    tree = pack(given_prompts)
    expected = np.zeros((len(tree.symbols),) * 2, dtype=bool)
    for path in tree.paths:
        for depth, node in enumerate(path):
            expected[node, path[: depth + 1]] = True
    assert (ancestors(np.arange(len(tree.post)), tree.post) == expected).all()


@given(prompts, st.randoms(use_true_random=False))
def test_order_of_prompts_changes_the_tree_in_no_way_but_its_paths(given_prompts, random):
    shuffled = random.sample(range(len(given_prompts)), len(given_prompts))
    one, other = pack(given_prompts), pack([given_prompts[i] for i in shuffled])
    assert one.symbols.tolist() == other.symbols.tolist()
    assert one.post.tolist() == other.post.tolist()
    for place, i in enumerate(shuffled):
        assert one.paths[i].tolist() == other.paths[place].tolist()


def test_orders_of_an_item_share_their_question():
    tree = pack([np.array([1, 2, 3, 7, 8]), np.array([1, 2, 3, 8, 7])])
    assert len(tree.symbols) == 7
    assert shared_length(np.array([1, 2]), np.array([1, 2, 3])) == 2


@given(st.integers(0, 10_000), st.integers(1, 500))
def test_image_symbols_are_negative_and_come_apart_again(number, count):
    made = image_symbols(number, count)
    numbers, cells = split_symbol(made)
    assert is_image(made).all()
    assert set(numbers.tolist()) == {number}
    assert cells.tolist() == list(range(count))


def test_images_of_two_frames_share_no_symbol():
    assert not set(image_symbols(0, 9).tolist()) & set(image_symbols(1, 9).tolist())


def test_positions_of_text_count_up_on_all_axes():
    assert mrope_positions(3, []).tolist() == [[0, 1, 2]] * 3


def test_positions_of_an_image_stand_still_in_time_and_go_on_behind_the_longer_side():
    time, height, width = mrope_positions(9, [(1, 2, 3)]).tolist()
    assert time == [0, 1, 1, 1, 1, 1, 1, 4, 5]
    assert height == [0, 1, 1, 1, 2, 2, 2, 4, 5]
    assert width == [0, 1, 2, 3, 1, 2, 3, 4, 5]


@given(prompts, st.integers(1, 20))
def test_rows_keep_every_prompt_in_order_and_their_bounds(given_prompts, row_tokens):
    rows = plan_rows(given_prompts, row_tokens)
    assert [i for row in rows for i in row] == list(range(len(given_prompts)))
    for row in rows:
        nodes = len(pack([given_prompts[i] for i in row]).symbols)
        longest = len(given_prompts[row[0]])
        assert nodes <= max(row_tokens, 2 * longest)


def test_a_question_on_the_same_frames_joins_a_row_that_is_full():
    frames = list(range(100, 200))
    questions = [np.array([*frames, n]) for n in range(3)]
    assert plan_rows(questions, 50) == [[0, 1, 2]]
    assert plan_rows([np.arange(40), np.arange(1, 41)], 50) == [[0], [1]]
    assert plan_rows([], 50) == []


@given(st.lists(st.integers(1, 300), max_size=12), st.integers(1, 400))
def test_batches_hold_every_row_once_within_the_budget(lengths, tokens):
    batches = plan_batches(lengths, tokens)
    assert sorted(i for batch in batches for i in batch) == list(range(len(lengths)))
    for batch in batches:
        widest = max(lengths[i] for i in batch)
        assert len(batch) == 1 or len(batch) * widest <= tokens


@pytest.mark.parametrize(("lengths", "expected"), [([5, 9, 5], [[1], [0, 2]]), ([20, 1], [[0], [1]])])
def test_rows_of_like_length_run_together(lengths, expected):
    assert plan_batches(lengths, 10) == expected


@given(st.lists(st.lists(st.lists(st.integers(0, 2), min_size=1, max_size=6), min_size=1, max_size=6), min_size=1))
def test_a_layout_shows_every_node_its_own_path(forest):
    trees = [pack([np.array(prompt, dtype=np.int64) for prompt in prompts]) for prompts in forest]
    layout = layout_of(trees)
    nodes = sum(len(tree.symbols) for tree in trees)
    assert (layout.query_ends[-1], layout.key_ends[-1]) == (nodes, len(layout.keys))
    seen = {}
    for n in range(len(layout.query_ends) - 1):
        queries = range(*layout.query_ends[n : n + 2])
        keys = layout.keys[slice(*layout.key_ends[n : n + 2])].tolist()
        assert 0 < len(queries) <= min(layout.longest_query, len(keys))
        assert len(keys) <= layout.longest_key
        for back, query in enumerate(reversed(queries)):
            seen[query] = keys[: len(keys) - back]
    start = 0
    for tree in trees:
        for path in tree.paths:
            for depth, node in enumerate(path):
                assert seen[start + node] == (start + path[: depth + 1]).tolist()
        start += len(tree.symbols)
    assert sorted(seen) == list(range(nodes))
