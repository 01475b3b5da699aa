"""A nested question is answered from the inside out, with the evidence of every link."""

from collections.abc import Mapping, Sequence

from ras_agent.question_graph import QuestionGraph
from ras_agent.records import Answer, Citation, Passage
from ras_agent.tools.offline.answerer.chain import ChainAnswerer

QUESTION = "In which city was the inventor of the telephone born?"
INVENTOR = "Who is the inventor of the telephone?"
PASSAGES = [
    Passage("telephone", "Bell made the telephone."),
    Passage("bell", "Bell, of the telephone."),
    Passage("p", ""),
]
PLAIN = "In which city was Bell, the inventor of the telephone, born?"


class Known:
    """Answers what it was told with one citation each, abstains from everything else."""

    def __init__(self, answers: Mapping[str, tuple[str, str]], confidence: float = 1.0) -> None:
        self.answers, self.confidence = answers, confidence

    def answer(self, question: str, graph: QuestionGraph, passages: Sequence[Passage]) -> Answer:
        if question not in self.answers:
            return Answer(f"unknown: {question}", abstained=True)
        text, passage_id = self.answers[question]
        return Answer(text, (Citation(1, passage_id),), confidence=self.confidence)


def _answer(answers: Mapping[str, tuple[str, str]], confidence: float = 1.0) -> Answer:
    return ChainAnswerer(Known(answers, confidence)).answer(QUESTION, QuestionGraph(), PASSAGES)


def test_every_link_is_cited_before_the_answer() -> None:
    answer = _answer({INVENTOR: ("Bell", "telephone"), PLAIN: ("Edinburgh", "bell")})
    assert answer.text == "Edinburgh"
    assert [(cited.number, cited.passage_id) for cited in answer.citations] == [(1, "telephone"), (2, "bell")]


def test_evidence_of_two_links_is_cited_once() -> None:
    answer = _answer({INVENTOR: ("Bell", "bell"), PLAIN: ("Edinburgh", "bell")})
    assert [(cited.number, cited.passage_id) for cited in answer.citations] == [(1, "bell")]


def test_an_open_link_leaves_the_question_as_it_was_asked() -> None:
    assert _answer({QUESTION: ("Boston", "p")}).text == "Boston"


def test_an_unsure_name_is_not_built_on() -> None:
    known = {INVENTOR: ("Bell", "telephone"), PLAIN: ("Edinburgh", "bell"), QUESTION: ("Boston", "p")}
    assert _answer(known, confidence=0.1).text == "Boston"


def test_a_chain_without_an_answer_leaves_the_question_as_it_was_asked() -> None:
    answer = _answer({INVENTOR: ("Bell", "telephone")})
    assert (answer.text, answer.abstained) == (f"unknown: {QUESTION}", True)


def test_a_name_read_where_the_links_words_do_not_stand_is_not_built_on() -> None:
    known = {INVENTOR: ("Bell", "p"), PLAIN: ("Edinburgh", "bell"), QUESTION: ("Boston", "p")}
    assert _answer(known).text == "Boston"


def test_a_plain_question_goes_straight_through() -> None:
    answer = ChainAnswerer(Known({PLAIN: ("Edinburgh", "bell")})).answer(PLAIN, QuestionGraph(), ())
    assert answer == Answer("Edinburgh", (Citation(1, "bell"),), confidence=1.0)
