"""Static indexing against structuring per question, on figures that can be counted by hand."""

import pytest

from ras_agent.contracts.errors import RunError
from ras_agent.contracts.records import Call, Passage
from ras_agent.eval.run.index_cost import (
    ReadingCost,
    compare,
    mean_passage,
    published_ranges,
)
from ras_agent.eval.run.prices import Price
from ras_agent.eval.run.result import Result
from tests.messages import says

CORPUS = {f"p{n}": Passage(f"p{n}", "word " * 80, f"T{n}") for n in range(10)}
MEASURED = ReadingCost(1, 1, 100, 50, measured=True)
RESULTS = [
    Result("q1", "?", retrieved=("p1", "p2")),
    Result("q2", "?", retrieved=("p2", "p3", "p4")),
]


def test_passages_are_counted_and_tokens_multiplied() -> None:
    found = compare(RESULTS, CORPUS, MEASURED)
    assert found.static == ReadingCost(10, 10, 1000, 500, True)
    assert found.all_questions == ReadingCost(5, 5, 500, 250, True)
    assert found.distinct_passages == ReadingCost(4, 4, 400, 200, True)
    assert found.per_question == ReadingCost(2.5, 2.5, 250, 125, True)
    assert found.break_even == 4  # 1500 tokens beforehand, 375 a question
    assert found.static.cost(Price(2.0, 4.0, 1.0)) == pytest.approx(
        (1000 * 2 + 500 * 4) / 1e6
    )


def test_the_runs_own_extractor_is_the_first_choice() -> None:
    used = {
        "by_role": {"extractor": {"calls": 3, "input_tokens": 600, "output_tokens": 60}}
    }
    found = compare(
        [Result("q", "?", retrieved=("p1", "p2", "p3"), usage=used)], CORPUS
    )
    assert found.static == ReadingCost(10, 10, 2000, 200, True)


def test_without_any_call_tokens_are_estimated_from_the_texts() -> None:
    found = compare(RESULTS, CORPUS, output_ratio=0.5)
    assert not found.static.measured
    assert found.static.output_tokens == 10 * 0.5 * 400 / 4
    assert found.static.input_tokens > 10 * 400 / 4  # the prompt comes on top


def test_titles_name_passages_where_the_run_did() -> None:
    titled = {passage.title: passage for passage in CORPUS.values()}
    found = compare(
        [Result("q", "?", retrieved=("T1", "T9"))], titled, MEASURED, by_title=True
    )
    assert found.distinct_passages.passages == 2


def test_another_corpus_and_an_empty_run_are_refused() -> None:
    with pytest.raises(RunError, match=says("'x'", "not among the ids", "corpus")):
        compare([Result("q", "?", retrieved=("x",))], CORPUS)
    with pytest.raises(RunError, match="no results yet"):
        compare([], CORPUS)


def test_a_measured_passage_is_the_mean_of_those_kept() -> None:
    first, second = Call("extractor", 0, "m", 100, 10), Call("extractor", 0, "m", 40, 6)
    assert mean_passage([(first, second), (second,)]) == ReadingCost(
        1, 1.5, 90, 11, True
    )
    with pytest.raises(ValueError, match="no passage was read"):
        mean_passage([])


def test_published_rates_are_those_of_appendix_g() -> None:
    ranges = published_ranges(CORPUS.values())
    assert ranges["GraphRAG"] == pytest.approx((800 * 0.000011 * 3, 800 * 0.000011 * 5))
    assert ranges["HippoRAG"] == pytest.approx((1000 / 1e6 * 5, 1000 / 1e6 * 10))
