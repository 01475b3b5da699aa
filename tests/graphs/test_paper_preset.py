"""The preset "paper" is RAS's loop: what each model is sent, equation by equation (arXiv 2502.10996, section 3)."""

from typing import Any

import pytest

from ras_agent import create_ras_agent
from ras_agent.prompts import fragment
from ras_agent.records import Hit, Passage

BELL = Passage("bell", "Bell was born in Edinburgh. He invented the telephone.", "Alexander Graham Bell")
LEITH = Passage("leith", "The Water of Leith flows through Edinburgh.", "Water of Leith")
QUESTION = "Which river flows through the city where Bell was born?"
BORN = "(S> Bell | P> was born in | O> Edinburgh)"
INVENTED = "(S> Bell | P> invented | O> the telephone)"
FLOWS = "(S> Water of Leith | P> flows through | O> Edinburgh)"


class Pages:
    """Finds Bell's page for everything, and the river's after it where Edinburgh is asked for."""

    def __init__(self) -> None:
        self.queries: list[str] = []

    def retrieve(self, query: str, k: int = 5) -> list[Hit]:
        self.queries.append(query)
        pages = [BELL, LEITH] if "Edinburgh" in query else [BELL]
        return [Hit(page, 1 / rank) for rank, page in enumerate(pages, start=1)]


@pytest.fixture
def run(scripted_model: Any) -> Any:
    """`run(plans, answers, **inputs)`: the run's output, and the prompts of planner, extractor and answerer."""

    def run(plans: list[Any], answers: list[Any], **inputs: Any) -> Any:
        planner, answerer = scripted_model(*plans), scripted_model(*answers)
        extractor = scripted_model(("Alexander Graham Bell\n", f"{BORN}\n{INVENTED}"), ("Water of Leith\n", FLOWS))
        agent = create_ras_agent(
            planner=planner, extractor=extractor, answerer=answerer, retriever=Pages(), preset="paper"
        )
        out = agent.invoke({"question": QUESTION, **inputs})
        return out, planner.prompts, extractor.prompts, answerer.prompts

    return run


TWO_HOPS = ["[SUBQ] Where was Bell born?", "[SUBQ] Which river flows through Edinburgh?", "[SUFFICIENT]"]
CHAIN = (
    f"[SUBQ] {QUESTION}\n"
    "Retrieved Graph Information:\n"
    f"<facts>\n{BORN}\n{INVENTED}\n</facts>\n"
    "[SUBQ] Which river flows through Edinburgh?\n"
    "Retrieved Graph Information:\n"
    f"<facts>\n{BORN}\n{INVENTED}\n{FLOWS}\n</facts>\n"
    f"Question: {QUESTION}"
)


def data(prompt: str) -> str:
    """The last turn of a prompt, which holds what is particular to the question."""
    return prompt.rpartition("\nhuman: ")[2]


def test_eq_1_the_first_plan_is_made_from_the_question_alone(run: Any) -> None:
    _, planner, _, _ = run(TWO_HOPS, ["Answer: x"])
    assert data(planner[0]) == f"Question: {QUESTION}"


def test_eq_1_the_first_subquery_is_the_question(run: Any) -> None:
    out, *_ = run(TWO_HOPS, ["Answer: x"])
    assert [step["subquery"] for step in out["steps"]] == [QUESTION, "Which river flows through Edinburgh?"]


def test_eq_2_a_later_plan_is_made_from_every_subquery_with_all_its_facts_and_the_question(run: Any) -> None:
    _, planner, _, _ = run(TWO_HOPS, ["Answer: x"])
    assert data(planner[2]) == CHAIN


def test_eq_8_the_answer_is_made_from_every_subquery_with_all_its_facts_and_the_question(run: Any) -> None:
    _, _, _, answerer = run(TWO_HOPS, ["Answer: Water of Leith [3]"])
    numbered = CHAIN.replace(BORN, f"[1] {BORN}").replace(INVENTED, f"[2] {INVENTED}").replace(FLOWS, f"[3] {FLOWS}")
    assert data(answerer[0]).replace("\n\n", "\n") == numbered  # a task would stand in front of the question
    assert fragment("answer-from-chain") in answerer[0]
    assert "<passage>\n" not in answerer[0]


def test_eq_8_citations_are_those_of_the_facts(run: Any) -> None:
    out, *_ = run(TWO_HOPS, ["Answer: Water of Leith [3][1]"])
    assert [(cited["passage_id"], cited["quote"]) for cited in out["citations"]] == [
        ("leith", "The Water of Leith flows through Edinburgh."),
        ("bell", "Bell was born in Edinburgh."),
    ]


@pytest.mark.parametrize(
    ("reply", "text"),
    [
        ("Water of Leith", "Water of Leith"),
        ("I have thought about it.\nIt is the Water of Leith", "I have thought about it.\nIt is the Water of Leith"),
    ],
)
def test_a_reply_without_a_label_is_the_answer_and_cites_the_facts_that_support_it(
    run: Any, reply: str, text: str
) -> None:
    out, _, _, answerer = run(TWO_HOPS, [reply])
    assert (out["answer"], out["abstained"], len(answerer)) == (text, False, 1)
    assert out["citations"][0]["passage_id"] == "leith"


def test_it_always_answers(run: Any) -> None:
    out, *_ = run(TWO_HOPS, ["[UNKNOWN]", "[UNKNOWN]"])
    assert (out["answer"], out["abstained"]) == ("[UNKNOWN]", False)
