"""What cannot be an answer by its form is not offered as one."""

import pytest

from ras_agent.question_graph import QuestionGraph
from ras_agent.records import Passage
from ras_agent.tools.offline.answerer.answer import OfflineAnswerer, unheard_names
from ras_agent.tools.offline.answerer.rank import fitting
from ras_agent.tools.offline.question import analyse
from ras_agent.tools.offline.reading import read

TEXT = "Lena Frost, born on 4 May 1950, taught at Ulm University and had three children."


def fit(question: str, text: str = TEXT) -> set[str]:
    (sentence,) = read([Passage("p", text, "Lena Frost")])[0].sentences
    mentions = sentence.mentions
    texts = [text[mention.start : mention.end] for mention in mentions]
    allowed = fitting(analyse(question), texts, [sentence] * len(texts), mentions)
    return {one for one, fits in zip(texts, allowed, strict=True) if fits}


def test_a_date_answers_when() -> None:
    assert fit("When was Lena Frost born?") == {"4 May 1950", "1950"}


def test_a_name_is_no_date_and_no_number() -> None:
    assert {"Lena Frost", "Ulm University"} <= fit("Who taught at Ulm University?")
    assert "4 May 1950" not in fit("Who taught at Ulm University?")


def test_a_count_holds_a_number_where_the_counted_is_spoken_of() -> None:
    assert "three" in fit("How many children did Lena Frost have?")
    assert "4 May 1950" not in fit("How many children did Lena Frost have?")
    assert fit("How many dogs did Lena Frost have?") == set()


def test_a_title_that_looks_like_a_year_names_a_work() -> None:
    (sentence,) = read([Passage("p", "It is a novel.", "1984")])[0].sentences
    assert fitting(analyse("Which novel did he write?"), ["1984"], [sentence], [None]).tolist() == [True]


def test_a_question_that_tells_no_type_takes_anything() -> None:
    assert "4 May 1950" in fit("What is known of Lena Frost?")


def test_a_name_that_no_passage_holds_is_unheard() -> None:
    passages = [Passage("p", TEXT, "Lena Frost")]
    question = "In what year did Lena Frost visit Japan?"
    assert unheard_names(question, read(passages)) == ["Japan"]


@pytest.mark.parametrize("question", ["In what year did Lena Frost visit Japan?", "How many dogs did Lena Frost have?"])
def test_the_offline_answerer_does_not_know_what_the_passages_do_not_say(question: str) -> None:
    passages = [Passage("p", TEXT, "Lena Frost")]
    assert OfflineAnswerer().answer(question, QuestionGraph(), passages, ()).abstained
    assert not OfflineAnswerer(may_abstain=False).answer(question, QuestionGraph(), passages, ()).abstained
