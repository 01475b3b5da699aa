"""The preset "paper" is RAS's loop: the prompt of each model, equation by equation (arXiv 2502.10996, section 3)."""

from typing import Any

import pytest

from ras_agent import create_ras_agent
from ras_agent.contracts.records import Hit, Passage
from ras_agent.prompts import fragment

BELL = Passage(
    "bell",
    "Bell was born in Edinburgh. He invented the telephone.",
    "Alexander Graham Bell",
)
LEITH = Passage(
    "leith", "The Water of Leith flows through Edinburgh.", "Water of Leith"
)
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
        extractor = scripted_model(
            ("Alexander Graham Bell\n", f"{BORN}\n{INVENTED}"),
            ("Water of Leith\n", FLOWS),
        )
        agent = create_ras_agent(
            planner=planner,
            extractor=extractor,
            answerer=answerer,
            retriever=Pages(),
            preset="paper",
        )
        out = agent.invoke({"question": QUESTION, **inputs})
        return out, planner.prompts, extractor.prompts, answerer.prompts

    return run


TWO_HOPS = [
    "[SUBQ] Where was Bell born?",
    "[SUBQ] Which river flows through Edinburgh?",
    "[SUFFICIENT]",
]
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
    """The last turn of a prompt, which holds the parts that belong to the question."""
    return prompt.rpartition("\nhuman: ")[2]


def test_eq_1_the_first_plan_is_made_from_the_question_alone(run: Any) -> None:
    _, planner, _, _ = run(TWO_HOPS, ["Answer: x"])
    assert data(planner[0]) == f"Question: {QUESTION}"


def test_eq_1_the_first_subquery_is_the_question(run: Any) -> None:
    out, *_ = run(TWO_HOPS, ["Answer: x"])
    assert [step["subquery"] for step in out["steps"]] == [
        QUESTION,
        "Which river flows through Edinburgh?",
    ]


def test_eq_2_a_later_plan_is_made_from_every_subquery_with_all_its_facts_and_the_question(
    run: Any,
) -> None:
    _, planner, _, _ = run(TWO_HOPS, ["Answer: x"])
    assert data(planner[2]) == CHAIN


def test_eq_8_the_answer_is_made_from_every_subquery_with_all_its_facts_and_the_question(
    run: Any,
) -> None:
    _, _, _, answerer = run(TWO_HOPS, ["Answer: Water of Leith [3]"])
    numbered = (
        CHAIN.replace(BORN, f"[1] {BORN}")
        .replace(INVENTED, f"[2] {INVENTED}")
        .replace(FLOWS, f"[3] {FLOWS}")
    )
    # a task would stand in front of the question
    assert data(answerer[0]).replace("\n\n", "\n") == numbered
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
        (
            "I have thought about it.\nIt is the Water of Leith",
            "I have thought about it.\nIt is the Water of Leith",
        ),
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


def test_eq_7_without_retrieval_the_answer_is_made_from_the_question_alone(
    run: Any,
) -> None:
    out, _, _, answerer = run(["[NO_RETRIEVAL]"], ["Answer: The Water of Leith"])
    assert data(answerer[0]) == f"Question: {QUESTION}"
    assert fragment("answer-from-memory") in answerer[0]
    assert (out["answer"], out["steps"], out["grounded"]) == (
        "The Water of Leith",
        [],
        False,
    )


def test_a_seeded_run_is_planned_from_the_question_alone_before_its_passages_are_read(
    run: Any,
) -> None:
    _, planner, extractor, _ = run(TWO_HOPS, ["Answer: x"], seed_passages=[BELL, LEITH])
    assert data(planner[0]) == f"Question: {QUESTION}"
    assert data(planner[1]) == CHAIN.replace(
        "[SUBQ] Which river flows through Edinburgh?\n", "", 1
    ).replace(
        f"</facts>\nRetrieved Graph Information:\n<facts>\n{BORN}\n{INVENTED}\n", ""
    )
    assert len(extractor) == 2


def test_a_seeded_run_may_need_no_retrieval(run: Any) -> None:
    out, _, extractor, answerer = run(
        ["[NO_RETRIEVAL]"], ["Answer: x"], seed_passages=[BELL]
    )
    assert (out["stop_reason"], out["steps"], extractor) == ("no_retrieval", [], [])
    assert data(answerer[0]) == f"Question: {QUESTION}"


def test_a_static_run_plans_nothing(run: Any) -> None:
    out, planner, _, answerer = run([], ["Answer: x"], static_passages=[BELL, LEITH])
    assert (planner, out["stop_reason"]) == ([], "static")
    assert (
        data(answerer[0]).count(f"[SUBQ] {QUESTION}\nRetrieved Graph Information:\n")
        == 2
    )


def test_a_first_plan_that_cannot_be_read_searches_for_the_question(run: Any) -> None:
    out, planner, _, _ = run(["Hm.", "Hm!", "[SUFFICIENT]"], ["Answer: x"])
    assert [step["subquery"] for step in out["steps"]] == [QUESTION]
    assert len(planner) == 3


def test_a_later_plan_that_cannot_be_read_twice_is_the_next_search_as_in_the_published_code(
    run: Any,
) -> None:
    plans = ["[SUBQ] x", "Well ...", "The rivers of Edinburgh, I think", "[SUFFICIENT]"]
    out, *_ = run(plans, ["Answer: x"])
    assert [step["subquery"] for step in out["steps"]] == [
        QUESTION,
        "The rivers of Edinburgh, I think",
    ]


def test_a_later_plan_without_a_word_ends_in_an_answer_from_the_graph(run: Any) -> None:
    out, *_ = run(["[SUBQ] x", "...", "..."], ["Answer: x"])
    assert (out["answer"], out["stop_reason"], len(out["steps"])) == (
        "x",
        "planner_failed",
        1,
    )


def test_eq_3_to_6_each_subquery_is_searched_read_and_merged(run: Any) -> None:
    out, _, extractor, _ = run(TWO_HOPS, ["Answer: x"])
    assert [data(prompt).partition("\n")[0] for prompt in extractor] == [
        "<passage>",
        "<passage>",
    ]
    assert [len(step["triple_ids"]) for step in out["steps"]] == [2, 3]
    assert len(out["graph"]["facts"]) == 3
