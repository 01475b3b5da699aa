"""The chain planner names one description after the other."""

from collections.abc import Mapping, Sequence

from ras_agent.question_graph import QuestionGraph
from ras_agent.records import Answer, Citation, Hit, Passage, Plan, Step
from ras_agent.tools.offline.chain_planner import ChainPlanner

QUESTION = "Which river flows through the city where the inventor of the telephone was born?"
INVENTOR = "Who is the inventor of the telephone?"
CITY = "In which city was Bell born?"


class Known:
    """Answers what it was told, abstains from everything else."""

    def __init__(self, answers: Mapping[str, str], confidence: float = 1.0) -> None:
        self.answers, self.confidence = answers, confidence

    def answer(self, question: str, graph: QuestionGraph, passages: Sequence[Passage]) -> Answer:
        text = self.answers.get(question, "")
        cited = tuple(Citation(number, passage.id) for number, passage in enumerate(passages, start=1))
        return Answer(text, cited, abstained=not text, confidence=self.confidence)


class Otherwise:
    def plan(self, question: str, graph: QuestionGraph, steps: Sequence[Step]) -> Plan:
        return Plan("subq", "otherwise")


def _plan(
    answers: Mapping[str, str],
    *subqueries: str,
    confidence: float = 1.0,
    title: str = "Telephone",
    text: str = "Bell's telephone.",
) -> Plan:
    hits = (Hit(Passage("p", text, title), 1.0),)
    steps = [Step(hop, subquery, hits) for hop, subquery in enumerate(subqueries, start=1)]
    return ChainPlanner(Known(answers, confidence), Otherwise()).plan(QUESTION, QuestionGraph(), steps)


def test_the_first_plan_is_left_to_the_other_planner() -> None:
    assert _plan({}).subquery == "otherwise"


def test_a_description_without_a_name_is_asked_for() -> None:
    assert _plan({}, QUESTION) == Plan("subq", INVENTOR, "the inventor of the telephone has no name yet")


def test_a_named_entity_is_looked_up_before_the_next_link_is_trusted() -> None:
    answers = {INVENTOR: "Bell", CITY: "Edinburgh"}
    assert _plan(answers, QUESTION) == Plan("subq", CITY, "the inventor of the telephone is Bell")


def test_a_passage_about_the_entity_counts_as_looked_up() -> None:
    plan = _plan({INVENTOR: "Bell", CITY: "Edinburgh"}, QUESTION, title="Bell (inventor)")
    assert plan == Plan("subq", "Which river flows through Edinburgh?", "the city where Bell was born is Edinburgh")


def test_the_chain_is_sufficient_when_its_last_question_was_asked() -> None:
    plan = _plan({INVENTOR: "Bell", CITY: "Edinburgh"}, QUESTION, CITY, "Which river flows through Edinburgh?")
    assert plan.action == "sufficient"


def test_an_unsure_name_does_not_stand_for_its_description() -> None:
    assert _plan({INVENTOR: "Bell"}, QUESTION, confidence=0.1).subquery == INVENTOR


def test_a_name_read_where_the_links_words_do_not_stand_is_not_trusted() -> None:
    assert _plan({INVENTOR: "Bell"}, QUESTION, title="Adelaide", text="Adelaide is a city.").subquery == INVENTOR


def test_a_link_that_stays_open_after_it_was_asked_for_is_left_to_the_other_planner() -> None:
    assert _plan({}, QUESTION, INVENTOR).subquery == "otherwise"


def test_a_name_that_is_a_description_itself_ends_all_the_same() -> None:
    circle = {CITY: "the city where Bell was born", INVENTOR: "Bell"}
    assert _plan(circle, QUESTION, CITY).action == "subq"
