"""Makes training samples for the aligner: questions with graphs, and reasoning that links them to their answers.

    python -m ras_agent.train.aligner.build --questions pq2h.jsonl --kb pq2h_kb.jsonl --out pq2h-aligner.jsonl
    python -m ras_agent.train.aligner.build --data DATA --sets hotpotqa,musique --out text-aligner.jsonl
    python -m ras_agent.train.aligner.build --questions train.jsonl --benchmark webqsp --out webqsp-aligner.jsonl

PathQuestion: the graph is the `max_ent` entities of highest PageRank around the question's entity, the reasoning its
gold path in words; parts are those of `pathquestion.part_of`. Sets of questions over text (ras_agent.train.data): the
graph has the facts of the gold passages and of the `k` that BM25 finds for the question; the reasoning is the gold
passages' sentences that name the answer or each other; a fifth of the questions is the part "dev", the others "train".
Sets of questions with graphs (ras_agent.train.graphqa): the graph is the part that the paper's prizes take of it, the
reasoning a shortest path to each answer, or else the facts that name one, or all of them; parts are those of the reader
that the aligner is for, so give the same --validation, --shares and --split as its training has. With --model a chat
model writes the reasoning from question, answer and facts, as in the paper. Replies are stored in --cache, so that a
stopped command can be resumed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from itertools import chain
from pathlib import Path
from random import Random

from ras_agent.config.settings import Settings
from ras_agent.contracts.errors import SettingsError
from ras_agent.contracts.records import Passage
from ras_agent.eval.benchmarks.pathquestion import (
    PATHQUESTION,
    Part,
    part_of,
    read_knowledge_base,
)
from ras_agent.eval.question import Question
from ras_agent.graphs.resolve import extractor_from_settings
from ras_agent.running.calling import call
from ras_agent.running.program import run_program
from ras_agent.tools.chat.client import ChatSettings
from ras_agent.tools.embed.embedders import resolve_embedder
from ras_agent.tools.graph_tokens.features import Fact, GraphVectors
from ras_agent.tools.graph_tokens.graph_reader import GraphPrompts, GraphView
from ras_agent.tools.index.store import PassageIndex
from ras_agent.tools.retrieve.registered import retriever_over
from ras_agent.tools.subgraph.extract import Extraction, ppr
from ras_agent.tools.subgraph.graph import Graph, plain_name
from ras_agent.train.aligner.reasoning import (
    chat_reasoning,
    path_in_words,
    reasoning_in_graph,
    supporting_sentences,
)
from ras_agent.train.aligner.samples import PARTS, AlignerSample, write_samples
from ras_agent.train.data import split_of, training_set
from ras_agent.train.graphqa.examples import graph_of
from ras_agent.train.graphqa.parts import (
    PUBLISHED_PRIZES,
    PartsOptions,
    image_of,
    read_parts,
)
from ras_agent.train.graphqa.parts import Part as PartOfSet
from ras_agent.train.options import config_from
from ras_agent.train.ranges import (
    COUNT,
    NATURAL,
    SEED,
    SHARE,
    check_choices,
    check_ranges,
)

_PARTS_OF_ALIGNER: Mapping[PartOfSet, Part] = {"train": "train", "validation": "dev"}


@dataclass(frozen=True, slots=True, kw_only=True)
class AlignerBuildConfig(PartsOptions):
    """Holds the options of a build. Raises SettingsError for a number out of its range, or if no questions are
    named.
    """

    out: Path
    """The file of the samples."""
    questions: Path | None = None
    """PathQuestion's questions, with --kb, or a file of a set whose questions have graphs, with --benchmark."""
    kb: Path | None = None
    """PathQuestion's triples."""
    embedder: str = "minilm"
    """The embedder of the texts of --benchmark's graphs."""
    data: Path | None = None
    """A folder of public data, with --sets."""
    sets: tuple[str, ...] = ()
    """Names of the sets in --data."""
    max_ent: int = 100
    """The maximum number of entities of a graph."""
    k: int = 10
    """Passages that BM25 finds."""
    dev: float = 0.2
    """The share of a set's questions in the part that chooses the weights."""
    sample: int = 0
    """The maximum number of questions of each part, drawn by --seed; 0 for all."""
    seed: int = 0
    """The number that all random draws follow from."""
    extractor: str = "offline"
    """The extractor of the triples, as --extractor of ras-agent."""
    triple_cache: Path | None = None
    """Where read triples are stored, as --triple-cache of ras-agent."""
    model: str = ""
    """The chat model that writes the reasoning, as --llm of ras-agent; if not set, it is made from gold paths and
    sentences."""
    cache: Path | None = None
    """The file of the model's replies, so that a stopped build can continue."""
    concurrency: int = 8
    """The number of questions that are processed at the same time."""

    def __post_init__(self) -> None:
        PartsOptions.__post_init__(self)
        check_ranges(
            self,
            {
                "max_ent": COUNT,
                "k": COUNT,
                "dev": SHARE,
                "sample": NATURAL,
                "seed": SEED,
            },
        )
        of_questions = bool(self.kb) + bool(self.benchmark)
        if of_questions != (self.questions is not None) or (self.data is None) != (
            not self.sets
        ):
            raise SettingsError(
                "give --questions together with --kb or --benchmark, and --data together with --sets"
            )
        if self.benchmark:
            check_choices(self, {"benchmark": tuple(PUBLISHED_PRIZES)})
        if self.questions is None and self.data is None:
            raise SettingsError(
                "there is nothing to build from: give --questions and --kb, or --data and --sets"
            )


