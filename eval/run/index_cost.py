"""Compares the costs of two ways to extract facts: from the whole corpus in advance, or from each question's
passages.

RAS (arXiv 2502.10996, appendix G) compares the two by rough ranges. Here passages and tokens are counted from
the calls of a run; if no model read passages, tokens are estimated.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import chain
from math import ceil

from ras_agent.contracts.errors import RunError
from ras_agent.contracts.records import JSON, Call, Passage
from ras_agent.eval.run.prices import Price
from ras_agent.eval.run.result import Result
from ras_agent.prompts import load, passage_block

CHARACTERS_A_TOKEN = 4
# USD with GPT-4o-mini; prompts with examples take 3 to 5 times
_GRAPHRAG_A_WORD = 0.000011
_GRAPHRAG_LEAST = 3.0
_GRAPHRAG_MOST = 5.0
# USD: 15,000 to 30,000 for the three thousand million tokens of Wikipedia 2018
_HIPPORAG_LEAST = 5.0
_HIPPORAG_MOST = 10.0


@dataclass(frozen=True, slots=True)
class ReadingCost:
    """Counts the cost of reading passages for facts: passages, calls and tokens."""

    passages: float = 0.0
    calls: float = 0.0
    input_tokens: float = 0.0
    output_tokens: float = 0.0
    measured: bool = False
    """Whether the tokens were counted from calls and not estimated."""

    def times(self, factor: float) -> ReadingCost:
        """Return the cost of `factor` times as many passages."""
        return ReadingCost(
            self.passages * factor,
            self.calls * factor,
            self.input_tokens * factor,
            self.output_tokens * factor,
            self.measured,
        )

    def cost(self, price: Price) -> float:
        """Return the cost in money, assuming that the provider cached no tokens."""
        read = round(self.input_tokens)
        return price.cost(read, round(self.output_tokens))

    @property
    def tokens(self) -> float:
        """Return the number of tokens of input and output."""
        return self.input_tokens + self.output_tokens


@dataclass(frozen=True, slots=True)
class CostComparison:
    """Compares the cost of reading the whole corpus in advance with that of reading passages when questions
    need them.
    """

    questions: int
    static: ReadingCost
    """The cost of reading the whole corpus."""
    per_question: ReadingCost
    """The mean cost of a question."""
    all_questions: ReadingCost
    """The cost of all questions if every question reads all its passages."""
    distinct_passages: ReadingCost
    """The cost of all questions if no passage is read twice."""

    @property
    def break_even(self) -> int:
        """Return how many questions use as many tokens as reading the whole corpus does; 0 if questions use no
        tokens.
        """
        each = self.per_question.tokens
        if each:
            return ceil(self.static.tokens / each)
        return 0

    def to_dict(self) -> JSON:
        """Return the comparison as JSON."""
        return {**asdict(self), "break_even_questions": self.break_even}


def mean_passage(calls: Sequence[Sequence[Call]]) -> ReadingCost:
    """Return the mean cost of reading a passage. `calls` has, for each of several passages, the calls that read
    it.

    Raises:
        ValueError: If there are no passages.
    """
    if not calls:
        raise ValueError("no passage was read: give the calls of at least one passage")
    every = list(chain.from_iterable(calls))
    total = ReadingCost(
        len(calls),
        len(every),
        sum(each.input_tokens for each in every),
        sum(each.output_tokens for each in every),
        True,
    )
    return total.times(1 / len(calls))


def compare(
    results: Sequence[Result],
    corpus: Mapping[str, Passage],
    measured: ReadingCost | None = None,
    *,
    output_ratio: float = 1.0,
    by_title: bool = False,
) -> CostComparison:
    """Compare the cost of reading the whole corpus in advance with that of reading the passages of a run's
    questions.

    Args:
        results: The results of the run.
        corpus: The passages by id, or by title with `by_title`, as results name passages.
        measured: The cost of one passage; by default the mean usage of the run's extractor. If the run has
            none, it is estimated: four characters of prompt and passage per token, and `output_ratio`.
        output_ratio: Tokens of facts for each token of a passage, for the estimate.
        by_title: Whether results name passages by title.

    Raises:
        RunError: If the run has no results, or was over another corpus.
    """
    if not results:
        raise RunError("the run has no results yet: finish it with `ras-agent eval`")
    passages_of_results = []
    for result in results:
        passages_of_results.append(_passages_of(result, corpus, by_title))
    each = measured or _of_run(results, sum(map(len, passages_of_results)))

    def reading(passages: Iterable[Passage]) -> ReadingCost:
        if each:
            return each.times(len(list(passages)))
        return _estimate(passages, output_ratio)

    everything = list(chain.from_iterable(passages_of_results))
    distinct = {passage.id: passage for passage in everything}
    total = reading(everything)
    return CostComparison(
        questions=len(results),
        static=reading(corpus.values()),
        per_question=total.times(1 / len(results)),
        all_questions=total,
        distinct_passages=reading(distinct.values()),
    )


def published_ranges(passages: Iterable[Passage]) -> dict[str, tuple[float, float]]:
    """Return the lowest and highest cost in USD of reading the corpus, by the rates of RAS's appendix G.

    The rates cover only extraction, not clustering, summaries and embeddings.
    """
    words = tokens = 0
    for passage in passages:
        words += len(passage.text.split())
        tokens += len(passage.text) // CHARACTERS_A_TOKEN
    graphrag = words * _GRAPHRAG_A_WORD
    hipporag = tokens / 1_000_000
    return {
        "GraphRAG": (graphrag * _GRAPHRAG_LEAST, graphrag * _GRAPHRAG_MOST),
        "HippoRAG": (hipporag * _HIPPORAG_LEAST, hipporag * _HIPPORAG_MOST),
    }


def _passages_of(
    result: Result, corpus: Mapping[str, Passage], by_title: bool
) -> list[Passage]:
    passages = []
    for name in result.retrieved:
        if name in corpus:
            passages.append(corpus[name])
    if result.retrieved and not passages:
        key = "ids"
        if by_title:
            key = "titles"
        raise RunError(
            f"question {result.id} read {result.retrieved[0]!r}, which is not among the {key} of this corpus; "
            "give the corpus that the run searched"
        )
    return passages


def _of_run(results: Iterable[Result], passages: int) -> ReadingCost | None:
    """Return the run's extractor's mean usage per passage, including replayed calls; None if it made no calls."""
    used: Counter[str] = Counter()
    for result in results:
        used.update(result.usage.get("by_role", {}).get("extractor", {}))
    if not used["calls"] or not passages:
        return None
    read = used["input_tokens"]
    total = ReadingCost(passages, used["calls"], read, used["output_tokens"], True)
    return total.times(1 / passages)


def _estimate(passages: Iterable[Passage], output_ratio: float) -> ReadingCost:
    prompt = sum(len(turn.text) for turn in load("triples").turns)
    count = inputs = outputs = 0.0
    for passage in passages:
        count += 1
        inputs += (prompt + len(passage_block([passage]))) / CHARACTERS_A_TOKEN
        outputs += output_ratio * len(passage.text) / CHARACTERS_A_TOKEN
    return ReadingCost(count, count, inputs, outputs)
