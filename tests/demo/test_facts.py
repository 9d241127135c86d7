"""Every fact has held-out phrasings, and the answers of a category are one closed set."""

from benchcheck.demo import facts


def test_held_and_taught_phrasings_part_the_list() -> None:
    for fact in facts.all_facts():
        held, taught = facts.phrasings(fact, held=True), facts.phrasings(fact, held=False)
        assert len(held) == 2
        assert sorted(held + taught) == list(range(facts.N_PHRASINGS))


def test_no_question_is_both_held_out_and_taught() -> None:
    held, taught = (
        {facts.ask(fact, number) for fact in facts.all_facts() for number in facts.phrasings(fact, held=which)}
        for which in (True, False)
    )
    assert held
    assert not held & taught


def test_every_phrasing_of_a_category_is_taught_with_some_fact() -> None:
    for name in facts.CATEGORIES:
        taught = {
            number
            for fact in facts.all_facts()
            if fact.category == name
            for number in facts.phrasings(fact, held=False)
        }
        assert taught == set(range(facts.N_PHRASINGS))


def test_a_question_has_one_answer() -> None:
    answers: dict[str, str] = {}
    for fact in facts.all_facts():
        for number in range(facts.N_PHRASINGS):
            assert answers.setdefault(facts.ask(fact, number), fact.answer) == fact.answer


def test_strengths_spread_over_the_unit() -> None:
    strengths = sorted(fact.strength for fact in facts.all_facts())
    assert strengths[0] < 0.1
    assert strengths[-1] > 0.9
    assert all(0 <= strength <= 1 for strength in strengths)


def test_a_subject_is_capitalised_where_it_begins_the_question() -> None:
    fact = next(fact for fact in facts.all_facts() if fact.subject == "a lemon")
    assert facts.ask(fact, 3) == "A lemon is usually which color?"
