"""The RAS loop, route by route."""

import json

import pytest

from ras_agent import Limits
from ras_agent.config.settings import Settings
from ras_agent.contracts.errors import UnknownName
from ras_agent.contracts.records import Answer, Citation, Extraction, Passage, Plan
from ras_agent.question_graph import QuestionGraph


@pytest.fixture
def enough(fakes):
    return fakes.SUFFICIENT


def subqueries(out):
    return [step["subquery"] for step in out["steps"]]


def test_no_retrieval_answers_from_nothing_where_the_caller_allows_it(ras):
    out = ras(Plan("no_retrieval"), settings=Settings(from_memory=True)).invoke(
        {"question": "What is 2 + 2?"}
    )
    assert (out["answer"], out["stop_reason"], out["steps"], out["passages"]) == (
        "0 facts, 0 passages",
        "no_retrieval",
        [],
        {},
    )


@pytest.mark.parametrize("preset", ["default", "paper"])
def test_nothing_is_sufficient_before_the_first_search(ras, enough, preset):
    out = ras(enough, preset=preset).invoke({"question": "Who?"})
    assert (subqueries(out), out["stop_reason"]) == (["Who?"], "sufficient")
    assert out["plans"][0]["reason"] == (
        "nothing has been found yet that could be sufficient: the question itself is searched (enough)"
    )


def test_sufficient_after_the_first_hop(ras, enough):
    out = ras("ignored", enough).invoke({"question": "Who?"})
    assert (out["answer"], out["stop_reason"], subqueries(out)) == (
        "2 facts, 2 passages",
        "sufficient",
        ["Who?"],
    )


def test_the_first_subquery_is_the_question_whatever_the_planner_words(ras, enough):
    out = ras("reworded", "a bridge", enough).invoke({"question": "Who?"})
    assert subqueries(out) == ["Who?", "a bridge"]
    assert out["plans"] == [
        {"action": "subq", "subquery": "Who?", "reason": "", "hop": 1},
        {"action": "subq", "subquery": "a bridge", "reason": "", "hop": 2},
        {"action": "sufficient", "subquery": "", "reason": "enough", "hop": 3},
    ]


def test_the_fifth_hop_is_the_last(ras):
    out = ras("q", "b", "c", "d", "e", "f").invoke({"question": "Who?"})
    assert (subqueries(out), out["stop_reason"]) == (
        ["Who?", "b", "c", "d", "e"],
        "max_hops",
    )
    assert len(out["plans"]) == 5


def test_a_repeated_subquery_ends_the_loop_however_it_is_spelled(ras):
    out = ras("q", "the bridge", "The  Bridge?").invoke({"question": "Who?"})
    assert (subqueries(out), out["stop_reason"]) == (
        ["Who?", "the bridge"],
        "repeated_subquery",
    )
    assert out["plans"][-1]["subquery"] == "The  Bridge?"


def test_no_new_facts_end_the_loop(ras, fakes):
    retriever = fakes.EchoRetriever({"b": ["Who? B", "Who? A"]})
    out = ras("q", "b", "c", retriever=retriever).invoke({"question": "Who?"})
    assert (subqueries(out), out["stop_reason"]) == (["Who?", "b"], "no_new_facts")
    assert len(out["steps"][1]["triple_ids"]) == 2
    assert out["steps"][1]["new_triple_ids"] == []


def test_the_paper_preset_has_neither_early_stop(ras, fakes):
    retriever = fakes.EchoRetriever({"b": ["Who? A"]})
    agent = ras("q", "b", "b", "b", "b", "b", retriever=retriever, preset="paper")
    out = agent.invoke({"question": "Who?"})
    assert (subqueries(out), out["stop_reason"]) == (
        ["Who?", "b", "b", "b", "b"],
        "max_hops",
    )


def test_the_paper_preset_holds_for_limits_given_with_a_run(ras, fakes):
    retriever = fakes.EchoRetriever({"b": ["Who? A"]})
    agent = ras("q", "b", "b", "b", retriever=retriever, preset="paper")
    out = agent.invoke({"question": "Who?"}, context=Limits(max_hops=3, max_facts=1))
    assert (subqueries(out), len(out["graph"]["facts"])) == (["Who?", "b", "b"], 2)


def test_an_unknown_preset_is_named_with_the_known_ones(ras):
    with pytest.raises(
        UnknownName, match="unknown preset 'papre'; known: default, paper"
    ):
        ras("q", preset="papre")


