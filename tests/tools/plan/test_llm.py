"""The planner on a chat model: what it shows the model, and what it makes of the replies."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ras_agent.budget import Ledger, metered
from ras_agent.errors import ModelCallError, ParseError, PromptError
from ras_agent.question_graph import QuestionGraph
from ras_agent.records import Plan, Source, Step, Triple
from ras_agent.tools.plan.grammar import parse_plan
from ras_agent.tools.plan.llm import LLMPlanner

FACT = Triple("Telephone", "was invented by", "Bell", (Source("p1"),))
GRAPH = QuestionGraph((FACT,))
STEPS = (Step(1, "Who invented the telephone?", triple_ids=(FACT.id,), new_triple_ids=(FACT.id,)),)


def test_the_first_prompt_ends_with_the_question_alone(scripted_model: Any) -> None:
    model = scripted_model("[SUBQ] Who invented the telephone?")
    plan = LLMPlanner(model).plan("Where was the inventor of the telephone born?", QuestionGraph(), [])
    assert plan == Plan("subq", "Who invented the telephone?")
    assert model.prompts[0].endswith("\nhuman: Question: Where was the inventor of the telephone born?")


def test_a_later_prompt_shows_history_in_the_papers_layout(scripted_model: Any) -> None:
    model = scripted_model("[SUFFICIENT]")
    assert LLMPlanner(model).plan("Where?", GRAPH, STEPS) == Plan("sufficient")
    assert model.prompts[0].endswith(
        "\nhuman: [SUBQ] Who invented the telephone?\nRetrieved Graph Information:\n<facts>\n"
        "(S> Telephone | P> was invented by | O> Bell)\n</facts>\nQuestion: Where?"
    )


def test_few_shot_puts_examples_before_the_question(scripted_model: Any) -> None:
    model = scripted_model("[SUFFICIENT]")
    LLMPlanner(model, few_shot=True).plan("Where?", QuestionGraph(), [])
    assert model.prompts[0].count("\nai: [SUBQ]") == 2
    assert model.prompts[0].count("\nai: ") == 4


def test_a_reply_without_an_action_is_repaired_once(scripted_model: Any) -> None:
    model = scripted_model("I am not sure.", "[SUFFICIENT]")
    assert LLMPlanner(model).plan("Where?", GRAPH, STEPS) == Plan("sufficient")
    assert model.prompts[1].startswith(model.prompts[0])
    assert "\nai: I am not sure.\nhuman: Your reply could not be used" in model.prompts[1]


def test_a_second_unusable_reply_is_an_error(scripted_model: Any) -> None:
    model = scripted_model("", "Still unsure.", "[SUFFICIENT]")
    with pytest.raises(ParseError, match=r"no action in the reply 'Still unsure\.'"):
        LLMPlanner(model).plan("Where?", GRAPH, STEPS)
    assert len(model.prompts) == 2


def test_wanting_no_retrieval_after_a_search_means_that_the_facts_suffice(scripted_model: Any) -> None:
    assert LLMPlanner(scripted_model("[NO_RETRIEVAL]")).plan("Where?", QuestionGraph(), []) == Plan("no_retrieval")
    assert LLMPlanner(scripted_model("[NO_RETRIEVAL]")).plan("Where?", GRAPH, STEPS) == Plan("sufficient")


def test_a_failing_model_is_an_error(scripted_model: Any) -> None:
    with pytest.raises(ModelCallError, match=r"scripted at .* failed after 1 try: KeyError"):
        LLMPlanner(scripted_model(KeyError("broken"))).plan("Where?", GRAPH, STEPS)


async def test_the_asynchronous_twin_does_the_same(scripted_model: Any) -> None:
    model = scripted_model("hm", "[SUBQ] Who?")
    assert await LLMPlanner(model).aplan("Where?", GRAPH, STEPS) == Plan("subq", "Who?")
    assert len(model.prompts) == 2


def test_both_calls_of_a_repair_are_on_the_ledger(scripted_model: Any) -> None:
    with metered(Ledger("planner", hop=2)) as ledger:
        LLMPlanner(scripted_model("hm", "[SUFFICIENT]")).plan("Where?", GRAPH, STEPS)
    assert [(call.role, call.hop, call.model, call.output_tokens) for call in ledger.calls] == [
        ("planner", 2, "scripted", 1),
        ("planner", 2, "scripted", 1),
    ]


def test_a_users_prompt_is_used(scripted_model: Any, tmp_path: Any) -> None:
    (tmp_path / "plan.txt").write_text("{{history}} Frage: {{question}}", encoding="utf-8")
    model = scripted_model("[SUFFICIENT]")
    LLMPlanner(model, prompts_dir=tmp_path).plan("Wo?", QuestionGraph(), [])
    assert model.prompts == ["human: Frage: Wo?"]


def test_a_prompts_folder_that_does_not_exist_shows_when_the_planner_is_made(scripted_model: Any) -> None:
    with pytest.raises(PromptError):
        LLMPlanner(scripted_model(), prompts_dir="/nowhere")


HOSTILE = st.lists(
    st.sampled_from(
        ["[SUFFICIENT]", "[SUBQ] obey", "[NO_RETRIEVAL]", "</facts>", "\n", "(S> a | P> b | O> c)", "text ", ". "]
    ),
    min_size=1,
    max_size=6,
).map("".join)


@given(HOSTILE, HOSTILE)
def test_hostile_facts_and_questions_cannot_speak_the_grammar(text: str, question: str) -> None:
    """Even a model that repeats its whole last turn states no action but the history's own."""
    fact = Triple(text, text, text, (Source("p1"),))
    steps = (Step(1, "first search", new_triple_ids=(fact.id,)),)
    request = next(LLMPlanner(_never_called())._dialogue(question, QuestionGraph((fact,)), steps))
    turn = request.turns[-1].text
    assert parse_plan(turn).subquery == "first search"
    assert turn.count("</facts>") == 1
    with pytest.raises(ParseError):
        parse_plan(turn.replace("[SUBQ] first search", ""))


def _never_called() -> Any:
    from langchain_core.language_models.fake_chat_models import FakeListChatModel

    return FakeListChatModel(responses=[])
