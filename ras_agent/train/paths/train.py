"""Fine-tunes the sentence encoder that scores facts and paths: low-rank maps over its vectors, with a triplet loss.

    python -m ras_agent.train.paths.train --kb pq2h_kb.jsonl --questions pq2h.jsonl --kb pq3h_kb.jsonl \
        --questions pq3h.jsonl --out path-encoder
    python -m ras_agent.train.paths.train --benchmark webqsp --questions webqsp_train.jsonl --out path-encoder

PathQuestion, which names gold paths, is split by entity: 60 % to learn from, 20 % to choose the epoch by; the last 20 %
is never read. In a set whose questions each have a graph, the gold paths are the shortest paths from the question's
entities to its answers, as in LEGO-GraphRAG for WebQSP, CWQ, GrailQA and WebQuestions; such a set is split by question,
by --shares. The loss is LEGO-GraphRAG's (section 4.1), max(0, margin - S(right) + S(wrong)) with S the cosine. The
encoder itself is unchanged, so an epoch takes seconds. --out then holds weights (safetensors) and a card, and in
training/ the files of ras_agent.train.loop: metrics.jsonl has a line for each step, with a validation after each epoch.
The same command resumes a killed training. It takes about a minute on two cores.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Literal, get_args

import numpy as np

from ras_agent.contracts.errors import SettingsError
from ras_agent.eval.benchmarks.pathquestion import (
    PATHQUESTION,
    of_part,
    read_knowledge_base,
)
from ras_agent.eval.question import Question
from ras_agent.running.program import run_program
from ras_agent.running.protocols import Embedder
from ras_agent.text.canonical import canonical_key
from ras_agent.tools.embed.embedders import resolve_embedder
from ras_agent.tools.subgraph.graph import Graph, Subgraph, plain_name
from ras_agent.tools.subgraph.paths import Path as GraphPath
from ras_agent.tools.subgraph.paths import PathLimits, complete
from ras_agent.tools.subgraph.pipeline import without_names
from ras_agent.tools.subgraph.scorers.encoders import PathHead
from ras_agent.tools.subgraph.scoring import Wording
from ras_agent.train.data import digest, paths_to_answers
from ras_agent.train.graphqa.parts import PartsOptions, read_parts
from ras_agent.train.loop import FitConfig, FitResult, fit, print_result, validations
from ras_agent.train.options import config_from
from ras_agent.train.ranges import AMOUNT, COUNT, NATURAL, check_choices, check_ranges

if TYPE_CHECKING:
    from torch import Tensor

    from ras_agent.train.paths.trainable import Triplets

Kind = Literal["facts", "paths"]
LEARNABLE = ("both", *get_args(Kind))
_WORDINGS = get_args(Wording)
_MOST_GOLD = 8
"""The maximum number of gold paths of a question to learn from, as some questions have hundreds of answers."""
_RANGES = {
    **dict.fromkeys(("rank", "batch"), COUNT),
    "margin": AMOUNT,
}


@dataclass(frozen=True, kw_only=True)
class PathData:
    """Holds the options that choose the examples of a training on paths.

    A training's configuration class inherits from it and from FitConfig, so it has no slots. Raises
    SettingsError for options that contradict each other.
    """

    questions: tuple[Path, ...]
    """Files of questions."""
    kb: tuple[Path, ...] = ()
    """Files of PathQuestion's triples, one for each --questions, in the same order."""
    benchmark: str = ""
    """Instead of --kb: the set of the files, whose questions have graphs, such as webqsp or cwq."""
    shares: tuple[float, ...] = (0.2, 0.2)
    """With --benchmark: the shares of each file that choose the weights, and that are never read."""
    learn: str = "both"
    """What the encoder learns to score: facts, for pruning and beams; paths, for refinement; or both."""
    negatives: int = 8
    """Negatives for each positive."""
    sample: int = 0
    """The maximum number of questions of each set's part; 0 for all."""
    seed: int = 0

    def __post_init__(self) -> None:
        check_ranges(self, {"negatives": COUNT, "sample": NATURAL})
        check_choices(self, {"learn": LEARNABLE})
        if self.benchmark and self.kb:
            raise SettingsError(
                f"the questions of --benchmark {self.benchmark} have their own graphs: leave --kb out"
            )
        if not self.benchmark and len(self.kb) != len(self.questions):
            raise SettingsError(
                "give --kb once for each --questions, in the same order, or --benchmark with a set whose questions bring "
                "their graphs, such as webqsp"
            )
        PartsOptions(shares=self.shares)