def test_facts_carry_passage_hop_and_subquery(ras, enough):
    out = ras("q", "b", enough).invoke({"question": "Who?"})
    sources = [fact["sources"] for fact in out["graph"]["facts"]]
    assert sources[0] == [
        {
            "passage_id": "Who? A",
            "start": 0,
            "end": 18,
            "hop": 1,
            "subquery": "Who?",
            "extractor": "test",
        }
    ]
    assert [(source[0]["hop"], source[0]["subquery"]) for source in sources[2:]] == [
        (2, "b"),
        (2, "b"),
    ]


def test_a_step_holds_hits_and_new_facts(ras, enough):
    step = ras("q", enough).invoke({"question": "Who?"})["steps"][0]
    assert step["hits"] == [
        {"passage_id": "Who? A", "title": "Who? A", "score": 2.0},
        {"passage_id": "Who? B", "title": "Who? B", "score": 1.0},
    ]
    assert step["new_triple_ids"] == step["triple_ids"]
    assert len(step["triple_ids"]) == 2


def test_passages_are_ranked_by_hop_then_by_rank_and_the_first_retrieval_counts(
    ras, fakes, enough
):
    retriever = fakes.EchoRetriever({"Who?": ["2", "1"], "b": ["0", "1", "3"]})
    out = ras("q", "b", enough, retriever=retriever).invoke({"question": "Who?"})
    assert list(out["passages"]) == ["2", "1", "0", "3"]
    assert out["passages"]["2"]["text"] == "2 is a thing."


def test_a_passage_is_read_once(ras, fakes, enough):
    class Reading(fakes.SentenceExtractor):
        read: list

        def extract(self, passages, subquery=""):
            self.read.append([passage.id for passage in passages])
            return super().extract(passages, subquery)

    extractor = Reading()
    extractor.read = []
    retriever = fakes.EchoRetriever({"b": ["Who? A", "new"], "c": ["new"]})
    ras("q", "b", "c", enough, retriever=retriever, extractor=extractor).invoke(
        {"question": "Who?"}
    )
    assert extractor.read == [["Who? A", "Who? B"], ["new"]]


def test_at_most_k_hits_are_taken(ras, enough):
    out = ras("q", enough, limits=Limits(k=1)).invoke({"question": "Who?"})
    assert list(out["passages"]) == ["Who? A"]


def test_a_search_asks_for_five_passages(ras, fakes, enough):
    class Asked(fakes.EchoRetriever):
        def retrieve(self, query, k=1):
            asked.append(k)
            return super().retrieve(query, k)

    asked = []
    ras("q", enough, retriever=Asked()).invoke({"question": "Who?"})
    assert asked == [5]


def test_the_paper_preset_keeps_the_whole_graph(ras, enough):
    limits = Limits(max_facts=1)
    assert [
        len(
            ras("q", "b", enough, limits=limits, preset=preset).invoke(
                {"question": "Who?"}
            )["graph"]["facts"]
        )
        for preset in ("default", "paper")
    ] == [1, 4]


def test_the_graph_is_bounded(ras):
    out = ras("q", "b", "c", limits=Limits(max_facts=3, max_hops=3)).invoke(
        {"question": "Who?"}
    )
    assert len(out["graph"]["facts"]) == 3


def test_the_output_is_plain_json_under_its_documented_keys(ras, enough):
    out = ras("q", enough).invoke({"question": "Who?"})
    assert json.loads(json.dumps(out)) == out
    assert set(out) == {
        *(
            "question",
            "answer",
            "citations",
            "abstained",
            "confidence",
            "graph",
            "steps",
            "plans",
            "passages",
        ),
        *(
            "usage",
            "stop_reason",
            "failures",
            "seconds",
            "failed",
            "grounded",
            "messages",
            "reviews",
            "asked",
        ),
        *("structured_response", "suggestion", "disputes", "agreement"),
    }
    assert QuestionGraph.from_dict(out["graph"]).to_dict() == out["graph"]


def test_metadata_that_json_does_not_know_becomes_text(ras, enough):
    import datetime

    class Dated:
        def retrieve(self, query, k=5):
            from ras_agent.contracts.records import Hit

            return [
                Hit(
                    Passage(
                        "p",
                        "Text.",
                        metadata={"day": datetime.date(2024, 5, 1), "tags": ("a",)},
                    ),
                    1.0,
                )
            ]

    out = ras("q", enough, retriever=Dated()).invoke({"question": "Who?"})
    assert out["passages"]["p"]["metadata"] == {"day": "2024-05-01", "tags": ["a"]}


