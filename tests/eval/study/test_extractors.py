"""Extractors against gold triples."""

import json
from pathlib import Path

import pytest

from ras_agent.contracts.errors import IngestError, ModelCallError
from ras_agent.contracts.records import (
    Call,
    Extraction,
    Failure,
    Passage,
    Source,
    Triple,
)
from ras_agent.eval.metrics.graphs import ends_score, soft_triple_score, triple_rouge
from ras_agent.eval.metrics.registry import Outcome, score
from ras_agent.eval.question import Question
from ras_agent.eval.study.extractors import (
    GOLD_TRIPLES,
    bare_triples,
    counted_tokens,
    extraction_answerer,
)
from ras_agent.running.budget import current_ledger

GOLD = [["Ida Falk", "born in", "Visby"], ["Visby", "on", "Gotland"]]


class Reader:
    """Reads scripted facts, and remembers the passage."""

    name = "reader"

    def __init__(self, extraction: Extraction) -> None:
        self.extraction, self.passages = extraction, list[Passage]()

    def extract(self, passages: list[Passage], subquery: str = "") -> Extraction:
        self.passages += passages
        current_ledger().calls.append(Call("extractor", 1, "m", 5, 2))
        return self.extraction


def test_a_gold_file_is_texts_with_triples(tmp_path: Path) -> None:
    path = tmp_path / "gold.jsonl"
    path.write_text(
        json.dumps(
            {
                "text": "Ida Falk was born in Visby.",
                "triples": GOLD,
                "title": "Ida Falk",
            }
        )
        + "\n"
    )
    (question,) = GOLD_TRIPLES.load(path)
    assert (question.id, question.question, question.metadata["title"]) == (
        "1",
        "Ida Falk was born in Visby.",
        "Ida Falk",
    )
    path.write_text('{"text": "x", "triples": [["a", "b"], ["a", "b", "c"]]}\n')
    (question,) = GOLD_TRIPLES.load(path)
    assert (question.metadata["triples"], question.metadata["unusable"]) == (
        [["a", "b", "c"]],
        1,
    )
    path.write_text('{"text": "x", "triples": "none"}\n')
    with pytest.raises(IngestError, match=r"gold\.jsonl line 1"):
        GOLD_TRIPLES.load(path)


async def test_the_extractor_reads_the_text_under_its_title_and_its_calls_are_counted() -> (
    None
):
    triple = Triple("Ida Falk", "was born in", "Visby", (Source("1", 0, 4),))
    reader = Reader(Extraction((triple,)))
    out = await extraction_answerer(reader)(
        Question("1", "Text.", (), metadata={"title": "Ida Falk"})
    )
    assert reader.passages == [Passage("1", "Text.", "Ida Falk")]
    assert out["answer"] == "(S> Ida Falk | P> was born in | O> Visby)"
    assert (out["usage"]["llm_calls"], out["usage"]["output_tokens"]) == (1, 2)
    assert [fact["object"] for fact in out["graph"]["facts"]] == ["Visby"]


async def test_an_extractor_that_only_failed_is_an_error_and_one_that_read_nothing_is_not() -> (
    None
):
    question = Question("1", "Text.", ())
    with pytest.raises(ModelCallError, match="late; gone"):
        await extraction_answerer(
            Reader(
                Extraction(
                    (), (Failure("extractor", "late"), Failure("extractor", "gone"))
                )
            )
        )(question)
    assert (await extraction_answerer(Reader(Extraction()))(question))["answer"] == ""


def test_tokens_are_words_and_marks_of_the_triples_alone() -> None:
    assert counted_tokens("Ida Falk, 1912.") == 5
    answer = "(S> Ida Falk | P> born in | O> Visby)\n(S> a (b) | P> is | O> c)"
    assert counted_tokens(bare_triples(answer)) == 5 + 6


def test_ends_count_whatever_the_relation_is_called() -> None:
    found = ends_score(
        [("The Visby", "lies on", "gotland"), ("Visby", "has", "wall")], GOLD
    )
    assert (found.precision, found.recall, found.f1) == (0.5, 0.5, 0.5)


def test_soft_pairs_are_one_to_one_and_the_best_come_first() -> None:
    # words shared with (Ida Falk, born in, Visby): 5 of 5 + 6, and with the second 1 of 6 + 3
    found = soft_triple_score([("Ida Falk", "was born in", "Visby")], GOLD)
    assert found.precision == pytest.approx(2 * 5 / 11)
    assert found.recall == pytest.approx(5 / 11)
    # the second copy in other words finds its gold triple taken
    twice = soft_triple_score(
        [("Ida Falk", "born in", "Visby"), ("Ida Falk", "born in", "town")], GOLD[:1]
    )
    assert (twice.precision, twice.recall) == (0.5, 1.0)
    assert soft_triple_score([], GOLD).f1 == soft_triple_score(GOLD, []).f1 == 0.0


def test_rouge_of_triples_counts_words_in_order() -> None:
    pytest.importorskip("rouge_score")
    # gold: ida falk born in visby / visby on gotland, 8 words; found: visby on gotland / ida falk was born, 7 words
    found = [("Visby", "on", "Gotland"), ("Ida", "Falk was", "born")]
    precision, recall = 6 / 7, 6 / 8  # visby (once), on, gotland, ida, falk, born
    assert triple_rouge("rouge1", found, GOLD) == pytest.approx(
        2 * precision * recall / (precision + recall)
    )
    precision, recall = 3 / 6, 3 / 7  # visby on, on gotland, ida falk
    assert triple_rouge("rouge2", found, GOLD) == pytest.approx(
        2 * precision * recall / (precision + recall)
    )
    precision, recall = 3 / 7, 3 / 8  # ida falk born, or visby on gotland
    assert triple_rouge("rougeL", found, GOLD) == pytest.approx(
        2 * precision * recall / (precision + recall)
    )
    assert triple_rouge("rouge1", [], GOLD) == 0.0
    scores = score(
        Question("1", "", (), metadata={"triples": GOLD}),
        Outcome(""),
        GOLD_TRIPLES.metrics,
    )
    assert (
        scores["triple_rouge1"],
        scores["triple_rouge2"],
        scores["triple_rougel"],
    ) == (0.0, 0.0, 0.0)


def test_all_three_ways_are_metrics_by_name() -> None:
    question = Question("1", "Text.", (), metadata={"triples": GOLD})
    facts = {"t": Triple("Visby", "lies on", "Gotland")}
    scores = score(question, Outcome("", facts=facts), GOLD_TRIPLES.metrics)
    assert (
        scores["triple_f1"],
        scores["triple_ends_precision"],
        scores["triple_ends_recall"],
    ) == (0.0, 1.0, 0.5)
    assert scores["triple_soft_precision"] == pytest.approx(6 / 7)
