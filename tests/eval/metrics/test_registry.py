"""Metrics by name on one question and outcome."""

from typing import Any

import pytest

from ras_agent.contracts.errors import UnknownName
from ras_agent.contracts.records import Citation, Passage, Triple
from ras_agent.eval.metrics.registry import Outcome, metric_names, score
from ras_agent.eval.question import Question
from ras_agent.eval.run.result import result_of

ORR = Passage("p1", "Tam Orr owned Fell Mill.", "Fell Mill")
BLAIR = Passage("p2", "Orr was born in Blair.", "Tam Orr")
FAR = Passage("p3", "Far Mill is far.", "Far Mill")
QUESTION = Question(
    "q", "Where was the owner of Fell Mill born?", ("Blair",), ("p1", "p2")
)


def _outcome(**named: Any) -> Outcome:
    return Outcome(
        **{
            "answer": "Blair",
            "passages": (FAR, ORR, BLAIR),
            "hops": 2,
            "stop_reason": "sufficient",
            **named,
        }
    )


def test_ranked_metrics_take_any_cutoff() -> None:
    names = (
        "recall@1",
        "recall@2",
        "recall@3",
        "all_recall@2",
        "all_recall@3",
        "hit@1",
        "hit@2",
        "mrr",
    )
    assert list(score(QUESTION, _outcome(), names).values()) == [
        0.0,
        0.5,
        1.0,
        0.0,
        1.0,
        0.0,
        1.0,
        0.5,
    ]


def test_gold_titles_rank_by_title_and_count_a_title_once() -> None:
    by_title = Question("q", "?", ("Blair",), ("Tam Orr",), by_title=True)
    second = Passage("p4", "More on Far Mill.", "Far Mill")
    outcome = _outcome(passages=(FAR, second, BLAIR))
    assert score(by_title, outcome, ("recall@2", "mrr")) == {
        "recall@2": 1.0,
        "mrr": 0.5,
    }


def test_what_does_not_apply_is_left_out() -> None:
    bare = Question("q", "?", ())
    assert (
        score(
            bare,
            _outcome(),
            (
                "em",
                "f1",
                "golden_match",
                "recall@5",
                "mrr",
                "accuracy",
                "answer_coverage",
            ),
        )
        == {}
    )
    assert (
        score(
            QUESTION,
            _outcome(stop_reason="max_hops"),
            ("sufficiency_precision", "stopped_early"),
        )
        == {}
    )


@pytest.mark.parametrize(
    ("hops", "reason", "expected"),
    [
        (
            2,
            "sufficient",
            {"sufficiency_precision": 1.0, "stopped_early": 0.0, "stopped_late": 0.0},
        ),
        (
            1,
            "sufficient",
            {"sufficiency_precision": 0.0, "stopped_early": 1.0, "stopped_late": 0.0},
        ),
        (
            3,
            "sufficient",
            {"sufficiency_precision": 0.0, "stopped_early": 0.0, "stopped_late": 1.0},
        ),
        (
            0,
            "no_retrieval",
            {"sufficiency_precision": 0.0, "stopped_early": 1.0, "stopped_late": 0.0},
        ),
    ],
)
def test_a_planners_own_stop_is_judged_by_gold_hops(
    hops: int, reason: str, expected: dict[str, float]
) -> None:
    names = ("sufficiency_precision", "stopped_early", "stopped_late")
    assert score(QUESTION, _outcome(hops=hops, stop_reason=reason), names) == expected


def test_a_planners_own_stop_is_judged_by_gold_passages() -> None:
    assert score(QUESTION, _outcome(hops=1), ("sufficient_evidence",)) == {
        "sufficient_evidence": 1.0
    }
    assert score(QUESTION, _outcome(passages=(ORR, FAR)), ("sufficient_evidence",)) == {
        "sufficient_evidence": 0.0
    }
    assert score(QUESTION, _outcome(passages=()), ("sufficient_evidence",)) == {
        "sufficient_evidence": 0.0
    }
    assert (
        score(QUESTION, _outcome(stop_reason="max_hops"), ("sufficient_evidence",))
        == {}
    )


def test_citations_are_held_to_what_they_cite() -> None:
    cited = _outcome(citations=(Citation(1, "p1"), Citation(2, "p2")))
    assert score(QUESTION, cited, ("citation_support", "citation_precision")) == {
        "citation_support": 1.0,
        "citation_precision": 0.5,
    }
    assert score(QUESTION, _outcome(), ("citation_support", "citation_precision")) == {
        "citation_support": 0.0
    }
    assert score(QUESTION, _outcome(answer="yes"), ("citation_support",)) == {}
    assert (
        score(
            QUESTION,
            _outcome(answer="I don't know.", abstained=True),
            ("citation_support",),
        )
        == {}
    )


def test_what_the_run_says_of_its_citations_counts() -> None:
    cited = _outcome(
        citations=(
            Citation(1, "p1", supported=False),
            Citation(2, "p2", supported=None),
        )
    )
    assert score(QUESTION, cited, ("citation_support", "citation_precision")) == {
        "citation_precision": 0.0
    }


