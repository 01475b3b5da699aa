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
    """A question, its answers, and the ids of the passages that support them.

    group: questions of one group are about the same things and are never on both sides of a fold.
    """

    question: str
    answers: tuple[str, ...]
    supporting: frozenset[str]
    group: int = 0


@dataclass(frozen=True, slots=True)
class Evidence:
    """The evidence with which the loop's answerer was called, after so many hops."""

    question: RankerQuestion
    graph: QuestionGraph
    passages: tuple[Passage, ...]
    hops: int = 1


@dataclass(slots=True)
class RankerExample:
    """A question's M spans: inputs (M, len(INPUTS)), fits (M,) as `fitting` returns, and gain (M,).

    gain: the square of each span's token F1 in 0..1; 0 where it is not in a supporting passage, or much worse than the
    best.
    """

    group: int
    answers: tuple[str, ...]
    candidates: Candidates
    analysis: QuestionAnalysis
    inputs: npt.NDArray[np.float32]
    gain: npt.NDArray[np.float32]
    fits: npt.NDArray[np.bool_]


def searchable(folder: Path, passages: Sequence[Passage], embedder: object = "minilm") -> PassageIndex:
    """Return the passages' index with vectors and a knowledge graph, in `folder`; a call that was killed is resumed.

    embedder: as `PassageIndex.create` takes it. Raises what that, `open` and `build_graph` raise.
    """
    is_there = PassageIndex.exists(folder)
    index = PassageIndex.open(folder, embedder) if is_there else PassageIndex.create(folder, embedder)
    index.upsert(passages)
    build_graph(folder, embedder=embedder)
    return index


def find(retriever: Retriever, questions: Iterable[RankerQuestion], loop: str) -> Iterator[Evidence]:
    """Run the offline loop for each question and yield what its answerer is given."""
    recorder, extractor = _Recorder(), OfflineExtractor()
    if loop == SINGLE_SHOT:
        agent = create_single_shot_agent(extractor=extractor, answerer=recorder, retriever=retriever)
    else:
        agent = create_ras_agent(planner=OfflinePlanner(), extractor=extractor, answerer=recorder, retriever=retriever)
    for question in questions:
        agent.invoke({"question": question.question})
        yield Evidence(question, recorder.graph, recorder.passages, recorder.hops)


class _Recorder:
    """Answerer that records its evidence."""

    graph = QuestionGraph()
    passages: tuple[Passage, ...] = ()
    hops = 1

    def answer(self, question: str, graph: QuestionGraph, passages: Sequence[Passage], steps: Sequence[Step]) -> Answer:
        self.graph, self.passages, self.hops = graph, tuple(passages), len(steps)
        return Answer("recorded")


def rarity_table(texts: Iterable[str]) -> npt.NDArray[np.uint8]:
    """Return (BUCKETS,), uint8: inverse document frequencies of hashed stems, scaled so that the rarest has 255.

    A bucket has the frequency of the commonest stem in it.
    """
    counts: Counter[str] = Counter()
    total = 0
    for text in texts:
        counts.update(set(stems(text)))
        total += 1
    documents = np.zeros(BUCKETS)
    for root, count in counts.items():
        if count > 1:
            documents[bucket(root)] = max(documents[bucket(root)], count)
    rare = np.log(total / (1 + documents))
    table: npt.NDArray[np.uint8] = np.round(255 * rare / rare.max()).clip(0, 255).astype(np.uint8)
    return table


def examples(cases: Iterable[Evidence], rarity: Rarity, types: Sequence[TypeModel]) -> list[RankerExample]:
    """Return an example for each question with spans. Type model n modulo their number scores question n."""
    rows = []
    for place, case in enumerate(cases):
        analysis = analyse(case.question.question)
        spans = describe(analysis, case.graph, read(case.passages), rarity)
        if spans is None:
            continue
        scores = types[place % len(types)].scores(analysis, spans.texts)
        inputs = np.column_stack([spans.features, scores, scores - scores.max()]).astype(np.float32)
        f1_of = {text: token_f1(text, case.question.answers) for text in set(spans.texts)}
        f1 = np.array([f1_of[text] for text in spans.texts], np.float32)
        ids = [sentence.passage.id for sentence in spans.sentences]
        gold = f1 * np.array([name in case.question.supporting for name in ids])
        gain = np.where(gold >= 0.5 * gold.max(), gold, 0.0) ** 2 if gold.max() >= 0.3 else np.zeros_like(gold)
        fits = fitting(analysis, spans.texts, spans.sentences, spans.mentions)
        rows.append(
            RankerExample(
                case.question.group, case.question.answers, spans, analysis, inputs, gain.astype(np.float32), fits
            )
        )
    return rows


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
    data_set = training_set(name, data)
    return list(data_set.passages), [
        RankerQuestion(
            question.question, question.answers, frozenset(passage.id for passage in data_set.gold(question)), group
        )
        for group, question in enumerate(data_set.questions)
    ]


def _steps(data: Path) -> tuple[list[Passage], list[RankerQuestion]]:
    """Return both hops of each two-hop question, the second with its bridge filled in."""
    data_set = training_set("musique", data)
    hop_questions = []
    for group, item in enumerate(data_set.questions):
        if len(item.decomposition) != 2:
            continue
        first, second = item.decomposition
        bridge = first["answer"]
        hops: list[tuple[Mapping[str, str], tuple[str, ...]]] = [(first, (bridge,)), (second, item.answers)]
        for hop, answers in hops:
            question = _as_question(hop["question"].replace("#1", bridge))
            hop_questions.append(RankerQuestion(question, answers, frozenset({hop["supporting_id"]}), group))
    return list(data_set.passages), hop_questions


def _as_question(hop: str) -> str:
    """Return a hop as a question: "The Voice >> record label" asks what the record label of The Voice is."""
    subject, arrow, relation = hop.partition(">>")
    return f"What is the {relation.strip()} of {subject.strip()}?" if arrow else hop


def _nq(data: Path) -> tuple[list[Passage], list[RankerQuestion]]:
    """Return Natural Questions, which are in lower case, with capitals as the passages write their words."""
    passages, questions = _questions_of("nq", data)
    case = _Case(question.contexts[0].text for question in training_set("nq", data).questions)
    return passages, [replace(question, question=case.restored(question.question)) for question in questions]


def _squad(data: Path) -> tuple[list[Passage], list[RankerQuestion]]:
    """Return SQuAD's questions; those over one paragraph are a group."""
    passages, questions = _questions_of("squad", data)
    places = {passage.id: place for place, passage in enumerate(passages)}
    return passages, [replace(question, group=places[next(iter(question.supporting))]) for question in questions]


class _Case:
    """Restorer of capitals in lower-cased questions.

    A word is spelt as the texts given mostly spell it where it does not begin a sentence.
    """

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
