"""An episode of the gym: tools in the place of a planner, over the agents' own loop."""

from __future__ import annotations

import pickle
from collections.abc import Sequence
from typing import Any

import pytest

from ras_agent import Answer, Limits, Passage, QuestionGraph
from ras_agent.contracts.errors import IngestError, UnknownName
from ras_agent.contracts.records import Hit, Step
from ras_agent.eval.question import Question
from ras_agent.gym import GraphSearch, Rewards, environment_factory, search_parts
from tests.messages import says

TEXTS = (
    Passage(
        "bell",
        "Alexander Graham Bell was born in Edinburgh. He invented the telephone.",
        "Alexander Graham Bell",
    ),
    Passage(
        "edinburgh",
        "The Water of Leith flows through Edinburgh. Edinburgh is in Scotland.",
        "Edinburgh",
    ),
    Passage("paris", "The Seine flows through Paris. Paris is in France.", "Paris"),
)
QUESTION = (
    "Which river flows through the city where the inventor of the telephone was born?"
)
ROW: dict[str, Any] = {
    "id": "q1",
    "question": QUESTION,
    "answers": ["Water of Leith"],
    "supporting_ids": ["bell", "edinburgh"],
}
ONE_A_HOP = Limits(max_hops=3, k=1)


@pytest.fixture(scope="module")
def parts() -> Any:
    return search_parts(index=TEXTS, limits=ONE_A_HOP)


@pytest.fixture
def episode(parts: Any) -> GraphSearch:
    environment = GraphSearch(parts)
    environment.reset(**ROW)
    return environment


def test_an_episode_begins_with_the_question(parts: Any) -> None:
    assert GraphSearch(parts).reset(**ROW) == f"Question: {QUESTION}"
    assert (
        GraphSearch(parts, task="Answer with a name.").reset(QUESTION)
        == f"Answer with a name.\nQuestion: {QUESTION}"
    )


def test_a_row_may_be_asked_for_a_date(parts: Any) -> None:
    shown = GraphSearch(parts).reset(**ROW, as_of="2016-05")
    assert shown == f"Question: {QUESTION} (as of 2016-05)"


def test_a_search_shows_titles_with_numbers_and_the_new_facts(
    episode: GraphSearch,
) -> None:
    assert episode.search("Who invented the telephone?") == (
        "Passages:\n[1] Alexander Graham Bell\nNew facts:\n<facts>\n"
        "(S> Alexander Graham Bell | P> was born in | O> Edinburgh)\n"
        "(S> Alexander Graham Bell | P> invented | O> telephone)\n</facts>"
    )
    assert episode.search("inventor of the telephone") == (
        "Passages:\n[1] Alexander Graham Bell\nNew facts:\n(nothing)\n"
        "(the research has ended: the last search brought no new facts. Call finish with the answer)"
    )


def test_a_search_shows_the_whole_graph_where_that_is_wanted(parts: Any) -> None:
    episode = GraphSearch(parts, whole_graph=True)
    episode.reset(**ROW)
    episode.search("Who invented the telephone?")
    assert "was born in | O> Edinburgh" in episode.search("Seine Paris")


def test_what_was_found_can_be_looked_at(episode: GraphSearch) -> None:
    episode.search("Who invented the telephone?")
    assert episode.neighbours("edinburgh") == (
        "<facts>\n(S> Alexander Graham Bell | P> was born in | O> Edinburgh)\n</facts>"
    )
    assert (
        episode.neighbours("Paris")
        == "(no fact names this entity: take a name from the facts, or search)"
    )
    assert "was born in Edinburgh. He invented" in episode.read("[1]")
    assert (
        episode.read("Edinburgh")
        == "(no such passage was found: take a title or number from a search's result)"
    )


def test_the_graph_of_the_question_grows_hop_by_hop(episode: GraphSearch) -> None:
    assert (len(episode.graph), episode.steps) == (0, ())
    episode.search("Who invented the telephone?")
    episode.search("Which river flows through Edinburgh?")
    assert [step.subquery for step in episode.steps] == [
        "Who invented the telephone?",
        "Which river flows through Edinburgh?",
    ]
    assert [passage.id for passage in episode.passages] == ["bell", "edinburgh"]
    assert "Water of Leith" in {fact.subject for fact in episode.graph.facts}