@dataclass(frozen=True, slots=True, kw_only=True)
class PathTrainingConfig(FitConfig, PathData):
    """Holds the options of a path encoder's training. Raises SettingsError for a number out of its range."""

    out: Path
    """The folder to write; the same command resumes a training in it."""
    embedder: str = "minilm"
    """The encoder whose vectors are mapped."""
    rank: int = 64
    """Rank of the maps."""
    margin: float = 0.2
    """Margin of the loss."""
    rate: float = 2e-3
    """The learning rate, the same in all steps."""
    clip: float = 0.0
    batch: int = 2048
    """Triplets of a step."""
    epochs: int = 12
    wording: str = "facts"
    """The texts that scorers will read: facts, relations or both."""
    validate_first: bool = True
    bf16: bool | None = False
    warmup: float = field(default=0.0, init=False)
    schedule: str = field(default="cosine", init=False)
    lowest_rate: float = field(default=0.05, init=False)

    def __post_init__(self) -> None:
        FitConfig.__post_init__(self)
        PathData.__post_init__(self)
        check_ranges(self, _RANGES)
        check_choices(self, {"wording": (*_WORDINGS, "both")})

    def rate_at(self, step: int, total: int) -> float:
        """Return the learning rate, which is the same in all steps."""
        return self.rate


@dataclass(frozen=True, slots=True)
class PathExample:
    """Holds the texts of triplets for the loss, as a scorer reads them. Positive and negatives are all facts,
    or all paths.
    """

    question: str
    positive: str
    negatives: tuple[str, ...]
    kind: Kind = "facts"


def path_examples(
    graph: Graph,
    questions: Iterable[Question],
    negatives: int = 8,
    seed: int = 0,
    wording: Wording = "facts",
) -> list[PathExample]:
    """Return triplets for each question: its gold paths against other paths, and its gold facts against other facts.

    The other paths begin at the same entity, and the other facts lead away from a gold path. A path that ends in an
    answer is not used as a negative, nor is a gold fact. A question is left out if no gold path is in the graph (see
    `gold_paths`).

    Args:
        graph: The knowledge base.
        questions: Questions with gold paths or answers.
        negatives: The number of negatives for each positive.
        seed: The seed by which negatives are drawn.
        wording: How facts and paths are written as texts.
    """
    subgraph = Subgraph.full(graph)
    dice = Random(seed)
    # by path, since many questions have the same path
    triplets: dict[tuple[int, ...], list[PathExample]] = {}
    examples = []
    for question in questions:
        golds = gold_paths(subgraph, question)
        on_paths = {node for path in golds for node in path.nodes}
        right = {
            graph.edge_text(edge, wording) for path in golds for edge in path.edges
        }
        for path in golds:
            if path.edges not in triplets:
                whole_path = path.scored_text(graph, wording)
                others = _other_paths(subgraph, path, question, wording)
                wrong = _sample(others, {whole_path}, negatives, dice)
                made = [PathExample("", whole_path, wrong, "paths")]
                edges = _other_facts(graph, path, on_paths)
                facts = [graph.edge_text(edge, wording) for edge in edges]
                for edge in path.edges:
                    fact = graph.edge_text(edge, wording)
                    wrong = _sample(facts, right, negatives, dice)
                    made.append(PathExample("", fact, wrong))
                triplets[path.edges] = made
            text = plain_name(question.question)
            if wording == "relations":
                text = without_names(text, [graph.nodes[path.start]])
            for example in triplets[path.edges]:
                if example.negatives:
                    examples.append(replace(example, question=text))
    return examples


