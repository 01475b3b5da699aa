"""Sentence spans: the places of facts, citations and chunks."""

from unittest.mock import patch

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ras_agent.text.sentences import sentence_spans

TEXT = st.text(
    st.one_of(st.characters(), st.sampled_from(" \n.!?\"')]Aa1।。")), max_size=80
)


def sentences(text: str) -> list[str]:
    return [text[start:end] for start, end in sentence_spans(text)]


@given(TEXT)
def test_spans_are_ordered_disjoint_trimmed_and_in_range(text: str) -> None:
    end_before = 0
    for start, end in sentence_spans(text):
        assert end_before <= start < end <= len(text)
        assert text[start:end] == text[start:end].strip()
        end_before = end


@given(TEXT)
def test_spans_cover_every_character_that_is_not_white_space(text: str) -> None:
    assert "".join("".join(sentences(text)).split()) == "".join(text.split())


@given(TEXT, st.integers(1, 9))
def test_sentences_do_not_depend_on_the_stretches_in_which_their_ends_are_looked_for(
    text: str, stretch: int
) -> None:
    whole = sentence_spans(text)
    with patch("ras_agent.text.sentences._STRETCH", stretch):
        assert sentence_spans(text) == whole


def test_a_mark_before_a_capital_ends_a_sentence() -> None:
    assert sentences("He left. She stayed! Why? Nobody knows…") == [
        "He left.",
        "She stayed!",
        "Why?",
        "Nobody knows…",
    ]


def test_quotes_and_footnote_numbers_stay_with_their_sentence() -> None:
    assert sentences('"Go!" He went.[3] (It rained.) So?') == [
        '"Go!"',
        "He went.[3]",
        "(It rained.)",
        "So?",
    ]


@pytest.mark.parametrize(
    "text",
    [
        "J. K. Rowling wrote it.",
        "Dr. Who lives in St. Louis.",
        "It is No. 5 on p. 12.",
        "He was born c. 1900, on Sept. 4.",
        "The U.S. Army bought Apple Inc. shares.",
        "Yahoo! is a company.",
        "He said “Stop!” and left.",
        "Growth was 3.5 per cent.",
        "It was called What? & Co.",
    ],
)
def test_a_mark_inside_a_sentence_does_not_end_it(text: str) -> None:
    assert sentences(text) == [text]


def test_an_abbreviation_before_a_word_that_opens_sentences_ends_one() -> None:
    assert sentences("He left the U.S. He died in D.C. The end.") == [
        "He left the U.S.",
        "He died in D.C.",
        "The end.",
    ]


def test_an_abbreviation_that_needs_a_number_ends_a_sentence_without_one() -> None:
    assert sentences("She said no. Later came No. 5.") == [
        "She said no.",
        "Later came No. 5.",
    ]


def test_a_blank_line_ends_a_sentence_and_a_line_break_does_not() -> None:
    assert sentences("A title\n \nwrapped\nline") == ["A title", "wrapped\nline"]


@pytest.mark.parametrize(
    "sentences",
    [
        ["Bring these:", "- a lamp", "- two ropes"],
        ["1. Hold it.", "2. Let it go.", "3. Wait."],
        ["Staff.", "| Head of sales | Ann Ray |", "| Driver | Bo Lind |"],
    ],
)
def test_an_item_of_a_list_and_a_row_of_a_table_begin_a_sentence(
    sentences: list[str],
) -> None:
    text = "\n".join(sentences)
    assert [text[start:end] for start, end in sentence_spans(text)] == sentences


def test_emphasis_closes_a_sentence() -> None:
    text = "**How much is it?** It is free. *Nobody pays.* It lasts."
    assert [text[start:end] for start, end in sentence_spans(text)] == [
        "**How much is it?**",
        "It is free.",
        "*Nobody pays.*",
        "It lasts.",
    ]


def test_an_abbreviation_in_emphasis_and_a_cell_with_a_full_stop_end_none() -> None:
    assert sentences("He met *Mr.* Lee. See **No.** 5.") == [
        "He met *Mr.* Lee.",
        "See **No.** 5.",
    ]
    assert sentences("| No. 5 | 12. | Ann Ray |\n| No. 6 | 13. | Bo Lind |") == [
        "| No. 5 | 12. | Ann Ray |",
        "| No. 6 | 13. | Bo Lind |",
    ]
    assert sentences("There were 12. The rest left.") == [
        "There were 12.",
        "The rest left.",
    ]


def test_a_markdown_heading_is_a_sentence() -> None:
    text = "# Bell\nHe lived in Leeds\n## Life\nand in Bath. #1 is\n#hash"
    assert [text[start:end] for start, end in sentence_spans(text)] == [
        "# Bell",
        "He lived in Leeds",
        "## Life",
        "and in Bath.",
        "#1 is\n#hash",
    ]


def test_sentences_of_other_scripts_end_at_their_own_marks() -> None:
    assert sentences("東京は首都。人口は多い！") == ["東京は首都。", "人口は多い！"]
    assert sentences("यह नदी है। वह पर्वत है।") == ["यह नदी है।", "वह पर्वत है।"]
    assert sentences("أين النهر؟ هنا.") == ["أين النهر؟", "هنا."]
    assert sentences("თბილისი დიდია. ბათუმი ზღვაა.") == [
        "თბილისი დიდია.",
        "ბათუმი ზღვაა.",
    ]
    assert sentences("Τι είναι; Η Αθήνα; ναι.") == ["Τι είναι;", "Η Αθήνα; ναι."]
    assert sentences("約３．５メートル．終") == ["約３．５メートル．", "終"]


def test_what_never_ends_is_divided_between_words() -> None:
    text = "word " * 1000
    spans = sentence_spans(text)
    assert [end - start for start, end in spans] == [1999, 1999, 999]
    assert " ".join(text[start:end] for start, end in spans) == text.strip()


def test_a_word_that_never_ends_is_divided_too() -> None:
    assert sentence_spans("x" * 4500) == [(0, 2000), (2000, 4000), (4000, 4500)]


def test_a_run_of_end_marks_is_one_end() -> None:
    assert sentences("Wait... What?! Dots....7 go on. Yes.") == [
        "Wait...",
        "What?!",
        "Dots....7 go on.",
        "Yes.",
    ]


@pytest.mark.parametrize(
    "mark", [*".!?…؟۔।॥።։", *"。！？｡", *"\u17d4\u17d5\u104b\u0f0d\u0f0e．᠃᱾꧉᙮"]
)
def test_a_sentence_ends_at_the_marks_of_each_script(mark: str) -> None:
    assert sentence_spans(f"Ab{mark} Cd{mark}") == [(0, 3), (4, 7)]