def test_the_last_search_ends_the_loop(episode: GraphSearch) -> None:
    for query in ("inventor of the telephone", "Edinburgh", "Seine"):
        shown = episode.search(query)
    ended = "(the research has ended: no search is left. Call finish with the answer)"
    assert shown.splitlines()[-1] == ended
    assert (episode.search("Paris"), episode.read("1"), episode.searches_left) == (
        ended,
        ended,
        0,
    )
    assert (episode.stop_reason, episode.done) == ("max_hops", False)
    assert (episode.finish("enough", "Leith"), episode.outcome.answer) == (
        "(the research has ended)",
        "Leith",
    )
    assert (episode.stop_reason, episode.done) == ("max_hops", True)


def test_a_search_that_was_made_before_ends_the_loop(episode: GraphSearch) -> None:
    episode.search("Who invented the telephone?")
    assert episode.search("who invented the telephone") == (
        "(the research has ended: this was searched before. Call finish with the answer)"
    )
    assert (episode.stop_reason, len(episode.steps)) == ("repeated_subquery", 1)
    assert episode.reward_parts["form"] == 0.0


def test_the_stops_are_switched_off_by_the_flags_of_the_agents() -> None:
    limits = Limits(max_hops=4, k=1, stop_on_repeat=False, stop_on_no_new_facts=False)
    episode = GraphSearch(index=TEXTS, limits=limits)
    episode.reset(**ROW)
    for _ in range(3):
        episode.search("Who invented the telephone?")
    assert (episode.stop_reason, len(episode.steps)) == ("", 3)


def test_a_loop_that_a_limit_has_ended_is_answered_by_the_answerer(
    episode: GraphSearch,
) -> None:
    episode.search("Where was the inventor of the telephone born?")
    episode.search("Which river flows through Edinburgh?")
    episode.search("Which river flows through Edinburgh?")
    assert episode.outcome.answer.startswith("Water of Leith")
    assert episode.done


def test_looks_have_an_end(episode: GraphSearch) -> None:
    episode.search("Edinburgh")
    assert [episode.read("1")[:9] for _ in range(4)] == ["<passage>"] * 4
    assert episode.read("1") == "(no look is left: search, or call finish)"


def test_a_second_call_in_a_row_that_cannot_be_followed_is_a_planners_failure(
    episode: GraphSearch,
) -> None:
    episode.search("")
    assert episode.search("").startswith("Passages:")  # the question itself
    assert [step.subquery for step in episode.steps] == [QUESTION]
    episode.read("")
    assert episode.read("") == (
        "(the research has ended: two calls in a row could not be followed. Call finish with the answer)"
    )
    assert episode.stop_reason == "planner_failed"


@pytest.mark.parametrize("name", ["1", 1, "[1]"])
def test_a_passage_is_read_by_its_number(episode: GraphSearch, name: Any) -> None:
    episode.search("Who invented the telephone?")
    assert episode.read(name).startswith("<passage>")


@pytest.mark.parametrize("tool", ["search", "neighbours", "read"])
def test_a_call_without_its_argument_is_told_so_and_is_no_search(
    episode: GraphSearch, tool: str
) -> None:
    assert (
        getattr(episode, tool)(" ") == "(the argument is empty: give it a text, got '')"
    )
    assert episode.steps == ()


def test_an_answer_of_the_policy_is_scored_with_its_citations(
    episode: GraphSearch,
) -> None:
    episode.search("Who invented the telephone?")
    episode.search("Which river flows through Edinburgh?")
    assert (
        episode.finish("both links are known", "Water of Leith [2]")
        == "(the research has ended)"
    )
    outcome = episode.outcome
    assert (outcome.answer, outcome.stop_reason, outcome.hops) == (
        "Water of Leith",
        "sufficient",
        2,
    )
    assert [citation.passage_id for citation in outcome.citations] == ["edinburgh"]
    assert episode.reward_parts == {"f1": 1.0, "gold": 1.0, "form": 1.0}
    assert episode.get_reward() == pytest.approx(2.1)


@pytest.mark.parametrize(
    ("given", "answer"),
    [
        (None, "Water of Leith"),
        (1847, "1847"),
        (1234567.0, "1234567"),
        (["a", "b"], "a; b"),
    ],
)
def test_an_answer_that_is_no_text_is_made_one(
    episode: GraphSearch, given: Any, answer: str
) -> None:
    episode.search("Where was the inventor of the telephone born?")
    episode.search("Which river flows through Edinburgh?")
    assert episode.finish("done", given) == "(the research has ended)"
    assert episode.outcome.answer.startswith(answer)


def test_the_answerer_writes_the_answer_that_the_policy_leaves_out(
    episode: GraphSearch,
) -> None:
    episode.search("Where was the inventor of the telephone born?")
    episode.search("Which river flows through Edinburgh?")
    episode.finish("enough")
    assert episode.outcome.answer.startswith("Water of Leith")


