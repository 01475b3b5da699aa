"""Makes training samples for planner and answerer by Algorithm 1 of RAS, and writes them with a card of statistics.

    python -m ras_agent.train.subq.build --musique musique_ans_v1.0_train.jsonl --strategyqa train.json --out subq.jsonl
    python -m ras_agent.train.subq.build --hotpotqa hotpot_train_v1.1.json --model openai:gpt-4o-mini \
        --base-model vllm:http://localhost:8000/v1#llama --out subq.jsonl

The first needs no model. In the second, --model picks the documents of each question and writes their sub-queries, and
the questions that --base-model answers without passages are labelled [NO_RETRIEVAL]. A killed command can be run again:
replies are in --cache, so no model is asked twice. Samples are written at the end, in the order of the files: equal
files, replies and settings give equal bytes. Build only from training splits: this program cannot know which questions
you report on.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import AsyncIterator, Iterator, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any, cast, get_args

from ras_agent.config.settings import Settings
from ras_agent.contracts.errors import (
    IngestError,
    ParseError,
    PromptTooLong,
    SettingsError,
)
from ras_agent.contracts.records import Answer, Call, Extraction, Passage, Usage
from ras_agent.eval.metrics import exact_match
from ras_agent.eval.question import Question
from ras_agent.eval.question_file import OnBad
from ras_agent.graphs.resolve import extractor_from_settings
from ras_agent.question_graph import QuestionGraph
from ras_agent.running.budget import Ledger, metered
from ras_agent.running.calling import acall
from ras_agent.running.program import run_program
from ras_agent.tools.chat.client import ChatSettings, as_chat
from ras_agent.tools.retrieve.bm25 import BM25Retriever
from ras_agent.tools.roles import RoleOptions, resolve_answerer, role_name
from ras_agent.tools.store.card import write_card
from ras_agent.tools.structure.given_triples import given_triples
from ras_agent.tools.workers.pool import Here, results_in_order
from ras_agent.train.data import split_of
from ras_agent.train.options import config_from
from ras_agent.train.ranges import COUNT, NATURAL, SHARE, check_choices, check_ranges
from ras_agent.train.subq.decompose import Decomposer
from ras_agent.train.subq.label import (
    First,
    answer_sample,
    as_subquery,
    no_retrieval_samples,
    retrieval_samples,
)
from ras_agent.train.subq.samples import SubqSample, SubqStep, write_samples
from ras_agent.train.subq.sources import (
    SubqQuestion,
    arc_easy,
    asqa,
    hotpotqa,
    hotpotqa_subq,
    musique,
    ready_triples,
    strategyqa,
    two_wiki,
    with_triples,
)
from ras_agent.train.subq.statistics import statistics

_RANGES = {
    "validation": SHARE,
    "concurrency": COUNT,
    "limit": COUNT,
    "opening": NATURAL,
}
_EVERY = 100  # questions between two lines of progress


@dataclass(frozen=True, slots=True)
class SubqConfig:
    """Holds the options of a build. Raises SettingsError for a number out of its range, or for a missing option."""

    out: Path
    """The samples; their card is next to them (.json)."""
    musique: tuple[Path, ...] = ()
    """Questions of MuSiQue's training part."""
    strategyqa: tuple[Path, ...] = ()
    """Questions of StrategyQA with their facts."""
    two_wiki: tuple[Path, ...] = ()
    """Questions of 2WikiMultihopQA's training part with sub-questions (`qa_pairs`)."""
    hotpotqa_subq: tuple[Path, ...] = ()
    """RAS's published questions, with sub-queries."""
    hotpotqa: tuple[Path, ...] = ()
    """Questions with supporting titles; needs --model. If they have no contexts, a corpus.jsonl next to the file is
    read."""
    arc_easy: tuple[Path, ...] = ()
    """Questions of ARC-Easy's training part, which teach only to answer; passages in `ctxs` are read."""
    asqa: tuple[Path, ...] = ()
    """Questions of ASQA's training part, which teach only to answer; passages in `docs` are read."""
    limit: int | None = None
    """The maximum number of questions of each file, from its beginning."""
    model: str | object = None
    """The chat model that picks documents and writes sub-queries, as --planner of ras-agent."""
    base_model: str | object = None
    """Answers questions without passages, as --answerer of ras-agent; --model if not given, and without either no
    question is tried without retrieval."""
    extractor: str | object = "offline"
    """The extractor of the triples, as --extractor of ras-agent."""
    openie: tuple[Path, ...] = ()
    """Documents with given triples, which the extractor does not read."""
    cache: Path | None = None
    """Stores the models' replies; OUT.replies.sqlite if not given."""
    triple_cache: Path | None = None
    """Stores triples that a model has read, as --triple-cache of ras-agent."""
    first: str = "question"
    """The text of the added first search: question, subquery or none; see `label.First`."""
    texts: bool = False
    """Passages keep their texts, for trainings with --layout chain-of-text."""
    opening: int = 0
    """Begin each history with a search for the question itself that finds this many passages; 0 for no such search."""
    validation: float = 0.1
    """The share of questions to validate with."""
    concurrency: int = 8
    """The number of questions that are processed at the same time."""

    def __post_init__(self) -> None:
        check_ranges(self, _RANGES)
        check_choices(self, {"first": get_args(First)})
        planned = (
            *(self.musique, self.strategyqa, self.two_wiki),
            *(self.hotpotqa_subq, self.hotpotqa),
        )
        if not any((*planned, self.arc_easy, self.asqa)):
            raise SettingsError(
                "there is nothing to build from: give --musique, --strategyqa, --two-wiki, --hotpotqa-subq, "
                "--hotpotqa, --arc-easy or --asqa FILE"
            )
        if self.hotpotqa and self.model is None:
            raise SettingsError(
                "HotpotQA's questions come without sub-queries: give the model that writes them with --model"
            )
        if self.opening and self.first == "subquery":
            raise SettingsError(
                "--opening searches for the question itself first, but --first subquery does not: leave one of the two "
                "options out"
            )