def test_the_gold_answer_is_looked_for_in_passages_and_in_facts() -> None:
    facts = {"t1": Triple("Tam Orr", "owned", "Fell Mill")}
    names = ("answer_in_passages", "answer_in_facts")
    assert score(QUESTION, _outcome(facts=facts), names) == {
        "answer_in_passages": 1.0,
        "answer_in_facts": 0.0,
    }


def test_accuracy_reads_options_verdicts_and_classes() -> None:
    choice = Question(
        "q",
        "?",
        ("B",),
        metadata={"choices": {"A": "a mill", "B": "a river"}, "label": "B"},
    )
    assert score(choice, _outcome(answer="(B) a river"), ("accuracy",)) == {
        "accuracy": 1.0
    }
    assert score(choice, _outcome(answer="A mill"), ("accuracy",)) == {"accuracy": 0.0}
    verdict = Question("q", "?", ("false",), metadata={"label": "false"})
    assert score(verdict, _outcome(answer="This is not true."), ("accuracy",)) == {
        "accuracy": 1.0
    }
    stance = Question(
        "q",
        "?",
        ("counter",),
        metadata={"label": "counter", "classes": ["support", "counter"]},
    )
    assert score(stance, _outcome(answer="They counter each other"), ("accuracy",)) == {
        "accuracy": 1.0
    }


def test_answer_sets_are_split_and_abstaining_finds_none() -> None:
    several = Question("q", "?", ("Ardle", "Isla", "Tay"))
    names = ("answer_precision", "answer_recall", "answer_f1", "contained_f1", "hr@1")
    assert list(score(several, _outcome(answer="Isla, the Don"), names).values()) == [
        0.5,
        1 / 3,
        0.4,
        # one prediction: the published rule parts at bars and lines
        0.5,
        1.0,
    ]
    abstained = _outcome(answer="Isla", abstained=True)
    assert list(score(several, abstained, names).values()) == [0.0, 0.0, 0.0, 0.0, 0.0]
    assert score(Question("q", "?", ()), _outcome(answer="Isla"), names) == {}


def test_coverage_counts_readings_and_an_abstention_covers_none() -> None:
    asked = Question(
        "q", "?", ("Isla",), metadata={"short_answers": [["Isla", "the Isla"], ["Don"]]}
    )
    assert score(asked, _outcome(answer="It is the Isla."), ("answer_coverage",)) == {
        "answer_coverage": 0.5
    }
    abstained = _outcome(answer="It is the Isla.", abstained=True)
    assert score(asked, abstained, ("answer_coverage",)) == {"answer_coverage": 0.0}


def test_an_abstention_scores_nothing() -> None:
    closed = Question("q", "?", ("no",), metadata={"label": "false"})
    outcome = _outcome(answer="I don't know.", abstained=True)  # "know" holds "no"
    scores = score(
        closed, outcome, ("em", "f1", "golden_match", "rouge_lsum", "accuracy")
    )
    assert scores == {
        "em": 0.0,
        "f1": 0.0,
        "golden_match": 0.0,
        "rouge_lsum": 0.0,
        "accuracy": 0.0,
    }


def test_an_outcome_is_made_of_an_agents_output() -> None:
    out = {
        "answer": "Blair",
        "citations": [Citation(1, "p2").to_dict()],
        "passages": {"p1": ORR.to_dict(), "p2": BLAIR.to_dict()},
        "graph": {
            "facts": [
                {
                    "id": "t1",
                    "subject": "Orr",
                    "predicate": "born in",
                    "object": "Blair",
                    "sources": [],
                }
            ]
        },
        "steps": [{}, {}],
        "stop_reason": "sufficient",
    }
    outcome = Outcome.from_output(out)
    assert outcome.passages == (ORR, BLAIR)
    assert (outcome.hops, outcome.stop_reason, outcome.abstained) == (
        2,
        "sufficient",
        False,
    )
    assert outcome.facts == {"t1": Triple("Orr", "born in", "Blair")}
    assert score(QUESTION, outcome, ("citation_support", "answer_in_facts")) == {
        "citation_support": 1.0,
        "answer_in_facts": 1.0,
    }


def test_the_pieces_of_a_gold_passage_count_as_that_passage() -> None:
    question = Question("q", "?", (), ("a", "b#1"))
    names = [("c#1", "c"), ("a#2", "a"), ("b#1", "b"), ("a#1", "a")]
    outcome = _outcome(
        passages=tuple(
            Passage(name, "Text.", "Title", document) for name, document in names
        )
    )
    assert outcome.ranked(question) == ["c#1", "a", "b#1"]
    assert score(question, outcome, ("recall@2", "recall@3")) == {
        "recall@2": 0.5,
        "recall@3": 1.0,
    }
    assert result_of(question, {"passages": {p.id: p.to_dict() for p in outcome.passages}}, seconds=1).retrieved == (
        "c#1", "a", "b#1", "a",
    )  # fmt: skip


@pytest.mark.parametrize("name", ["f2", "recall@0", "recall@x", "f1@5"])
def test_an_unknown_metric_lists_the_known_ones(name: str) -> None:
    with pytest.raises(
        UnknownName, match=r"unknown metric '.*'; known: accuracy, .*recall@k"
    ):
        score(QUESTION, _outcome(), (name,))
    assert "recall@k" in metric_names()
