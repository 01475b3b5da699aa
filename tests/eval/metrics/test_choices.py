"""Which option, verdict or class a free-text answer chooses: cases worked out by hand."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ras_agent.eval.metrics.choices import chosen_class, chosen_label, stated_verdict

CHOICES = {"A": "wind", "B": "a stream", "C": "steam", "D": "a wind and a stream"}


@pytest.mark.parametrize(
    ("answer", "label"),
    [
        ("B", "B"),
        (" (b) ", "B"),
        ("B.", "B"),
        ("B. a stream", "B"),
        ("B) because water runs", "B"),
        ("Answer: C", "C"),
        ("**Answer:** C", "C"),
        ("The answer is B.", "B"),
        ("The correct answer is: option C, since water boils.", "C"),
        ("Option D", "D"),
        ("I think that the answer is (A).", "A"),
        ("A stream", "B"),
        ("Steam turns it.", "C"),
        ("A wind and a stream", "D"),
        ("B - a stream", "B"),
        ("", ""),
        ("None of them", ""),
        ("E", ""),
        ("wind or steam", ""),
        ("Either option A or option B", ""),
    ],
)
def test_an_answer_chooses_an_option(answer: str, label: str) -> None:
    assert chosen_label(answer, CHOICES) == label


def test_an_article_is_no_option() -> None:
    assert chosen_label("A mill needs steam", CHOICES) == "C"


def test_without_options_nothing_is_chosen() -> None:
    assert chosen_label("A", {}) == ""


def test_labels_may_be_numbers() -> None:
    assert chosen_label("12", {"1": "x", "12": "y"}) == "12"
    assert chosen_label("1) x", {"1": "x", "12": "y"}) == "1"


OPTIONS = st.dictionaries(
    st.sampled_from("ABCDE"), st.text("kmpt", min_size=3, max_size=6), min_size=2
).filter(lambda options: len(set(options.values())) == len(options))


@settings(max_examples=200, derandomize=True, deadline=None)
@given(OPTIONS, st.data())
def test_a_label_or_a_whole_text_chooses_its_option(
    options: dict[str, str], data: st.DataObject
) -> None:
    label = data.draw(st.sampled_from(sorted(options)))
    for answer in (
        label,
        f"({label})",
        f"{label}. {options[label]}",
        f"Answer: {label}",
        options[label].upper(),
    ):
        assert chosen_label(answer, options) == label


@pytest.mark.parametrize(
    ("answer", "verdict"),
    [
        ("true", "true"),
        ("True.", "true"),
        ("No", "false"),
        ("Yes, it is.", "true"),
        ("The statement is false.", "false"),
        ("This is not true.", "false"),
        ("It isn't entirely correct", "false"),
        ("not false", "true"),
        ("untrue", "false"),
        ("True, although some say false.", "true"),
        ("Answer: FALSE", "false"),
        ("It may be true or false.", ""),
        ("SUPPORTS", "true"),
        ("The evidence refutes it.", "false"),
        ("Nobody knows", ""),
        ("", ""),
    ],
)
def test_an_answer_states_a_verdict(answer: str, verdict: str) -> None:
    assert stated_verdict(answer) == verdict


def test_the_first_class_mentioned_is_chosen() -> None:
    classes = ("support", "counter")
    assert chosen_class("They Counter each other, not support.", classes) == "counter"
    assert chosen_class("Supports", classes) == "support"
    assert chosen_class("neither", classes) == ""
    assert chosen_class("support", ()) == ""
