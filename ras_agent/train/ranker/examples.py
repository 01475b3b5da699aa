"""Questions with what the offline loop found for them, for training the offline answerer."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from ras_agent import create_ras_agent, create_single_shot_agent
from ras_agent.question_graph import QuestionGraph
from ras_agent.records import Answer, Passage
from ras_agent.tools.offline.extractor.extract import OfflineExtractor
from ras_agent.tools.offline.planner import OfflinePlanner
from ras_agent.tools.offline.question_chain import innermost
from ras_agent.tools.retrieve.bm25 import BM25Retriever
from ras_agent.train.data import training_set


@dataclass(frozen=True, slots=True)
class RankerQuestion:
    """Holds a question, its answers, and the ids of the passages that support them.

    group: questions of one group speak of the same things and are never on both sides of a fold.
    """

    question: str
    answers: tuple[str, ...]
    supporting: frozenset[str]
    group: int = 0


@dataclass(frozen=True, slots=True)
class Found:
    """Holds the evidence that the loop had when it came to answer."""

    asked: RankerQuestion
    graph: QuestionGraph
    passages: tuple[Passage, ...]


def asked_in(name: str, data: Path) -> tuple[list[Passage], list[RankerQuestion]]:
    """Return the corpus and questions of "hotpot", "musique", "nq", "squad" or "steps" (single hops of "musique")."""
    sets: dict[str, Callable[[Path], tuple[list[Passage], list[RankerQuestion]]]] = {
        "hotpot": partial(_questions_of, "hotpotqa"),
        "musique": partial(_questions_of, "musique"),
        "steps": _steps,
        "nq": _nq,
        "squad": _squad,
    }
    return sets[name](data)


def find(corpus: Sequence[Passage], asked: Iterable[RankerQuestion], loop: str = "ras") -> Iterator[Found]:
    """Run the offline extractor over BM25 for each question: in the RAS loop, or after one search ("single-shot")."""
    recorder, retriever = _Recorder(), BM25Retriever.from_passages(corpus)
    if loop == "ras":
        planner, extractor = OfflinePlanner(), OfflineExtractor()
        agent = create_ras_agent(planner=planner, extractor=extractor, answerer=recorder, retriever=retriever)
    else:
        agent = create_single_shot_agent(extractor=OfflineExtractor(), answerer=recorder, retriever=retriever)
    for one in asked:
        agent.invoke({"question": one.question})
        yield Found(one, recorder.graph, recorder.passages)


class _Recorder:
    """Records what an answerer is given."""

    graph = QuestionGraph()
    passages: tuple[Passage, ...] = ()

    def answer(self, question: str, graph: QuestionGraph, passages: Sequence[Passage]) -> Answer:
        self.graph, self.passages = graph, tuple(passages)
        return Answer("recorded")


def _questions_of(name: str, data: Path) -> tuple[list[Passage], list[RankerQuestion]]:
    found = training_set(name, data)
    return list(found.passages), [
        RankerQuestion(one.question, one.answers, frozenset(passage.id for passage in found.gold(one)), group)
        for group, one in enumerate(found.questions)
    ]


def _steps(data: Path) -> tuple[list[Passage], list[RankerQuestion]]:
    """Return both hops of each two-hop question, the second with its bridge filled in.

    For a question that describes its bridge there is also the sub-question by which a chain asks for it.
    """
    found = training_set("musique", data)
    asked = []
    for group, one in enumerate(found.questions):
        if len(one.decomposition) != 2:
            continue
        first, second = one.decomposition
        bridge = first["answer"]
        hops: list[tuple[Mapping[str, str], tuple[str, ...]]] = [(first, (bridge,)), (second, one.answers)]
        for hop, answers in hops:
            question = _as_question(hop["question"].replace("#1", bridge))
            asked.append(RankerQuestion(question, answers, frozenset({hop["supporting_id"]}), group))
        link = innermost(one.question)
        if link is not None:
            support = frozenset({first["supporting_id"]})
            asked.append(RankerQuestion(link.as_question, (bridge,), support, group))
    return list(found.passages), asked


def _as_question(hop: str) -> str:
    """Return a hop as a question: "The Voice >> record label" asks what the record label of The Voice is."""
    subject, arrow, relation = hop.partition(">>")
    return f"What is the {relation.strip()} of {subject.strip()}?" if arrow else hop


def _nq(data: Path) -> tuple[list[Passage], list[RankerQuestion]]:
    """Return Natural Questions, which are in lower case, with capitals as the passages write their words."""
    passages, asked = _questions_of("nq", data)
    case = _Case(one.contexts[0].text for one in training_set("nq", data).questions)
    return passages, [replace(one, question=case.restored(one.question)) for one in asked]


def _squad(data: Path) -> tuple[list[Passage], list[RankerQuestion]]:
    """Return SQuAD's questions; those over one paragraph are a group."""
    passages, asked = _questions_of("squad", data)
    places = {passage.id: place for place, passage in enumerate(passages)}
    return passages, [replace(one, group=places[next(iter(one.supporting))]) for one in asked]


class _Case:
    """Gives lower-cased questions the capitals that their words mostly have inside sentences."""

    _INNER = re.compile(r"(?<=[a-z,] )[A-Za-z][\w'’-]*")

    def __init__(self, texts: Iterable[str]) -> None:
        self._forms: dict[str, Counter[str]] = {}
        for text in texts:
            for word in self._INNER.findall(text):
                self._forms.setdefault(word.lower(), Counter())[word] += 1

    def restored(self, question: str) -> str:
        text = " ".join(map(self._word, question.split()))
        return text[:1].upper() + text[1:] + ("" if text.endswith("?") else "?")

    def _word(self, word: str) -> str:
        forms = self._forms.get(word.lower(), Counter())
        lower = forms[word.lower()]
        form, count = max(forms.items(), key=lambda item: item[1], default=(word, 0))
        return form if count >= 2 and sum(forms.values()) - lower > 1.5 * lower else word