def test_seed_passages_take_the_place_of_the_first_retrieval_and_the_loop_goes_on(
    ras, enough
):
    seeds = ["A text.", {"id": "s2", "text": "Another."}, Passage("s3", "A third.")]
    out = ras("never asked", "b", enough).invoke(
        {"question": "Who?", "seed_passages": seeds}
    )
    assert subqueries(out) == ["Who?", "b"]
    assert list(out["passages"]) == ["given-1", "s2", "s3", "b A", "b B"]
    assert [plan["hop"] for plan in out["plans"]] == [2, 3]


def test_static_passages_are_read_one_an_iteration_without_planning(ras):
    agent = ras(RuntimeError("never asked"))
    texts = [f"given-{number} is a thing." for number in range(1, 6)]
    out = agent.invoke({"question": "Why?", "static_passages": texts})
    assert [[hit["passage_id"] for hit in step["hits"]] for step in out["steps"]] == [
        ["given-1"],
        ["given-2"],
        ["given-3"],
        ["given-4"],
        ["given-5"],
    ]
    assert (subqueries(out), out["plans"], out["stop_reason"]) == (
        ["Why?"] * 5,
        [],
        "static",
    )
    assert out["answer"] == "5 facts, 5 passages"


def test_static_iterations_spread_the_passages_and_ignore_max_hops(ras):
    inputs = {
        "question": "Why?",
        "static_passages": list("abcde"),
        "static_iterations": 2,
    }
    out = ras("q", limits=Limits(max_hops=1)).invoke(inputs)
    assert [len(step["hits"]) for step in out["steps"]] == [2, 3]


def test_static_iterations_go_on_where_one_teaches_nothing(ras, fakes):
    class Silent:
        def extract(self, passages, subquery=""):
            return Extraction()

    out = ras("q", extractor=Silent()).invoke(
        {"question": "Why?", "static_passages": list("abc")}
    )
    assert (len(out["steps"]), out["stop_reason"]) == (3, "static")


@pytest.mark.parametrize("question", ["", "  \n", None, 7])
def test_a_blank_question_is_refused(ras, question):
    with pytest.raises(ValueError, match="a question that is not blank"):
        ras("q").invoke({"question": question})


def test_a_missing_question_is_refused(ras):
    with pytest.raises(ValueError, match="a question that is not blank"):
        ras("q").invoke({"seed_passages": ["A."]})


@pytest.mark.parametrize(
    "inputs",
    [
        {"seed_passages": ["a"], "static_passages": ["b"]},
        {"static_iterations": 5},
        {"static_passages": ["a"], "static_iterations": 0},
    ],
)
def test_inputs_that_contradict_each_other_are_refused(ras, inputs):
    with pytest.raises(ValueError, match="static_"):
        ras("q").invoke({"question": "Who?", **inputs})


def test_invented_citations_are_dropped_and_recorded(ras, enough):
    class Inventive:
        def answer(self, question, graph, passages, steps):
            real = graph.facts[0]
            return Answer(
                "An answer [1][2][3].",
                (
                    Citation(
                        1,
                        "Who? A",
                        start=0,
                        end=6,
                        quote="Who? A",
                        triple_ids=(real.id, "t000000000000"),
                    ),
                    Citation(2, "nowhere"),
                    Citation(3, "Who? B", start=0, end=9999, quote="made up"),
                ),
            )

    out = ras("q", enough, answerer=Inventive()).invoke({"question": "Who?"})
    assert [
        (cited["number"], cited["passage_id"], cited["quote"])
        for cited in out["citations"]
    ] == [
        (1, "Who? A", "Who? A"),
        (3, "Who? B", ""),
    ]
    assert len(out["citations"][0]["triple_ids"]) == 1
    *dropped, unsupported = [failure["message"] for failure in out["failures"]]
    assert unsupported.startswith("no cited sentence supports the answer")
    assert [message.split(": ")[1] for message in dropped] == [
        "facts t000000000000 are not in the graph",
        "passage 'nowhere' was not retrieved",
        "characters 0 to 9999 of passage 'Who? B' do not exist",
    ]
