"""An answer is asked for again without each sentence of its proof."""

from __future__ import annotations

from collections.abc import Sequence

from ras_agent.contracts.records import (
    Answer,
    Citation,
    Hit,
    Passage,
    Source,
    Step,
    Triple,
)
from ras_agent.eval.study.counterfactuals import Removal, removals, without
from ras_agent.question_graph import QuestionGraph
from ras_agent.running.trace import Trace

VELMORA = Passage("v", "It was founded by Ines Brandl. It makes clocks.", "Velmora")
BRANDL = Passage("i", "She was born in Ostrell.", "Ines Brandl")
BORN = Triple("Ines Brandl", "was born in", "Ostrell", (Source("i", 0, 24, 1),))
MAKES = Triple("Velmora", "makes", "clocks", (Source("v", 31, 47, 1),))
FOUNDED = Citation(1, "v", "Velmora", 0, 30, "It was founded by Ines Brandl.")
BIRTH = Citation(2, "i", "Ines Brandl", 0, 24, BRANDL.text, (BORN.id,))
TRACE = Trace(
    "Where was the founder of Velmora born?",
    "Ostrell",
    citations=(FOUNDED, BIRTH),
    steps=(Step(1, "Velmora?", (Hit(VELMORA, 1.0), Hit(BRANDL, 0.5))),),
    graph=QuestionGraph((BORN, MAKES)),
    passages={"v": VELMORA, "i": BRANDL},
)


class _Answerer:
    """Answerer that says "Ostrell" where the texts hold all of `needs`, and else abstains."""

    name = "needs"

    def __init__(self, *needs: str) -> None:
        self._needs = needs

    def answer(
        self,
        question: str,
        graph: QuestionGraph,
        passages: Sequence[Passage],
        steps: Sequence[Step],
    ) -> Answer:
        text = " ".join(passage.text for passage in passages)
        return (
            Answer("Ostrell")
            if all(need in text for need in self._needs)
            else Answer("", abstained=True)
        )


def test_an_answer_that_needs_both_sentences_falls_without_either_and_stays_without_another() -> (
    None
):
    assert removals(TRACE, _Answerer("founded", "born")) == [
        Removal("v", 0, 30, True, True, ""),
        Removal("i", 0, 24, True, True, ""),
        Removal("v", 31, 47, False, False, "Ostrell"),
    ]


def test_an_answer_that_does_not_need_a_sentence_of_its_proof_stays() -> None:
    assert [one.falls for one in removals(TRACE, _Answerer("born"))] == [
        False,
        True,
        False,
    ]


def test_a_run_without_a_proof_is_not_asked_again() -> None:
    assert (
        removals(Trace(TRACE.question, "yes", citations=TRACE.citations), _Answerer())
        == []
    )


def test_what_is_left_has_its_places_and_lacks_the_facts_that_were_read_there_alone() -> (
    None
):
    left = without(TRACE, FOUNDED)
    assert left.passages["v"].text == " " * 30 + " It makes clocks."
    assert [fact.object for fact in left.graph.facts] == ["Ostrell", "clocks"]
    left = without(TRACE, BIRTH)
    assert list(left.passages) == ["v"]
    assert [hit.passage.id for hit in left.steps[0].hits] == ["v"]
    assert [fact.object for fact in left.graph.facts] == ["clocks"]