class Refusing:
    """An answerer that must not be asked, and a retriever that is down."""

    def answer(
        self,
        question: str,
        graph: QuestionGraph,
        passages: Sequence[Passage],
        steps: Sequence[Step],
    ) -> Answer:
        raise AssertionError("the answerer was asked")

    def retrieve(self, query: str, k: int = 5) -> list[Hit]:
        raise OSError("the server is gone")


def test_nobody_answers_where_no_part_of_the_reward_needs_it() -> None:
    episode = GraphSearch(
        index=TEXTS, answerer=Refusing(), rewards=Rewards(f1=0.0), limits=ONE_A_HOP
    )
    episode.reset(**ROW)
    episode.search("Who invented the telephone?")
    episode.finish("enough")
    assert episode.reward_parts == {"gold": 0.5, "form": 1.0}


def test_an_end_before_any_search_is_overruled_by_a_search_for_the_question(
    episode: GraphSearch,
) -> None:
    assert episode.finish("known", "Water of Leith").startswith("Passages:")
    assert ([step.subquery for step in episode.steps], episode.done) == (
        [QUESTION],
        False,
    )
    episode.finish("known", "Water of Leith")
    assert (episode.outcome.stop_reason, episode.outcome.answer) == (
        "sufficient",
        "Water of Leith",
    )


def test_an_episode_without_an_end_abstains(episode: GraphSearch) -> None:
    episode.search("Who invented the telephone?")
    assert episode.outcome.abstained
    assert episode.reward_parts == {"f1": 0.0, "gold": 0.5, "form": 0.0}


def test_a_reset_forgets_the_last_episode(episode: GraphSearch) -> None:
    episode.search("Who invented the telephone?")
    episode.finish("enough", "Leith")
    episode.reset("Where is Paris?")
    assert (episode.done, episode.steps, episode.passages, len(episode.graph)) == (
        False,
        (),
        (),
        0,
    )
    assert episode.question == Question("", "Where is Paris?", (), by_title=True)


def test_columns_of_a_trainer_are_no_part_of_the_question(parts: Any) -> None:
    environment = GraphSearch(parts)
    environment.reset(
        **ROW,
        prompt=[{"role": "user", "content": ""}],
        supporting_titles=None,
        hops=None,
    )
    assert environment.question.supporting == ("bell", "edinburgh")
    assert environment.question.metadata == {}


def test_a_row_of_another_format_is_read_by_its_look(parts: Any) -> None:
    environment = GraphSearch(parts)
    environment.reset(
        id="q7",
        question=QUESTION,
        golden_answers=["Water of Leith"],
        metadata={"level": "hard"},
    )
    assert (environment.question.id, environment.question.answers) == (
        "q7",
        ("Water of Leith",),
    )


def test_a_row_that_is_no_question_is_refused(parts: Any) -> None:
    with pytest.raises(
        IngestError, match=says("row: 'answers' should be a list of texts", "7")
    ):
        GraphSearch(parts).reset(QUESTION, answers=[[7]])
    with pytest.raises(
        ValueError, match="the input needs a question that is not blank"
    ):
        GraphSearch(parts).reset("  ")


def test_a_role_that_fails_is_raised_again_where_the_reward_is_asked_for() -> None:
    episode = GraphSearch(index=None, retriever=Refusing())
    episode.reset(QUESTION)
    with pytest.raises(OSError, match="the server is gone"):
        episode.search("Paris")  # TRL shows this to the policy, and goes on
    with pytest.raises(OSError, match="the server is gone"):
        episode.get_reward()


def test_environments_of_one_factory_share_their_index() -> None:
    make = environment_factory(index=TEXTS, rewards=Rewards(f1=0.0))
    one, other = make(), make()
    assert one._parts is other._parts
    one.reset(**ROW)
    one.search("Who invented the telephone?")
    other.reset(**ROW)
    assert other.steps == ()


def test_a_factory_can_be_sent_to_another_process() -> None:
    sent = pickle.loads(
        pickle.dumps(
            environment_factory(index=TEXTS, rewards=Rewards(f1=0.0), limits=ONE_A_HOP)
        )
    )
    episode = sent()
    episode.reset(**ROW)
    episode.search("Who invented the telephone?")
    assert [passage.id for passage in episode.passages] == ["bell"]


def test_parts_are_resolved_once(parts: Any) -> None:
    with pytest.raises(TypeError, match="`parts` already holds index, limits"):
        GraphSearch(parts, index=TEXTS, limits=ONE_A_HOP)


def test_an_unknown_metric_is_told_before_training() -> None:
    with pytest.raises(UnknownName, match=says("metric", "gould")):
        Rewards(metrics={"gould": 1.0})