def build(config: SubqConfig) -> dict[str, Any]:
    """Write the samples and their card, and return the card.

    Raises:
        RasError: If a file cannot be read or a model call fails.
    """
    left_out: list[str] = []
    samples: list[SubqSample] = []
    calls: list[Call] = []
    worker = _Worker(config)

    def leave_out(problem: IngestError) -> None:
        left_out.append(str(problem))
        print(f"left out: {problem}", flush=True)

    questions = _questions(config, leave_out)
    results = results_in_order(
        Here(worker.work), questions, concurrency=config.concurrency
    )
    for count, (item, outcome) in enumerate(results, 1):
        samples += outcome.samples
        calls += outcome.calls
        if outcome.problem:
            leave_out(
                IngestError(f"{item.source} {item.question.id}: {outcome.problem}")
            )
        if count % _EVERY == 0:
            print(f"{count} questions, {len(samples)} samples", flush=True)
    if not samples:
        raise IngestError(
            "no question gave a sample, for the reasons in the lines above: correct these questions, or give others"
        )
    write_samples(config.out, samples)
    card = {
        "what": "samples for planner and answerer, labelled by Algorithm 1 of RAS",
        "made_by": "python -m ras_agent.train.subq.build",
        "settings": {
            field.name: _plain(getattr(config, field.name)) for field in fields(config)
        },
        "statistics": statistics(samples),
        "sources": dict(Counter(sample.source for sample in samples)),
        "calls": {
            name: value
            for name, value in Usage(tuple(calls)).to_dict().items()
            if name != "calls"
        },
        "left_out": left_out,
    }
    write_card(config.out.with_suffix(".json"), card)
    return card


@dataclass(frozen=True, slots=True)
class _Outcome:
    """Holds the samples of a question, or the reason why there are none, and the model calls that were made."""

    samples: tuple[SubqSample, ...] = ()
    problem: str = ""
    calls: tuple[Call, ...] = ()


