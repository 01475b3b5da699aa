"""Scores of LEGO-GraphRAG's modules over the questions of a set, and of what is answered from the paths."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from statistics import fmean

from lab.path_answers import (
    Generated,
    GenerationScore,
    PathReader,
    generated,
    generation_score,
)
from ras_agent.eval.metrics.answer_sets import SetScore, set_score
from ras_agent.eval.question import Question
from ras_agent.text.canonical import canonical_key
from ras_agent.tools.subgraph.paths import Path as GraphPath
from ras_agent.tools.subgraph.pipeline import FoundPaths, PathFinder


@dataclass(frozen=True, slots=True)
class ModuleScore:
    """Scores one module over all questions: precision, recall, f1, hr in 0..1; milliseconds, entities per question."""

    precision: float
    recall: float
    f1: float
    hr: float
    milliseconds: float
    entities: float


@dataclass(frozen=True, slots=True)
class InstanceScore:
    """Scores an instance.

    hr_at_1: share of questions whose best path ends in an answer. paths: kept per question. truncated: questions with
    more candidate paths than the limit. generation: of the answers, by the number of worked examples."""

    composition: str
    questions: int
    subgraph: ModuleScore
    filtering: ModuleScore
    refinement: ModuleScore
    hr_at_1: float
    paths: float
    truncated: int
    failures: int
    generation: Mapping[str, GenerationScore] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class _QuestionScore:
    """Scores one question. modules: precision and recall, milliseconds and entities of each module."""

    modules: tuple[tuple[SetScore, float, int], ...]
    first_is_right: bool
    paths: int
    truncated: bool
    failures: int


FinderOf = Callable[[Question], PathFinder]
"""Returns the finder over the graph that a question is asked over."""


def evaluate(
    finder_of: FinderOf,
    questions: Sequence[Question],
    readers: Sequence[PathReader] = (),
    at_once: int = 1,
) -> InstanceScore:
    """Run one composition over `questions`, which name their entities. Raises ValueError without questions.

    readers: answer each question from its paths, at most `at_once` calls at a time.
    """
    if not questions:
        raise ValueError("there are no questions to score")
    finder = finder_of(questions[0])
    # what is loaded and prepared once is no question's time
    _asked(finder, questions[0])
    scores: list[_QuestionScore] = []
    answers: list[list[Future[Generated]]] = [[] for _ in readers]
    with ThreadPoolExecutor(at_once) as pool:
        for question in questions:
            finder = finder_of(question)
            found = _asked(finder, question)
            scores.append(_scored(found, question))
            for reader, futures in zip(readers, answers, strict=True):
                futures.append(pool.submit(generated, reader, question, found))
        replies = [[future.result() for future in futures] for futures in answers]
    subgraph, filtering, refinement = (
        _module([score.modules[place] for score in scores]) for place in range(3)
    )
    return InstanceScore(
        str(finder.composition),
        len(questions),
        subgraph,
        filtering,
        refinement,
        hr_at_1=fmean(score.first_is_right for score in scores),
        paths=fmean(score.paths for score in scores),
        truncated=sum(score.truncated for score in scores),
        failures=sum(score.failures for score in scores),
        generation={
            str(reader.shots): generation_score(questions, of_reader)
            for reader, of_reader in zip(readers, replies, strict=True)
        },
    )


def _scored(found: FoundPaths, question: Question) -> _QuestionScore:
    gold = set(map(canonical_key, question.answers))
    kept = [ranked.path for ranked in found.paths]
    nodes = (found.subgraph.nodes.tolist(), _nodes(found.candidates), _nodes(kept))
    names = found.graph.nodes
    return _QuestionScore(
        tuple(
            (
                set_score((canonical_key(names[node]) for node in of_module), gold),
                seconds,
                len(of_module),
            )
            for of_module, seconds in zip(nodes, found.seconds, strict=True)
        ),
        first_is_right=bool(kept) and canonical_key(names[kept[0].end]) in gold,
        paths=len(kept),
        truncated=found.truncated,
        failures=len(found.failures),
    )


def _module(scores: Sequence[tuple[SetScore, float, int]]) -> ModuleScore:
    precision, recall = (
        fmean(one.precision for one, _, _ in scores),
        fmean(one.recall for one, _, _ in scores),
    )
    return ModuleScore(
        precision,
        recall,
        2 * precision * recall / (precision + recall) if precision + recall else 0.0,
        fmean(one.recall > 0 for one, _, _ in scores),
        1000 * fmean(seconds for _, seconds, _ in scores),
        fmean(entities for _, _, entities in scores),
    )


def _asked(finder: PathFinder, question: Question) -> FoundPaths:
    entities = question.metadata.get("question_entities") or ()
    starts = [node for node in map(finder.graph.find, entities) if node is not None]
    return finder.find(question.question, starts)


def _nodes(paths: Iterable[GraphPath]) -> list[int]:
    return sorted({node for path in paths for node in path.nodes})
