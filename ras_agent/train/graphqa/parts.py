"""Splits the questions of a set into those to learn from, those that choose the weights, and the test.

The reader of graphs, its aligner and the papers' tables all use `read_parts`, so none of them learns from a
held-out question. An aligner's folder lists the keys of the questions from which it was made (`Learnt`); a
reader refuses an aligner that was made from a held-out question.
"""

from __future__ import annotations

import hashlib
import json
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, Self

import numpy as np

from ras_agent.contracts.errors import SettingsError
from ras_agent.eval.benchmarks import benchmark
from ras_agent.eval.question import Question
from ras_agent.tools.store.card import write_card
from ras_agent.train.ranges import (
    AMOUNT,
    NATURAL,
    SHARE,
    check_choices,
    check_ranges,
)

Part = Literal["train", "validation", "test"]
SplitRule = Literal["graph", "published"]
SPLIT_RULES: tuple[SplitRule, ...] = ("graph", "published")
LEARNT = "learnt.json"
"""The file, in an aligner's folder, that lists the keys of the questions it was made with."""
_RANGES = {
    **dict.fromkeys(("top_nodes", "top_edges"), NATURAL),
    "shares": SHARE,
    "edge_cost": AMOUNT,
}
_PUBLISHED_SEED = 42
_PUBLISHED_HELD_OUT = 0.4


Prizes = tuple[int, int, float]
PUBLISHED_PRIZES: Mapping[str, Prizes] = {
    "explagraphs": (0, 0, 0.5),
    "scenegraphs": (3, 3, 1.0),
    "graphqa-webqsp": (3, 5, 0.5),
    "webqsp": (3, 5, 0.5),
}
"""The numbers of nodes and edges with a prize, and the cost of an edge, in G-Retriever for each set (appendix B.1)."""


@dataclass(frozen=True, kw_only=True)
class PartsOptions:
    """Holds the options of how a set's file is split, and which part of a graph is selected.

    A training's configuration class inherits from it and from FitConfig, so it has no slots. Raises SettingsError for
    options that contradict each other.
    """

    benchmark: str = ""
    """The set, whose questions have graphs: explagraphs, scenegraphs, graphqa-webqsp or webqsp."""
    validation: Path | None = None
    """The file that chooses the weights; if not set, a share of the set's file."""
    shares: tuple[float, ...] = (0.1, 0.0)
    """Shares of the set's file for validation and test, where these have no file."""
    split: str = "graph"
    """How the set's file is split: graph keeps questions about one graph together and obeys --shares; published draws
    the 60, 20 and 20 % of G-Retriever's code."""
    top_nodes: int | None = None
    """Nodes with a prize in the Steiner tree; if not set, the paper's number for the set; 0 with --top-edges 0 for
    the whole graph."""
    top_edges: int | None = None
    """Edges with a prize in the Steiner tree; if not set, the paper's number for the set."""
    edge_cost: float | None = None
    """Cost of an edge in the Steiner tree; if not set, the paper's for the set."""

    def __post_init__(self) -> None:
        check_choices(self, {"split": SPLIT_RULES})
        check_ranges(self, _RANGES)
        if len(self.shares) != 2 or sum(self.shares) >= 1:
            raise SettingsError(
                "--shares must be two numbers, for validation and test, that add up to less than 1"
            )

    def prizes(self) -> Prizes:
        """Return how the Steiner tree is selected: by the given numbers, or by the paper's numbers for the set."""
        nodes, edges, cost = PUBLISHED_PRIZES[self.benchmark]
        return (
            nodes if self.top_nodes is None else self.top_nodes,
            edges if self.top_edges is None else self.top_edges,
            cost if self.edge_cost is None else self.edge_cost,
        )