def gold_paths(subgraph: Subgraph, question: Question) -> list[GraphPath]:
    """Return the paths that lead to a question's answers: the path that the benchmark names, or else shortest
    paths.

    A shortest path leads from one of the question's entities to each answer; at most eight are used. The list
    is empty if the path, the entities or the answers are not in the graph.
    """
    graph = subgraph.graph
    named = question.metadata.get("path")
    if named:
        path = _gold(graph, named)
        return [] if path is None else [path]
    entities = map(str, question.metadata.get("question_entities", ()))
    paths = paths_to_answers(subgraph, list(entities), question.answers)
    return [path for path in paths if len(path)][:_MOST_GOLD]


def _other_paths(
    subgraph: Subgraph, gold: GraphPath, question: Question, wording: Wording
) -> list[str]:
    """Return the texts of paths from the start of `gold`, at most as long, that are no part of it and do not
    end in an answer.
    """
    graph = subgraph.graph
    right = set(map(canonical_key, question.answers))
    paths = complete(subgraph, [gold.start], PathLimits(len(gold), 2000)).paths
    texts = []
    for path in paths:
        is_answer = canonical_key(graph.nodes[path.end]) in right
        if not is_answer and path.edges != gold.edges[: len(path)]:
            texts.append(path.scored_text(graph, wording))
    return texts


def _other_facts(graph: Graph, path: GraphPath, on_paths: set[int]) -> list[int]:
    """Return the numbers of the facts that touch a path, ascending, without those that join two nodes of gold paths.

    Those are left out because they may lead to the same answer by another relation.
    """
    others = set[int]()
    for node in path.nodes:
        touching = graph.incident.row(node).tolist()
        for edge in touching:
            head, _, tail = graph.edges[edge].tolist()
            leaves = head not in on_paths or tail not in on_paths
            if leaves:
                others.add(edge)
    return sorted(others)


def _sample(
    texts: Sequence[str], excluded: set[str], count: int, dice: Random
) -> tuple[str, ...]:
    """Return at most `count` of the texts, each once, without the excluded texts."""
    distinct = [text for text in dict.fromkeys(texts) if text not in excluded]
    return tuple(dice.sample(distinct, min(count, len(distinct))))


def _gold(graph: Graph, triples: Sequence[Sequence[str]]) -> GraphPath | None:
    """Return the path along these facts, in order and direction; None if the graph lacks one of them."""
    path = None
    for head, relation, tail in triples:
        start = graph.find(head)
        end = graph.find(tail)
        if start is None or end is None:
            return None
        path = path or GraphPath((start,))
        edge = _edge_between(graph, start, end, relation)
        if path.end != start or edge is None:
            return None
        path = GraphPath((*path.nodes, end), (*path.edges, edge))
    return path


def _edge_between(graph: Graph, start: int, end: int, relation: str) -> int | None:
    """Return the first fact with this relation from one node to another; None if there is none."""
    for edge in graph.incident.row(start).tolist():
        source, kind, target = graph.edges[edge].tolist()
        if (source, target) != (start, end):
            continue
        stated = graph.relations[int(kind)]
        if canonical_key(stated) == canonical_key(relation):
            return int(edge)
    return None


