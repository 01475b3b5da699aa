"""The samples of a GraphLLM's training: the prompts of its roles, and replies that cite."""

from __future__ import annotations

from pathlib import Path

from ras_agent.contracts.records import Passage
from ras_agent.prompts import prompt_names
from ras_agent.tools.graph_tokens.fact_orders import FactPruner, fact_order
from ras_agent.train.graphllm.examples import INSTRUCTIONS, PROMPTS, ExampleMaker
from ras_agent.train.subq import SubqSample, SubqStep

STEPS = (
    SubqStep(
        "Where was Bell born?",
        (Passage("b", "", "Bell"),),
        (("Bell", "was born in", "Edinburgh"),),
    ),
    SubqStep(
        "Which river flows through Edinburgh?",
        (Passage("e", "", "Edinburgh"),),
        (
            ("Edinburgh", "is in", "Scotland"),
            ("Leith", "is a harbour of", "Edinburgh"),
            ("the Water of Leith", "flows through", "Edinburgh"),
        ),
    ),
)
QUESTION = "Which river flows through the town where Bell was born?"


def sample(
    kind: str,
    target: str,
    steps: tuple[SubqStep, ...] = STEPS,
    label: str = "sufficient",
) -> SubqSample:
    return SubqSample(
        "1", "test", "1", 2, "train", kind, label, QUESTION, steps, target, (target,)
    )  # type: ignore[arg-type]


def test_a_plan_is_asked_for_with_the_searches_their_facts_and_the_question() -> None:
    example = ExampleMaker(2000).example(
        sample("plan", "[SUBQ] Which river flows through Edinburgh?", STEPS[:1], "subq")
    )
    assert [(turn.role, turn.text) for turn in example.turns] == [
        (
            "system",
            "Plan the next search: [SUBQ] and a search question, [SUFFICIENT], or [NO_RETRIEVAL].",
        ),
        (
            "user",
            "[SUBQ] Where was Bell born?\nRetrieved Graph Information:\n<facts>\n"
            "(S> Bell | P> was born in | O> Edinburgh)\n</facts>\n"
            f"Question: {QUESTION}\nPlan:",
        ),
    ]
    assert example.graph == (STEPS[0].triples,)
    assert example.reply == "[SUBQ] Which river flows through Edinburgh?"


def test_the_papers_instructions_name_each_move_and_explain_the_searches() -> None:
    assert {file.name for file in INSTRUCTIONS["paper"].glob("*.txt")} == {
        file.name for file in PROMPTS.glob("*.txt")
    }
    maker = ExampleMaker(2000, prompts=INSTRUCTIONS["paper"])
    plan = maker.example(
        sample("plan", "[SUBQ] Which river flows through Edinburgh?", STEPS[:1], "subq")
    ).turns
    assert all(
        move in plan[0].text for move in ("[NO_RETRIEVAL]", "[SUBQ]", "[SUFFICIENT]")
    )
    answer = ExampleMaker(2000, prompts=INSTRUCTIONS["paper"]).example(
        sample("answer", "Water of Leith")
    )
    assert "Each [SUBQ] is a search" in answer.turns[0].text
    assert (
        answer.turns[1]
        == ExampleMaker(2000).example(sample("answer", "Water of Leith")).turns[1]
    )


def test_a_sample_is_pruned_as_the_loop_prunes_a_run() -> None:
    pruner = FactPruner(fact_order("use"), 1)
    example = ExampleMaker(2000, pruner=pruner).example(
        sample("answer", "Water of Leith")
    )
    shown = [fact for facts in example.graph for fact in facts]
    graph, steps = sample("answer", "Water of Leith").as_run()
    assert shown == [
        (fact.subject, fact.predicate, fact.object)
        for fact in pruner.prune(QUESTION, graph, steps).facts
    ]
    assert len(shown) == 1
    assert example.turns[-1].text.count("(S> ") == 1


def test_an_answer_cites_the_facts_of_the_last_search_that_hold_it() -> None:
    example = ExampleMaker(2000).example(sample("answer", "Water of Leith"))
    assert (
        "[4] (S> the Water of Leith | P> flows through | O> Edinburgh)"
        in example.turns[-1].text
    )
    assert example.reply == "Water of Leith [4]"
    assert example.graph == tuple(step.triples for step in STEPS)


def test_an_answer_that_no_fact_holds_cites_nothing() -> None:
    assert (
        ExampleMaker(2000).example(sample("answer", "the Thames")).reply == "the Thames"
    )


def test_of_several_facts_the_two_nearest_to_the_sub_query_are_cited() -> None:
    assert (
        ExampleMaker(2000).example(sample("answer", "Edinburgh")).reply
        == "Edinburgh [4][2]"
    )


def test_answers_without_citations_can_be_asked_for() -> None:
    assert (
        ExampleMaker(2000, citations=False)
        .example(sample("answer", "Water of Leith"))
        .reply
        == "Water of Leith"
    )


def test_an_answer_from_memory_has_no_graph() -> None:
    example = ExampleMaker(2000).example(
        sample("answer", "the Thames", (), "no_retrieval")
    )
    assert example.turns[0].text == "Answer the question from what you know."
    assert (example.graph, example.reply) == ((), "the Thames")


def test_the_least_useful_facts_of_a_long_history_are_left_out_of_the_text_and_stay_in_the_graph() -> (
    None
):
    many = tuple(
        (f"Town number {number}", "is twinned with", f"another town {number}")
        for number in range(100)
    )
    longer = SubqStep(
        STEPS[1].subquery, STEPS[1].passages, (*many, STEPS[1].triples[2])
    )
    example = ExampleMaker(600).example(
        sample("answer", "Water of Leith", (STEPS[0], longer))
    )
    assert "more facts are not shown" in example.turns[-1].text
    assert example.reply.startswith("Water of Leith [")
    assert len(example.graph[1]) == 101


def test_an_answerer_without_any_fact_to_show_is_not_asked() -> None:
    bare = SubqStep("Where was Bell born?", (Passage("b", "", "Bell"),))
    maker = ExampleMaker(2000)
    assert not maker.asks(sample("answer", "Edinburgh", (bare,)))
    assert maker.asks(sample("plan", "[SUFFICIENT]", (bare,)))
    assert maker.asks(sample("answer", "Edinburgh", (), "no_retrieval"))


def test_the_packaged_prompts_override_prompts_that_exist() -> None:
    assert {path.stem for path in Path(PROMPTS).glob("*.txt")} <= set(prompt_names())
