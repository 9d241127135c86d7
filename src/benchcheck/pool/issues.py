"""Issue codes: what can be wrong with an annotated item, each with what screening does about it (protocol 1).

A wrong file is an error; a wrong row is an item with issues. No row is dropped and no gold is guessed.
"""

from dataclasses import dataclass

__all__ = ["ISSUES", "Issue", "IssueCode", "blocking"]


@dataclass(frozen=True, slots=True)
class IssueCode:
    """One code. `blocks` says that an item with it is kept as `open` and never screened."""

    meaning: str
    blocks: bool


@dataclass(frozen=True, slots=True)
class Issue:
    """One thing that was found in one record: a code of `ISSUES` and the value that shows it."""

    code: str
    detail: str


ISSUES: dict[str, IssueCode] = {
    "no_options": IssueCode("The record has no options at all.", True),
    "unreadable_options": IssueCode("The options are not what the spec declares, or cannot be told apart.", True),
    "options_split": IssueCode("Some options lack the letters of the others: a text was split at its lines.", True),
    "options_glued": IssueCode("One option holds several lettered ones.", True),
    "single_option": IssueCode("Only one option is left once fillers are dropped: right for free.", True),
    "too_many_options": IssueCode("More than 26 options: there is no letter for the rest.", True),
    "empty_question": IssueCode("The question is missing or only white space.", True),
    "open_ended": IssueCode("The benchmark asks this one without options.", True),
    "hidden_gold": IssueCode("No gold: missing, empty, `NA` or -1, as in a hidden test set.", True),
    "gold_out_of_range": IssueCode("The gold is a letter or number outside the options.", True),
    "gold_not_among_options": IssueCode(
        "The gold is a text that equals no option, or no choice is marked right.", True
    ),
    "gold_matches_two_options": IssueCode("The gold is a text that equals two or more options.", True),
    "gold_ambiguous": IssueCode("The gold can be read in two ways that name different options.", True),
    "gold_is_filler": IssueCode("The gold names an option that is empty or a filler.", True),
    "several_gold": IssueCode("The gold names several options, or several choices are marked right.", True),
    "gold_is_order": IssueCode("The gold is an order of the options, not one of them.", True),
    "no_join_row": IssueCode("The second annotation file has no row for this record.", True),
    "bad_window": IssueCode("The time window is not readable, negative, or ends before it starts.", True),
    "erratum": IssueCode("A list of known errors names this item.", True),
    "index_text_contradict": IssueCode("The gold's text, given beside its index, equals another option.", False),
    "duplicate_options": IssueCode("Two options have the same text, case and white space aside.", False),
    "duplicate_gold": IssueCode("Another option has the gold's text: two right answers, one of them keyed.", False),
    "empty_option": IssueCode("An option without text stood among the others.", False),
    "non_string_option": IssueCode("An option is a list, a dict or a flag; it is shown as its JSON text.", False),
    "prefix_out_of_order": IssueCode("Options have letter prefixes, but not their positions'; kept as text.", False),
    "prefix_on_some": IssueCode("Most options carry their position's letter, some do not; kept as text.", False),
    "options_rejoined": IssueCode("Options that were split at line breaks were put together again.", False),
    "shuffled_options": IssueCode(
        "The file has the gold always in one place: the options were put in a drawn order.", False
    ),
    "option_about_options": IssueCode("An option speaks of the others, such as `all of the above`.", False),
    "abstention_option": IssueCode("An option is no answer, such as `not sure`.", False),
    "letter_like_option": IssueCode("An option is nothing but a letter that the prompt gives to an option.", False),
    "answer_in_question": IssueCode("The question holds the gold's words and those of no other option.", False),
    "needs_previous_item": IssueCode("The question refers to another question.", False),
    "media_placeholder": IssueCode("A text holds a tag in place of media, such as `<image 1>`.", False),
    "time_in_question": IssueCode("The question names a time in the video.", False),
    "speech_in_question": IssueCode("The question is about what is said.", False),
    "bad_text": IssueCode("A text holds control or invisible characters, or what could not be decoded.", False),
    "no_video": IssueCode("The record names no video: text steps run, frame steps wait.", False),
    "several_videos": IssueCode("The question is about several videos.", False),
    "frames_not_video": IssueCode("Frames were published in place of the video.", False),
    "no_window": IssueCode("The spec declares a time window, the record has none: the whole video is meant.", False),
    "window_out_of_range": IssueCode("The time window lies over a second beyond the video's stated duration.", False),
    "repeated_item": IssueCode("An earlier row has the same video, window, question, options and gold.", False),
    "other_gold": IssueCode("An earlier row is the same question with another gold: one of them is wrong.", False),
}
"""Every code, the blocking ones first. `docs/issue-codes.md` says the same; a test compares them."""


def blocking(code: str) -> bool:
    """Whether an item with this code is kept as `open`."""
    return ISSUES[code].blocks
