"""Questions with what the offline loop found for them, for training the offline answerer."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from ras_agent import create_ras_agent, create_single_shot_agent
from ras_agent.question_graph import QuestionGraph
from ras_agent.records import Answer, Passage
from ras_agent.tools.offline.extractor.extract import OfflineExtractor
from ras_agent.tools.offline.planner import OfflinePlanner
from ras_agent.tools.offline.question_chain import innermost
from ras_agent.tools.retrieve.bm25 import BM25Retriever
from ras_agent.train.reader.examples import read_jsonl

__all__ = ["Asked", "Found", "asked_in", "find", "question_answers"]


@dataclass(frozen=True, slots=True)
class Asked:
    """A question, its answers, and the ids of the passages that support them.

    group: questions of one group speak of the same things and are never on both sides of a fold.
    """

    question: str
    answers: tuple[str, ...]
    supporting: frozenset[str]
    group: int = 0


@dataclass(frozen=True, slots=True)
class Found:
    """What the loop had when it came to answer."""

    asked: Asked
    graph: QuestionGraph
    passages: tuple[Passage, ...]


def asked_in(name: str, folder: Path) -> tuple[list[Passage], list[Asked]]:
    """The corpus and the questions of "hotpot", "musique", "steps" (single hops of "musique"), "nq" or "squad"."""
    sets = {"hotpot": _hotpot, "musique": _musique, "steps": _steps, "nq": _nq, "squad": _squad}
    return sets[name](folder)


def find(corpus: Sequence[Passage], asked: Iterable[Asked], loop: str = "ras") -> Iterator[Found]:
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


def question_answers(folder: Path) -> list[tuple[str, str]]:
    """Questions with an answer and no context."""
    rows = read_jsonl(folder / "reading/hotpot_2wiki_train_qa.jsonl")
    return [(row["question"], row["answer"]) for row in rows]


class _Recorder:
    """Keeps what an answerer is given."""

    graph = QuestionGraph()
    passages: tuple[Passage, ...] = ()

    def answer(self, question: str, graph: QuestionGraph, passages: Sequence[Passage]) -> Answer:
        self.graph, self.passages = graph, tuple(passages)
        return Answer("recorded")


def _hotpot(folder: Path) -> tuple[list[Passage], list[Asked]]:
    rows = read_jsonl(folder / "hotpotqa_train/corpus.jsonl")
    ids = {row["title"]: row["id"] for row in rows}
    asked = [
        Asked(
            row["question"],
            tuple(row["answers"]),
            frozenset(ids[title] for title in row["supporting_titles"] if title in ids),
            group,
        )
        for group, row in enumerate(read_jsonl(folder / "hotpotqa_train/questions.jsonl"))
    ]
    return [Passage(row["id"], row["text"], row["title"]) for row in rows], asked


def _musique(folder: Path) -> tuple[list[Passage], list[Asked]]:
    ids: dict[tuple[str, str], str] = {}
    asked = []
    for group, row in enumerate(read_jsonl(folder / "musique_train200/questions.jsonl")):
        supporting = set()
        for paragraph in row["paragraphs"]:
            name = ids.setdefault((paragraph["title"], paragraph["paragraph_text"]), f"musique-{len(ids)}")
            if paragraph["is_supporting"]:
                supporting.add(name)
        asked.append(Asked(row["question"], (row["answer"], *row["answer_aliases"]), frozenset(supporting), group))
    return [Passage(name, text, title) for (title, text), name in ids.items()], asked


def _steps(folder: Path) -> tuple[list[Passage], list[Asked]]:
    """Both hops of each question, the second with its bridge filled in, and how a chain asks for its first link."""
    corpus, whole = _musique(folder)
    ids = {(passage.title, passage.text): passage.id for passage in corpus}
    asked = []
    for one, row in zip(whole, read_jsonl(folder / "musique_train200/questions.jsonl"), strict=True):
        here = {read["idx"]: ids[read["title"], read["paragraph_text"]] for read in row["paragraphs"]}
        first, second = row["question_decomposition"]
        bridge = first["answer"]
        hops = [(first, (bridge,)), (second, one.answers)]
        for hop, answers in hops:
            question = _spoken(hop["question"].replace("#1", bridge))
            asked.append(Asked(question, answers, frozenset({here[hop["paragraph_support_idx"]]}), one.group))
        link = innermost(one.question)
        if link is not None:
            support = frozenset({here[first["paragraph_support_idx"]]})
            asked.append(Asked(link.as_question, (bridge,), support, one.group))
    return corpus, asked


def _spoken(question: str) -> str:
    """A hop as a question: "The Voice >> record label" asks what the record label of The Voice is."""
    subject, arrow, relation = question.partition(">>")
    return f"What is the {relation.strip()} of {subject.strip()}?" if arrow else question


def _nq(folder: Path) -> tuple[list[Passage], list[Asked]]:
    rows = read_jsonl(folder / "reading/nq_oracle.jsonl")
    ids: dict[tuple[str, str], str] = {}
    for row in rows:
        ids.setdefault((row["ctxs"][0]["title"], row["ctxs"][0]["text"]), f"nq-{len(ids)}")
    case = _Case(row["ctxs"][0]["text"] for row in rows)
    asked = [
        Asked(
            case.restored(row["question"]),
            tuple(row["answers"]),
            frozenset({ids[row["ctxs"][0]["title"], row["ctxs"][0]["text"]]}),
            group,
        )
        for group, row in enumerate(rows)
    ]
    return [Passage(name, text, title) for (title, text), name in ids.items()], asked


def _squad(folder: Path) -> tuple[list[Passage], list[Asked]]:
    rows = read_jsonl(folder / "reading/squad_sample.jsonl")
    ids: dict[str, str] = {}
    for row in rows:
        ids.setdefault(row["context"], f"squad-{len(ids)}")
    asked = [
        Asked(
            row["question"],
            tuple(answer["text"] for answer in row["answers"]),
            frozenset({ids[row["context"]]}),
            list(ids).index(row["context"]),
        )
        for row in rows
    ]
    return [Passage(name, text) for text, name in ids.items()], asked


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
