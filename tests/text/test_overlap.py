"""The sentence that says a thing, in any language."""

from ras_agent.text.overlap import best_sentence, sentences_of


def quoted(text: str, *phrases: str) -> str | None:
    sentence, _ = best_sentence(sentences_of(text), phrases)
    return text[sentence.start : sentence.end] if sentence else None


def test_a_phrase_found_whole_counts_more_than_its_words_apart() -> None:
    assert (
        quoted("New Jersey is near York. New York is a city.", "New York")
        == "New York is a city."
    )


def test_more_phrases_count_more() -> None:
    assert (
        quoted(
            "Bell moved. Bell was born in Edinburgh.", "Bell", "born in", "Edinburgh"
        )
        == "Bell was born in Edinburgh."
    )


def test_articles_case_and_punctuation_do_not_matter() -> None:
    assert (
        quoted("It rained. THE BEATLES' drummer left.", "the Beatles")
        == "THE BEATLES' drummer left."
    )


def test_scripts_without_spaces_are_searched_inside() -> None:
    assert quoted("他住在加拿大。贝尔出生于爱丁堡。", "爱丁堡") == "贝尔出生于爱丁堡。"


def test_the_first_of_equals_wins() -> None:
    assert quoted("Bell sang. Bell danced.", "Bell") == "Bell sang."


def test_nothing_in_common_is_nothing() -> None:
    assert quoted("Bell sang.", "xylophone", "") is None
    assert quoted("", "Bell") is None