class _Worker:
    """Makes the samples of questions."""

    def __init__(self, config: SubqConfig) -> None:
        asks = config.model is not None or config.base_model is not None
        cache = config.cache or (
            config.out.with_suffix(".replies.sqlite") if asks else None
        )
        settings = Settings(
            temperature=0.0, cache=cache, triple_cache=config.triple_cache
        )
        chat = ChatSettings.of(settings)
        self._config = config
        self._extractor = extractor_from_settings(settings, config.extractor)
        self._decomposer = None
        if config.model is not None:
            self._decomposer = Decomposer(as_chat(config.model, chat))
        base = config.base_model
        if base is None:
            base = config.model
        self._base = None
        if base is not None:
            self._base = resolve_answerer(base, RoleOptions(chat=chat))

    async def work(self, item: SubqQuestion) -> _Outcome:
        """Return the samples of a question, or why there are none. Raises the error of a failed model call."""
        with metered(Ledger("subq")) as ledger:
            try:
                samples = await self._samples(item)
                problem = ""
            except (ParseError, PromptTooLong) as error:
                samples = []
                problem = str(error)
        return _Outcome(tuple(samples), problem, tuple(ledger.calls))

    async def _samples(self, item: SubqQuestion) -> list[SubqSample]:
        text = item.question.question
        split = split_of(text, self._config.validation)
        if item.only_answer:
            found = None
            if item.documents:
                found = await self._step(text, item.documents)
            return [answer_sample(item, found, split)]
        if await self._is_known(item.question):
            return no_retrieval_samples(item, len(item.documents), split)
        steps = [step async for step in self._steps(item)]
        opening = None
        if item.opening:
            opening = await self._step(text, item.opening)
        return retrieval_samples(
            item, steps, split, cast(First, self._config.first), opening
        )

    async def _is_known(self, question: Question) -> bool:
        """Tell whether the base model gives the right answer without passages."""
        if self._base is None:
            return False
        answer: Answer = await acall(
            self._base, "answer", question.question, QuestionGraph(), (), ()
        )
        return (
            not answer.abstained and exact_match(answer.text, question.answers) == 1.0
        )

    async def _steps(self, item: SubqQuestion) -> AsyncIterator[SubqStep]:
        """Yield the searches of a question, each with the triples of its document."""
        if item.subqueries:
            for text, document in zip(item.subqueries, item.documents, strict=True):
                yield await self._step(as_subquery(text), (document,))
            return
        if self._decomposer is None:
            raise ParseError(
                "it comes without sub-queries, and there is no --model to write them"
            )
        documents = await self._decomposer.documents(item.question, item.documents)
        if not documents:
            raise ParseError("the model says that no supporting document helps")
        searches: list[str] = []
        for place, document in enumerate(documents):
            searches.append(
                await self._decomposer.subquery(
                    item.question, document, searches, documents[:place]
                )
            )
            yield await self._step(searches[-1], (document,))

    async def _step(self, subquery: str, passages: tuple[Passage, ...]) -> SubqStep:
        triples, unread = given_triples(passages)
        extraction = Extraction()
        if unread:
            extraction = await acall(self._extractor, "extract", unread, subquery)
        triples += extraction.triples
        if not triples:  # the evidence of an empty search cannot suffice
            reason = "the extractor found none"
            if extraction.failures:
                reason = extraction.failures[0].message
            names = ", ".join(repr(passage.id) for passage in passages)
            raise ParseError(f"no triples in {names}: {reason}")
        facts = dict.fromkeys(
            (triple.subject, triple.predicate, triple.object) for triple in triples
        )
        if not self._config.texts:
            passages = tuple(replace(passage, text="") for passage in passages)
        return SubqStep(subquery, passages, tuple(facts))


def _questions(config: SubqConfig, on_bad: OnBad) -> Iterator[SubqQuestion]:
    """Yield each question once, by id. Its passages state the triples that were given."""
    triples = ready_triples(config.openie, on_bad)
    sources = (
        (musique, config.musique),
        (strategyqa, config.strategyqa),
        (two_wiki, config.two_wiki),
        (hotpotqa_subq, config.hotpotqa_subq),
        (hotpotqa, config.hotpotqa),
        (arc_easy, config.arc_easy),
        (asqa, config.asqa),
    )
    names = set()
    for load, files in sources:
        for file in files:
            source = load(file, on_bad)
            retriever = None
            if config.opening and source.passages:
                retriever = BM25Retriever.from_passages(source.passages)
            for item in source.questions[: config.limit]:
                name = (item.source, item.question.id)
                if name in names:
                    on_bad(
                        IngestError(
                            f"{item.source} {item.question.id}: appears twice; the second one is left out"
                        )
                    )
                    continue
                names.add(name)
                found: list[Passage] = []
                if retriever is not None:
                    hits = retriever.retrieve(item.question.question, config.opening)
                    found = [hit.passage for hit in hits]
                yield replace(
                    item,
                    documents=with_triples(item.documents, triples),
                    opening=with_triples(found, triples),
                )


def _plain(value: object) -> object:
    """Return a setting as JSON: only the file name of a path, and the name of a model without secrets."""
    if isinstance(value, tuple):
        return [_plain(item) for item in value]
    if isinstance(value, Path):
        return value.name
    if value is None or isinstance(value, int | float):
        return value
    return role_name(value)


def main(arguments: Sequence[str] | None = None) -> None:
    """Build the samples with the options of the command line, and print their statistics."""
    card = build(config_from(SubqConfig, __doc__, arguments))
    print(json.dumps(card["statistics"], indent=2))


if __name__ == "__main__":
    run_program(main)
