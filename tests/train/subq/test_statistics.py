"""Statistics in the rows of RAS's Table 4."""

from ras_agent.contracts.records import Passage
from ras_agent.eval.question import Question
from ras_agent.train.subq.label import no_retrieval_samples, retrieval_samples
from ras_agent.train.subq.samples import SubqStep
from ras_agent.train.subq.sources import SubqQuestion
from ras_agent.train.subq.statistics import statistics

CRUX = SubqStep(
    "Who published Crux?",
    (Passage("p", "", "Crux"),),
    (("Crux", "was published by", "CrossGen"),),
)
CROSSGEN = SubqStep(
    "When was CrossGen launched?",
    (Passage("q", "", "CrossGen"),),
    (("CrossGen", "was launched in", "1998"), ("CrossGen", "is in", "Tampa")),
)


def _asked(name: str, *answers: str) -> SubqQuestion:
    return SubqQuestion("test", Question(name, f"What is {name}?", answers), ())


SAMPLES = [
    *retrieval_samples(_asked("a", "1998"), (CRUX, CROSSGEN), "train"),
    *retrieval_samples(_asked("b", "Ulm"), (CRUX,), "train"),
    *retrieval_samples(_asked("c", "yes"), (CROSSGEN,), "validation"),
    *no_retrieval_samples(_asked("d", "2"), 2, "validation"),
]
FIGURES = statistics(SAMPLES)


def test_samples_are_counted_by_kind_label_and_split() -> None:
    plan, answer = FIGURES["plan"], FIGURES["answer"]
    assert (plan["samples"], plan["labels"], plan["added"]) == (
        8,
        {"subq": 4, "sufficient": 3, "no_retrieval": 1},
        3,
    )
    assert (answer["samples"], answer["labels"]) == (
        4,
        {"subq": 0, "sufficient": 3, "no_retrieval": 1},
    )
    assert (FIGURES["questions"], FIGURES["splits"]) == (
        4,
        {"train": 7, "validation": 5},
    )


def test_labels_are_counted_by_hops_without_what_was_added() -> None:
    assert FIGURES["labels by hops"] == {
        "1": {"subq": 0, "sufficient": 2, "no_retrieval": 0},
        "2": {"subq": 1, "sufficient": 1, "no_retrieval": 1},
    }


def test_graphs_and_tokens_are_described_by_their_spread() -> None:
    answer = FIGURES["answer"]
    assert answer["sub-queries"] == {"min": 0, "mean": 1, "median": 1.0, "max": 2}
    assert answer["triples"] == {"min": 0, "mean": 1.5, "median": 1.5, "max": 3}
    assert answer["nodes"] == {"min": 0, "mean": 2.2, "median": 2.5, "max": 4}
    assert answer["edges"] == {"min": 0, "mean": 1.5, "median": 1.5, "max": 3}
    assert FIGURES["plan"]["sub-query tokens"]["min"] == 13
    assert (
        FIGURES["plan"]["input tokens"]["min"] < FIGURES["plan"]["input tokens"]["max"]
    )


def test_answers_that_the_triples_state_are_counted_without_yes_and_no() -> None:
    assert FIGURES["answers in their triples"] == "1 of 2"


def test_validation_questions_that_share_a_document_with_training_are_counted() -> None:
    assert FIGURES["validation questions that share a document with training"] == 1


def test_no_samples_have_statistics_too() -> None:
    assert statistics([])["plan"]["triples"] == {
        "min": 0,
        "mean": 0,
        "median": 0,
        "max": 0,
    }