def build(config: AlignerBuildConfig) -> list[AlignerSample]:
    """Write the samples to `config.out`, and return them.

    Raises:
        RasError: If a file cannot be read or a model call fails.
    """
    samples = [*_of_paths(config), *_of_graphs(config), *_of_texts(config)]
    if config.sample:
        parts = [_sample_of(samples, part, config) for part in PARTS]
        samples = list(chain.from_iterable(parts))
    if config.model:
        settings = ChatSettings.of(Settings(cache=config.cache))
        texts = chat_reasoning(config.model, samples, settings, config.concurrency)
        samples = [
            replace(sample, reasoning=text)
            for sample, text in zip(samples, texts, strict=True)
        ]
    write_samples(config.out, samples)
    return samples


def _sample_of(
    samples: list[AlignerSample], part: str, config: AlignerBuildConfig
) -> list[AlignerSample]:
    """Return at most `config.sample` samples of a part, drawn by `config.seed`, in order."""
    places = [place for place, sample in enumerate(samples) if sample.part == part]
    Random(config.seed).shuffle(places)
    return [samples[place] for place in sorted(places[: config.sample])]


def _of_paths(config: AlignerBuildConfig) -> Iterator[AlignerSample]:
    if config.questions is None or config.kb is None:
        return
    graph = Graph.from_triples(
        [_plain(*fact) for fact in read_knowledge_base(config.kb)]
    )

    @cache
    def around(start: int) -> tuple[Fact, ...]:
        facts = ppr(graph, [start], Extraction(max_ent=config.max_ent)).triples
        return tuple((fact.subject, fact.predicate, fact.object) for fact in facts)

    for question in PATHQUESTION.load(config.questions):
        start = graph.find(plain_name(str(question.metadata["question_entities"][0])))
        if start is None:
            continue
        path = [_plain(*step) for step in question.metadata["path"]]
        yield AlignerSample(
            id=f"{config.questions.stem}/{question.id}",
            part=part_of(question),
            question=plain_name(question.question),
            answers=tuple(map(plain_name, question.answers)),
            facts=around(start),
            reasoning=path_in_words(path),
        )


def _of_graphs(config: AlignerBuildConfig) -> Iterator[AlignerSample]:
    if config.questions is None or not config.benchmark:
        return
    nodes, edges, cost = config.prizes()
    view = GraphView(top_nodes=nodes, top_edges=edges, edge_cost=cost)
    prompts = GraphPrompts(view, GraphVectors(resolve_embedder(config.embedder)), len)
    parts = read_parts(config.benchmark, config.questions, config)
    for part, of_part in _PARTS_OF_ALIGNER.items():
        for question in parts[part]:
            graph = prompts.subgraph(question.question, graph_of(question))
            names, rows = graph.texts()
            facts = [(names[source], text, names[end]) for source, text, end in rows]
            starts = map(str, question.metadata.get("question_entities", ()))
            reasoning = reasoning_in_graph(
                question.graph.triples(),
                list(starts),
                question.answers,
            )
            source = config.questions.stem
            yield from _sample_if_whole(source, of_part, question, facts, reasoning)


def _sample_if_whole(
    source: str,
    part: Part,
    question: Question,
    facts: Sequence[Fact],
    reasoning: str,
) -> Iterator[AlignerSample]:
    """Yield the sample of a question unless its graph has no facts or there is no reasoning."""
    if not facts or not reasoning:
        return
    yield AlignerSample(
        id=f"{source}/{question.id}",
        part=part,
        question=question.question,
        answers=question.answers,
        facts=tuple(facts),
        reasoning=reasoning,
        image=image_of(question),
    )


def _of_texts(config: AlignerBuildConfig) -> Iterator[AlignerSample]:
    if config.data is None:
        return
    extractor = extractor_from_settings(
        Settings(triple_cache=config.triple_cache), config.extractor
    )

    @cache
    def facts_of(title: str, text: str) -> list[Fact]:
        passage = Passage("", text, title)
        triples = call(extractor, "extract", [passage], "").triples
        return [(triple.subject, triple.predicate, triple.object) for triple in triples]

    for name in config.sets:
        source = training_set(name, config.data)
        retriever = retriever_over(PassageIndex.in_memory(source.passages), "bm25")
        for question in source.questions:
            gold = source.gold(question)
            passages: dict[str, Passage] = {}
            for hit in retriever.retrieve(question.question, config.k):
                passages[hit.passage.id] = hit.passage
            for passage in gold:
                passages[passage.id] = passage
            facts: dict[Fact, None] = {}
            for passage in passages.values():
                facts |= dict.fromkeys(facts_of(passage.title, passage.text))
            reasoning = supporting_sentences(gold, question.answers)
            part: Part = "train"
            if split_of(question.question, config.dev) == "validation":
                part = "dev"
            yield from _sample_if_whole(name, part, question, list(facts), reasoning)


def _plain(subject: str, predicate: str, object_: str) -> Fact:
    return plain_name(subject), plain_name(predicate), plain_name(object_)


def main(arguments: Sequence[str] | None = None) -> None:
    """Build the samples with the options of the command line, and print the size of each part."""
    samples = build(config_from(AlignerBuildConfig, __doc__, arguments))
    counts = Counter(sample.part for sample in samples)
    listed = ", ".join(f"{part} {counts[part]}" for part in PARTS)
    print(f"{len(samples)} samples: {listed}")


if __name__ == "__main__":
    run_program(main)
