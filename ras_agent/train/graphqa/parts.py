"""Which questions of a set teach, which choose the weights and which are the test: one split for every training.

The reader of graphs, its aligner and the papers' tables ask `read_parts`, so a held-out question teaches none of them.
An aligner's folder lists the keys of the questions that it was made with (`Learnt`); a reader that is to be pruned by it
refuses it if one of them is held out.
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

from ras_agent.errors import SettingsError
from ras_agent.eval.benchmarks import benchmark
from ras_agent.eval.question import Question
from ras_agent.tools.store.durable import replace_file
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
"""The file in an aligner's folder that lists the keys of the questions it was made with"""
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
"""Prizes of nodes and edges, and the cost of an edge, that G-Retriever has for each set (appendix B.1)."""


@dataclass(frozen=True, kw_only=True)
class PartsOptions:
    """How a set's file is split, and which part of a graph is taken. Raises SettingsError for contradictions.

    A training's configuration inherits from it next to FitConfig, so it has no slots.
    """

    benchmark: str = ""
    """The set whose questions bring graphs: explagraphs, scenegraphs, graphqa-webqsp or webqsp."""
    validation: Path | None = None
    """The file that chooses the weights; if not set, a share of the set's file."""
    shares: tuple[float, ...] = (0.1, 0.0)
    """Shares of the set's file for validation and test, where these have no file."""
    split: str = "graph"
    """How the set's file is split: graph keeps questions about one graph together and obeys --shares; published draws the
    60, 20 and 20 % of G-Retriever's code."""
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
                "--shares has to be two numbers, for validation and test, that add up to less than 1"
            )

    def prizes(self) -> Prizes:
        """Return the prizes of nodes and edges and the cost of an edge: the set's, but for those that are given."""
        nodes, edges, cost = PUBLISHED_PRIZES[self.benchmark]
        return (
            nodes if self.top_nodes is None else self.top_nodes,
            edges if self.top_edges is None else self.top_edges,
            cost if self.edge_cost is None else self.edge_cost,
        )


def read_parts(
    name: str, data: Path, options: PartsOptions
) -> dict[Part, list[Question]]:
    """Return the questions of a set's file by part; "test" is empty where nothing is held out for it.

    Raises SettingsError for questions without graphs.
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

    It is scikit-learn's `train_test_split` of the places, twice and with the seed 42: a permutation whose head is held
    out. The held-out 40 % are split again in the same way; their first part is the validation.
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
    """Return the name of the image whose graph several questions are about, or ""."""
    return str(question.metadata.get("image") or "")


def key_of(question: str, image: str = "") -> str:
    """Return a short key of a question: the same for the same words about the same image."""
    words = " ".join(question.casefold().split())
    text = f"{words}\n{image}"
    return hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()[:16]


@dataclass(frozen=True, slots=True)
class Learnt:
    """Keys of the questions that weights were made with: those that they learnt from, and those that chose them."""

    train: frozenset[str]
    validation: frozenset[str]

    def write(self, folder: Path) -> None:
        """Write the file that `read` reads into the folder of the weights."""
        keys = {"train": sorted(self.train), "validation": sorted(self.validation)}
        replace_file(folder / LEARNT, f"{json.dumps(keys, indent=0)}\n".encode())

    @classmethod
    def read(cls, folder: Path) -> Self:
        """Read the file of a folder. Raises SettingsError where it is not there or holds something else."""
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
        """Raise SettingsError where a held-out question of `parts` was learnt from, or a test question chose weights.

        source: the folder or the file of samples, which the error names.
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
