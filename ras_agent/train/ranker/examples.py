"""What the ranker is trained on: questions with what the offline loop finds for them, as rows of numbers."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import numpy as np
import numpy.typing as npt

from ras_agent import create_ras_agent, create_single_shot_agent
from ras_agent.eval.metrics import token_f1
from ras_agent.protocols import Retriever
from ras_agent.question_graph import QuestionGraph
from ras_agent.records import Answer, Passage, Step
from ras_agent.text.words import stems
from ras_agent.tools.index.store import PassageIndex
from ras_agent.tools.offline.answerer.answer_type import TypeModel
from ras_agent.tools.offline.answerer.coverage import BUCKETS, Rarity, bucket
from ras_agent.tools.offline.answerer.features import Candidates, describe
from ras_agent.tools.offline.answerer.rank import fitting
from ras_agent.tools.offline.extractor.extract import OfflineExtractor
from ras_agent.tools.offline.planner import OfflinePlanner
from ras_agent.tools.offline.question import QuestionAnalysis, analyse
from ras_agent.tools.offline.reading import read
from ras_agent.tools.structure.build_graph import build_graph
from ras_agent.train.data import training_set, two_wiki_passages

SINGLE_SHOT = "single-shot"
"""The loop that searches once, with BM25; every other loop is the RAS loop over the retriever of that name."""


@dataclass(frozen=True, slots=True)
class RankerQuestion:
    """Holds a question, its answers, and the ids of the passages that support them.

    group: questions of one group are about the same things and are never on both sides of a fold.
    """

    question: str
    answers: tuple[str, ...]
    supporting: frozenset[str]
    group: int = 0


@dataclass(frozen=True, slots=True)
class Found:
    """Holds the evidence that the loop had when it came to answer, after so many hops."""

    asked: RankerQuestion
    graph: QuestionGraph
    passages: tuple[Passage, ...]
    hops: int = 1


@dataclass(slots=True)
class RankerExample:
    """Holds a question's spans: inputs (M, len(INPUTS)), fits (M,) as `fitting` returns, and gain (M,).

    gain: the square of each span's token F1 in 0..1; 0 where it is not in a supporting passage, or much worse than the
    best.
    """

    group: int
    answers: tuple[str, ...]
    found: Candidates
    asked: QuestionAnalysis
    inputs: npt.NDArray[np.float32]
    gain: npt.NDArray[np.float32]
    fits: npt.NDArray[np.bool_]


def searchable(folder: Path, passages: Sequence[Passage], embedder: object = "minilm") -> PassageIndex:
    """Return the passages' index with vectors and a knowledge graph, in `folder`; a call that was killed is resumed.

    embedder: as `PassageIndex.create` takes it. Raises what that, `open` and `build_graph` raise.
    """
    known = PassageIndex.exists(folder)
    index = PassageIndex.open(folder, embedder) if known else PassageIndex.create(folder, embedder)
    index.upsert(passages)
    build_graph(folder, embedder=embedder)
    return index


def find(retriever: Retriever, asked: Iterable[RankerQuestion], loop: str) -> Iterator[Found]:
    """Run the offline loop for each question and yield what its answerer is given."""
    recorder, extractor = _Recorder(), OfflineExtractor()
    if loop == SINGLE_SHOT:
        agent = create_single_shot_agent(extractor=extractor, answerer=recorder, retriever=retriever)
    else:
        agent = create_ras_agent(planner=OfflinePlanner(), extractor=extractor, answerer=recorder, retriever=retriever)
    for one in asked:
        agent.invoke({"question": one.question})
        yield Found(one, recorder.graph, recorder.passages, recorder.hops)


class _Recorder:
    """Records what an answerer is given."""

    graph = QuestionGraph()
    passages: tuple[Passage, ...] = ()
    hops = 1

    def answer(self, question: str, graph: QuestionGraph, passages: Sequence[Passage], steps: Sequence[Step]) -> Answer:
        self.graph, self.passages, self.hops = graph, tuple(passages), len(steps)
        return Answer("recorded")


def rarity_table(texts: Iterable[str]) -> npt.NDArray[np.uint8]:
    """Return inverse document frequencies, shape (BUCKETS,), 255 for the rarest.

    Stems that share a bucket have the commonest one's.
    """
    counts: Counter[str] = Counter()
    total = 0
    for text in texts:
        counts.update(set(stems(text)))
        total += 1
    seen = np.zeros(BUCKETS)
    for root, count in counts.items():
        if count > 1:
            seen[bucket(root)] = max(seen[bucket(root)], count)
    rare = np.log(total / (1 + seen))
    table: npt.NDArray[np.uint8] = np.round(255 * rare / rare.max()).clip(0, 255).astype(np.uint8)
    return table


def examples(found: Iterable[Found], rarity: Rarity, types: Sequence[TypeModel]) -> list[RankerExample]:
    """Return one example for each question with spans; question n is typed by model n modulo their number."""
    made = []
    for place, one in enumerate(found):
        asked = analyse(one.asked.question)
        spans = describe(asked, one.graph, read(one.passages), rarity)
        if spans is None:
            continue
        scores = types[place % len(types)].scores(asked, spans.texts)
        inputs = np.column_stack([spans.features, scores, scores - scores.max()]).astype(np.float32)
        told = {text: token_f1(text, one.asked.answers) for text in set(spans.texts)}
        f1 = np.array([told[text] for text in spans.texts], np.float32)
        ids = [sentence.passage.id for sentence in spans.sentences]
        gold = f1 * np.array([name in one.asked.supporting for name in ids])
        gain = np.where(gold >= 0.5 * gold.max(), gold, 0.0) ** 2 if gold.max() >= 0.3 else np.zeros_like(gold)
        fits = fitting(asked, spans.texts, spans.sentences, spans.mentions)
        made.append(
            RankerExample(one.asked.group, one.asked.answers, spans, asked, inputs, gain.astype(np.float32), fits)
        )
    return made


def questions_in(name: str, data: Path) -> tuple[list[Passage], list[RankerQuestion]]:
    """Return the corpus and questions of "hotpot", "musique", "nq", "squad" or "steps" (single hops of "musique")."""
    sets: dict[str, Callable[[Path], tuple[list[Passage], list[RankerQuestion]]]] = {
        "hotpot": partial(_questions_of, "hotpotqa"),
        "musique": partial(_questions_of, "musique"),
        "steps": _steps,
        "nq": _nq,
        "squad": _squad,
    }
    return sets[name](data)


def corpus_texts(data: Path) -> Iterator[str]:
    """Yield the titles and texts whose words are counted: 2WikiMultihopQA's corpus and each set's own."""
    for passage in two_wiki_passages(data):
        yield f"{passage.title} {passage.text}"
    for name in ("hotpot", "musique", "nq", "squad"):
        for passage in questions_in(name, data)[0]:
            yield f"{passage.title} {passage.text}"


def _questions_of(name: str, data: Path) -> tuple[list[Passage], list[RankerQuestion]]:
    found = training_set(name, data)
    return list(found.passages), [
        RankerQuestion(one.question, one.answers, frozenset(passage.id for passage in found.gold(one)), group)
        for group, one in enumerate(found.questions)
    ]


def _steps(data: Path) -> tuple[list[Passage], list[RankerQuestion]]:
    """Return both hops of each two-hop question, the second with its bridge filled in."""
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