def train_head(
    train_part: Sequence[PathExample],
    dev_part: Sequence[PathExample],
    embedder: Embedder,
    config: PathTrainingConfig,
) -> tuple[PathHead, FitResult]:
    """Train on `train_part`, and return the weights of the epoch that orders most triplets of `dev_part`
    correctly.

    The untrained weights are compared too.

    Raises:
        SettingsError: if a part has no examples.
    """
    import torch

    from ras_agent.train.paths.trainable import TrainablePathHead

    if not train_part or not dev_part:
        raise SettingsError(
            "there are no examples to train on, or none to choose the best epoch with: give more questions"
        )
    torch.manual_seed(config.seed)
    triplets, held_out = (_triplets(part, embedder) for part in (train_part, dev_part))
    model = TrainablePathHead(triplets, config.rank, config.margin)
    dice = np.random.default_rng(config.seed)
    orders = [dice.permutation(len(triplets.rows)) for _ in range(config.epochs)]

    def batches(epoch: int) -> list[Tensor]:
        order = torch.from_numpy(orders[epoch % len(orders)])
        return [
            triplets.rows[order[start : start + config.batch]]
            for start in range(0, len(order), config.batch)
        ]

    folder = config.out / "training"
    settings = {"examples": digest([*train_part, *dev_part])}
    result = fit(
        model,
        batches,
        lambda: model.validation(held_out),
        config,
        folder,
        settings,
        _goodness,
    )
    about = {
        "made_by": "python -m ras_agent.train.paths.train",
        "config": config.settings(),
        "history": validations(folder),
        "triplets": {"train": len(triplets.rows), "dev": len(held_out.rows)},
        "result": asdict(result),
    }
    return PathHead(embedder.name, **model.arrays(), about=about), result


def train(config: PathTrainingConfig) -> FitResult:
    """Train on the questions of `config`, write the weights and their card into `config.out`, and return the outcome."""
    wordings = [wording for wording in _WORDINGS if config.wording in (wording, "both")]
    parts = examples_of_parts(config, wordings)
    head, result = train_head(
        parts["train"], parts["dev"], resolve_embedder(config.embedder), config
    )
    if result.main:
        head.about["data"] = [path.name for path in (*config.kb, *config.questions)]
        head.save(config.out)
    return result


def examples_of_parts(
    config: PathData, wordings: Iterable[Wording]
) -> dict[str, list[PathExample]]:
    """Return the examples of all files by part, "train" and "dev", in each of the wordings.

    Raises SettingsError for a file whose questions have no graph.
    """
    parts: dict[str, list[PathExample]] = {"train": [], "dev": []}
    for graph, questions, part in _asked_of_graphs(config):
        for wording in wordings:
            made = path_examples(
                graph, questions, config.negatives, config.seed, wording
            )
            for example in made:
                if config.learn in ("both", example.kind):
                    parts[part].append(example)
    return parts


def _asked_of_graphs(
    config: PathData,
) -> Iterator[tuple[Graph, Sequence[Question], str]]:
    """Yield each graph with the questions about it, and the part to which they belong."""
    if not config.benchmark:
        for kb, file in zip(config.kb, config.questions, strict=True):
            graph = Graph.from_triples(read_knowledge_base(kb))
            questions = PATHQUESTION.load(file)
            for part in ("train", "dev"):
                yield graph, _drawn(of_part(questions, part), config), part
        return
    options = PartsOptions(shares=config.shares)
    for file in config.questions:
        by_part = read_parts(config.benchmark, file, options)
        for part, drawn in (
            ("train", by_part["train"]),
            ("dev", by_part["validation"]),
        ):
            for question in _drawn(drawn, config):
                graph = Graph.of_texts(question.graph.nodes, question.graph.edges)
                yield graph, [question], part


def _drawn(questions: Sequence[Question], config: PathData) -> Sequence[Question]:
    if config.sample and config.sample < len(questions):
        return Random(config.seed).sample(questions, config.sample)
    return questions


def _goodness(measured: Mapping[str, float]) -> tuple[float, ...]:
    return measured["order"], -measured["loss"]


def _triplets(examples: Sequence[PathExample], embedder: Embedder) -> Triplets:
    import torch

    from ras_agent.train.paths.trainable import Triplets

    places: dict[str, int] = {}
    rows = []
    for example in examples:
        for negative in example.negatives:
            texts = (example.question, example.positive, negative)
            rows.append([places.setdefault(text, len(places)) for text in texts])
    vectors = np.asarray(embedder.embed(list(places)), dtype=np.float32)
    return Triplets(torch.from_numpy(vectors), torch.tensor(rows))


def main(arguments: Sequence[str] | None = None) -> None:
    """Parse the options of the command line, and train."""
    print_result(train(config_from(PathTrainingConfig, __doc__, arguments)))


if __name__ == "__main__":
    run_program(main)
