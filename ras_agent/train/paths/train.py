"""Fine-tune the sentence encoder that scores facts and paths: low-rank maps over its vectors, with a triplet loss.

    python -m ras_agent.train.paths.train --kb pq2h_kb.jsonl --questions pq2h.jsonl --kb pq3h_kb.jsonl \
        --questions pq3h.jsonl --out path-encoder

PathQuestion (or any set that names entities and gold paths) is split by entity: 60 % to learn from, 20 % to choose the
epoch by; the last 20 % is never read. The loss is LEGO-GraphRAG's (section 4.1), max(0, margin - S(right) + S(wrong))
with S the cosine; the encoder itself stays as it is, so an epoch takes seconds. Prints a JSON line an epoch; writes
weights (safetensors) and a card. About a minute on two cores.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any, Literal, get_args

import numpy as np

from ras_agent.arrays import Floats, Ints
from ras_agent.errors import SettingsError
from ras_agent.eval.benchmarks.pathquestion import PATHQUESTION, of_part, read_knowledge_base
from ras_agent.eval.question import Question
from ras_agent.program import run_program
from ras_agent.protocols import Embedder
from ras_agent.text.canonical import canonical_key
from ras_agent.tools.embed.embedders import resolve_embedder
from ras_agent.tools.subgraph.graph import Graph, Subgraph, plain_name
from ras_agent.tools.subgraph.paths import Path as GraphPath
from ras_agent.tools.subgraph.paths import PathLimits, complete
from ras_agent.tools.subgraph.pipeline import without_names
from ras_agent.tools.subgraph.scorers.encoders import PARTS, PathHead
from ras_agent.tools.subgraph.scoring import Wording
from ras_agent.train.ranges import AMOUNT, COUNT, NATURAL, SEED, check_ranges

if TYPE_CHECKING:
    from torch import Tensor


_RANGES = {
    **dict.fromkeys(("rank", "batch", "negatives"), COUNT),
    **dict.fromkeys(("epochs", "sample"), NATURAL),
    **dict.fromkeys(("margin", "rate", "decay"), AMOUNT),
    "seed": SEED,
}


@dataclass(frozen=True, slots=True)
class PathTrainingConfig:
    """Holds the settings of a training. Raises SettingsError for a number out of its range.

    rank: of the low-rank maps. margin: of the loss. rate, decay: of AdamW. batch: triplets a step.
    negatives: for each positive. wording: the texts that scorers will read, or "both".
    sample: the most questions of each set's part; 0 for all.
    """

    rank: int = 64
    margin: float = 0.2
    rate: float = 2e-3
    decay: float = 0.01
    batch: int = 2048
    epochs: int = 12
    negatives: int = 8
    seed: int = 0
    wording: Wording | Literal["both"] = "facts"
    sample: int = 0

    def __post_init__(self) -> None:
        check_ranges(self, _RANGES)


@dataclass(frozen=True, slots=True)
class PathExample:
    """Holds plain texts, as a scorer reads them. Negatives are of the same kind as the positive, facts or paths."""

    question: str
    positive: str
    negatives: tuple[str, ...]


def path_examples(
    graph: Graph, questions: Iterable[Question], negatives: int = 8, seed: int = 0, wording: Wording = "facts"
) -> list[PathExample]:
    """Make triplets of each question: its gold path against other paths from the same start, gold facts against others.

    The other facts are those that touch the gold path. A path that ends in an answer is no negative, nor is a gold
    fact. A question whose gold path is not in the graph is left out.
    """
    whole, dice, known = Subgraph.whole(graph), Random(seed), dict[tuple[int, ...], list[tuple[str, tuple[str, ...]]]]()
    found = []
    for question in questions:
        path = _gold(graph, question.metadata.get("path") or ())
        if path is None:
            continue
        if path.edges not in known:  # many questions ask for one path in other words
            right = {canonical_key(answer) for answer in question.answers}
            others = [
                other.scored_text(graph, wording)
                for other in complete(whole, [path.start], PathLimits(len(path), 2000)).paths
                if canonical_key(graph.nodes[other.end]) not in right and other.edges != path.edges[: len(other)]
            ]
            touching = {edge for node in path.nodes for edge in graph.incident.row(node).tolist()} - set(path.edges)
            gold = [graph.edge_text(edge, wording) for edge in path.edges]
            facts = [graph.edge_text(edge, wording) for edge in sorted(touching)]
            whole_path = path.scored_text(graph, wording)
            known[path.edges] = [
                (whole_path, _some(others, {whole_path}, negatives, dice)),
                *((fact, _some(facts, set(gold), negatives, dice)) for fact in gold),
            ]
        text = plain_name(question.question)
        if wording == "relations":
            text = without_names(text, [graph.nodes[path.start]])
        found += [PathExample(text, positive, wrong) for positive, wrong in known[path.edges] if wrong]
    return found


def _some(texts: Sequence[str], but: set[str], most: int, dice: Random) -> tuple[str, ...]:
    distinct = [text for text in dict.fromkeys(texts) if text not in but]
    return tuple(dice.sample(distinct, min(most, len(distinct))))


def _gold(graph: Graph, triples: Sequence[Sequence[str]]) -> GraphPath | None:
    """Return the path of these facts, in their order and directions; None if the graph does not have it."""
    path = None
    for head, relation, tail in triples:
        start, end = graph.find(head), graph.find(tail)
        if start is None or end is None or (path is not None and path.end != start):
            return None
        edges = [
            edge
            for edge in graph.incident.row(start).tolist()
            if graph.edges[edge, [0, 2]].tolist() == [start, end]
            and canonical_key(graph.relations[int(graph.edges[edge, 1])]) == canonical_key(relation)
        ]
        if not edges:
            return None
        path = path or GraphPath((start,))
        path = GraphPath((*path.nodes, end), (*path.edges, edges[0]))
    return path


@dataclass(frozen=True, slots=True)
class _Triplets:
    """Holds vectors (V, d) of all texts, and rows (T, 3): question, right, wrong, as places in `vectors`."""

    vectors: Floats
    rows: Ints


def fit(
    train_part: Sequence[PathExample],
    dev_part: Sequence[PathExample],
    embedder: Embedder,
    config: PathTrainingConfig = PathTrainingConfig(),
) -> PathHead:
    """Learn from `train_part`, and return the head of the epoch that orders most of `dev_part`'s triplets right.

    The head before the first epoch counts, too. Raises SettingsError for a part without examples.
    """
    import torch

    if not train_part or not dev_part:
        raise SettingsError("training needs examples to learn from and examples to choose the epoch by")
    torch.manual_seed(config.seed)
    dice = np.random.default_rng(config.seed)
    learnt, held = (_triplets(part, embedder) for part in (train_part, dev_part))
    width = learnt.vectors.shape[1]
    weights: dict[str, Tensor] = {}
    for part in PARTS:
        down = part.endswith("down")
        # up starts at 0, so that the head starts as the encoder is
        value = torch.randn(width, config.rank) / width**0.5 if down else torch.zeros(config.rank, width)
        weights[part] = value.requires_grad_()
    optimiser = torch.optim.AdamW(weights.values(), lr=config.rate, weight_decay=config.decay)
    vectors, rows = torch.from_numpy(learnt.vectors), torch.from_numpy(learnt.rows)
    history = [_measured(held, weights, config) | {"epoch": 0}]
    best, chosen = _goodness(history[0]), _arrays(weights)
    print(json.dumps(history[0]), flush=True)
    for epoch in range(1, config.epochs + 1):
        order = torch.from_numpy(dice.permutation(len(rows)))
        total = 0.0
        for start in range(0, len(order), config.batch):
            batch = rows[order[start : start + config.batch]]
            loss = _loss(vectors, batch, weights, config.margin)
            optimiser.zero_grad()
            loss.backward()  # type: ignore[no-untyped-call]
            optimiser.step()
            total += float(loss.detach()) * len(batch)
        history.append(_measured(held, weights, config) | {"epoch": epoch, "train_loss": round(total / len(order), 5)})
        print(json.dumps(history[-1]), flush=True)
        if _goodness(history[-1]) > best:
            best, chosen = _goodness(history[-1]), _arrays(weights)
    about = {"config": asdict(config), "history": history, "triplets": {"train": len(rows), "dev": len(held.rows)}}
    return PathHead(embedder.name, **chosen, about=about)


def train(
    sets: Sequence[tuple[Path, Path]],
    out: Path,
    embedder: object = "minilm",
    config: PathTrainingConfig = PathTrainingConfig(),
) -> PathHead:
    """Train on pairs of (knowledge base, questions), and write the head and its card into `out`."""
    began = time.monotonic()
    parts: dict[str, list[PathExample]] = {"train": [], "dev": []}
    for kb, questions in sets:
        graph, asked = Graph.from_triples(read_knowledge_base(kb)), PATHQUESTION.load(questions)
        for part, examples in parts.items():
            own = of_part(asked, part)
            if config.sample and config.sample < len(own):
                own = Random(config.seed).sample(own, config.sample)
            for wording in get_args(Wording) if config.wording == "both" else (config.wording,):
                examples += path_examples(graph, own, config.negatives, config.seed, wording)
    head = fit(parts["train"], parts["dev"], resolve_embedder(embedder), config)
    head.about["data"] = [path.name for pair in sets for path in pair]
    head.about["seconds"] = round(time.monotonic() - began)
    head.save(out)
    return head


def main(arguments: Sequence[str] | None = None) -> None:
    """Train as the options say."""
    parser = argparse.ArgumentParser(description="Fine-tune the sentence encoder that scores facts and paths.")
    parser.add_argument("--kb", type=Path, action="append", required=True, help="triples; once for each --questions")
    parser.add_argument("--questions", type=Path, action="append", required=True)
    parser.add_argument("--out", type=Path, required=True, help="a folder")
    parser.add_argument("--embedder", default="minilm")
    parser.add_argument("--epochs", type=int, default=PathTrainingConfig().epochs)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--wording", choices=("facts", "relations", "both"), default="facts")
    parser.add_argument("--sample", type=int, default=0, help="at most so many questions of each part; 0 for all")
    given = parser.parse_args(arguments)
    if len(given.kb) != len(given.questions):
        parser.error("give --kb once for each --questions, in the same order")
    config = PathTrainingConfig(epochs=given.epochs, seed=given.seed, wording=given.wording, sample=given.sample)
    train(list(zip(given.kb, given.questions, strict=True)), given.out, given.embedder, config)


def _goodness(row: dict[str, Any]) -> tuple[float, float]:
    return row["order"], -row["dev_loss"]


def _triplets(examples: Sequence[PathExample], embedder: Embedder) -> _Triplets:
    numbers: dict[str, int] = {}
    rows = [
        [numbers.setdefault(text, len(numbers)) for text in (one.question, one.positive, wrong)]
        for one in examples
        for wrong in one.negatives
    ]
    return _Triplets(np.asarray(embedder.embed(list(numbers)), dtype=np.float32), np.array(rows, dtype=np.int64))


def _loss(vectors: Tensor, rows: Tensor, weights: dict[str, Tensor], margin: float) -> Tensor:
    right, wrong = _cosines(vectors, rows, weights)
    return (margin - right + wrong).clamp(min=0).mean()


def _cosines(vectors: Tensor, rows: Tensor, weights: dict[str, Tensor]) -> tuple[Tensor, Tensor]:
    """Return the cosines of questions with right and with wrong texts, (T,) each, by PathHead's formula."""
    from torch.nn.functional import normalize

    def mapped(places: Tensor, side: str) -> Tensor:
        x = vectors[places]
        return normalize(x + (x @ weights[f"{side}_down"]) @ weights[f"{side}_up"], dim=1)

    asked = mapped(rows[:, 0], "question")
    return (asked * mapped(rows[:, 1], "text")).sum(1), (asked * mapped(rows[:, 2], "text")).sum(1)


def _measured(held: _Triplets, weights: dict[str, Tensor], config: PathTrainingConfig) -> dict[str, Any]:
    """Return dev_loss, and order: the share of triplets whose right text scores higher."""
    import torch

    with torch.no_grad():
        right, wrong = _cosines(torch.from_numpy(held.vectors), torch.from_numpy(held.rows), weights)
        loss = (config.margin - right + wrong).clamp(min=0).mean()
    return {"dev_loss": round(float(loss), 5), "order": round(float((right > wrong).float().mean()), 5)}


def _arrays(weights: dict[str, Tensor]) -> dict[str, Floats]:
    return {name: tensor.detach().numpy().copy() for name, tensor in weights.items()}


if __name__ == "__main__":
    run_program(main)