def read_parts(
    name: str, data: Path, options: PartsOptions
) -> dict[Part, list[Question]]:
    """Return the questions of a set's file by part. "test" is empty if no questions are held out for it.

    `name` is the set.

    Raises:
        SettingsError: if the questions have no graphs.
    """
    set_ = benchmark(name)
    questions = set_.load(data)
    if not any(question.graph.nodes for question in questions):
        raise SettingsError(
            f"{data}: its questions have no graphs, which this training needs: choose another set"
        )
    places: list[Part]
    if options.split == "published":
        places = published_parts(len(questions))
    else:
        to_validate, to_test = options.shares
        if options.validation is not None:
            to_validate = 0.0
        places = [_drawn_part(one, to_validate, to_test) for one in questions]
    parts: dict[Part, list[Question]] = {"train": [], "validation": [], "test": []}
    for question, part in zip(questions, places, strict=True):
        parts[part].append(question)
    if options.validation is not None:
        parts["validation"] = set_.load(options.validation)
    return parts


def published_parts(count: int) -> list[Part]:
    """Return the part of each of `count` questions, as G-Retriever's published code draws it: 60, 20 and 20 %.

    That code calls scikit-learn's `train_test_split` twice with the seed 42: first it holds out 40 %, the
    beginning of a permutation, then it splits these in the same way into validation and test.
    """
    parts: list[Part] = ["train"] * count
    held_out = _head_of_permutation(np.arange(count), _PUBLISHED_HELD_OUT)
    for place in held_out:
        parts[place] = "validation"
    for place in _head_of_permutation(held_out, 0.5):
        parts[place] = "test"
    return parts


def _head_of_permutation(
    places: np.ndarray[tuple[int], np.dtype[np.int64]], share: float
) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    count = int(np.ceil(len(places) * share))
    order = np.random.RandomState(_PUBLISHED_SEED).permutation(len(places))
    return places[order[:count]]


def _drawn_part(question: Question, to_validate: float, to_test: float) -> Part:
    graph = image_of(question) or question.question
    place = random.Random(graph).random()
    if place < to_validate:
        return "validation"
    if place < to_validate + to_test:
        return "test"
    return "train"


def image_of(question: Question) -> str:
    """Return the name of the image that the question's graph describes, or "" without an image. Questions may
    share an image.
    """
    return str(question.metadata.get("image") or "")


def key_of(question: str, image: str = "") -> str:
    """Return a short key of a question. Questions with the same words about the same image have the same key."""
    words = " ".join(question.casefold().split())
    text = f"{words}\n{image}"
    return hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()[:16]


@dataclass(frozen=True, slots=True)
class Learnt:
    """Holds the keys of the questions from which weights were made: those learnt from, and those that chose the
    weights.
    """

    train: frozenset[str]
    validation: frozenset[str]

    def write(self, folder: Path) -> None:
        """Write the keys into the folder of the weights, from which `read` reads them."""
        keys = {"train": sorted(self.train), "validation": sorted(self.validation)}
        write_card(folder / LEARNT, keys)

    @classmethod
    def read(cls, folder: Path) -> Self:
        """Return the keys in a folder of weights.

        Raises:
            SettingsError: If the file is missing or holds something else.
        """
        path = folder / LEARNT
        try:
            keys = json.loads(path.read_text("utf-8"))
            return cls(frozenset(keys["train"]), frozenset(keys["validation"]))
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise SettingsError(
                f"{path}: it should list the questions that this aligner learnt from, so that no test question is one "
                "of them; train it again with ras_agent.train.aligner.train"
            ) from error

    def refuse(self, parts: Mapping[Part, Sequence[Question]], source: Path) -> None:
        """Raise SettingsError if a held-out question of `parts` was learnt from, or a test question chose the
        weights.

        `source` is the folder or file of the keys, which the message names.
        """
        seen_before: dict[Part, frozenset[str]] = {
            "test": self.train | self.validation,
            "validation": self.train,
        }
        for part, seen in seen_before.items():
            taught = []
            for question in parts[part]:
                if key_of(question.question, image_of(question)) in seen:
                    taught.append(question.question)
            if taught:
                raise SettingsError(
                    f"{source}: it was made with {len(taught)} of the {len(parts[part])} questions of the part "
                    f"{part!r}, for example {taught[0]!r:.80}; build its samples from the same file with the same "
                    "--validation, --shares and --split as this training"
                )
