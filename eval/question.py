"""Defines Question: a question with its gold answers and gold passages, the same record for all benchmarks."""

from __future__ import annotations

import hashlib
import json
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Self

from ras_agent.contracts.errors import IngestError
from ras_agent.contracts.records import Passage
from ras_agent.eval.question_file import QuestionRecord, unpacked

if TYPE_CHECKING:
    from ras_agent.graphs.state import Inputs


@dataclass(frozen=True, slots=True)
class Question:
    """Holds a question, and everything that its benchmark knows about it."""

    id: str
    question: str
    """The text as it is asked. A multiple-choice question includes its options, one a line ("A. ...")."""
    answers: tuple[str, ...]
    """The gold answers."""
    supporting: tuple[str, ...] = ()
    """The ids of the gold passages, or their titles if `by_title`."""
    by_title: bool = False
    """Whether gold passages are named by title instead of id."""
    type: str = ""
    """The kind of question, as the benchmark names it."""
    contexts: tuple[Passage, ...] = ()
    """The passages that the benchmark gives with the question, including distractors."""
    metadata: Mapping[str, Any] = field(default_factory=dict)
    """Further facts of the benchmark, as plain JSON. Properties of this class and the metrics read `hops`, `as_of` (the
    date for which the question is asked), `decomposition` (a list of {"question", "answer"}, one per hop, in which #1,
    #2 stand for the answers of earlier hops), `choices` ({label: text}), `label` (the right choice), `classes`,
    `triples` (a gold graph), `path`, `graph` (a TextualGraph's dict, or triples), `question_entities`,
    `answer_entities`, and `claims` and `short_answers` (of a long answer)."""

    @property
    def inputs(self) -> Inputs:
        """Return the input of an agent: the question, and the date for which it is asked if it has one."""
        inputs: Inputs = {"question": self.question}
        if "as_of" in self.metadata:
            inputs["as_of"] = self.metadata["as_of"]
        return inputs

    @property
    def decomposition(self) -> tuple[Mapping[str, str], ...]:
        """Return the gold sub-questions with their answers; () if they are unknown."""
        steps = self.metadata.get("decomposition", ())
        return tuple(steps)

    @property
    def hops(self) -> int | None:
        """Return the number of hops that the question needs; None if it is unknown.

        It is the benchmark's number, or else the number of gold sub-questions, or else that of distinct gold passages.
        """
        count = self.metadata.get("hops")
        if count:
            return int(count)
        gold = set(self.supporting)
        return len(self.decomposition) or len(gold) or None

    def names(self, passages: Iterable[Passage]) -> tuple[str, ...]:
        """Return each passage's name as gold annotations have it: its title or its id.

        A chunk of a gold document gets the document's id.
        """
        if self.by_title:
            return tuple(passage.title for passage in passages)
        gold = frozenset(self.supporting)
        names = []
        for passage in passages:
            name = passage.id
            if name not in gold and passage.document_id in gold:
                name = passage.document_id
            names.append(name)
        return tuple(names)

    @property
    def relevance(self) -> Mapping[str, float]:
        """Return the grade of relevance of each gold passage; {} if the question has no grades. See `read_grades`."""
        return read_grades(self.metadata, f"question {self.id!r}")

    @property
    def choices(self) -> Mapping[str, str]:
        """Return the options by label; {} if the question has no options."""
        choices: Mapping[str, str] = self.metadata.get("choices", {})
        return choices

    @property
    def graph(self) -> TextualGraph:
        """Return the graph that comes with the question, or an empty graph."""
        triples = self.metadata.get("graph") or ()
        if isinstance(triples, Mapping):
            return TextualGraph.from_dict(triples)
        return TextualGraph.from_triples(triples)

    @property
    def label(self) -> str:
        """Return the label of the right option, or "true" or "false"; "" if the question has no label."""
        label = self.metadata.get("label", "")
        return str(label)


@dataclass(frozen=True, slots=True)
class TextualGraph:
    """Holds a graph with texts on its nodes and edges, as in the questions of GraphQA and the Freebase benchmarks."""

    nodes: tuple[str, ...] = ()
    """The texts of the nodes; the index of a node is its id."""
    edges: tuple[tuple[int, str, int], ...] = ()
    """Triples (index of the source, text, index of the target)."""

    @classmethod
    def from_triples(cls, triples: Iterable[Sequence[str]]) -> Self:
        """Return a graph with nodes in the order of first appearance. Equal texts become one node."""
        places: dict[str, int] = {}
        edges = []
        for subject, predicate, target in triples:
            start = places.setdefault(subject, len(places))
            end = places.setdefault(target, len(places))
            edges.append((start, predicate, end))
        return cls(tuple(places), tuple(edges))

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        """Return the graph whose JSON `to_dict` wrote."""
        edges = [(source, text, target) for source, text, target in data["edges"]]
        return cls(tuple(data["nodes"]), tuple(edges))

    def to_dict(self) -> dict[str, Any]:
        """Return plain JSON: {"nodes": [text], "edges": [[source, text, target]]}."""
        edges = list(map(list, self.edges))
        return {"nodes": list(self.nodes), "edges": edges}

    def triples(self) -> tuple[tuple[str, str, str], ...]:
        """Return the edges with the texts of their nodes."""
        triples = []
        for source, text, target in self.edges:
            head = self.nodes[source]
            tail = self.nodes[target]
            triples.append((head, text, tail))
        return tuple(triples)


REST = "ras_agent"
"""The key of a written row under which fields of a question are kept that the row's format does not have."""


def rest_of(question: Question) -> dict[str, str]:
    """Return the fields of a question that a foreign format does not have, as {REST: JSON text}.

    These are type, gold passages, contexts and metadata. Return {} if there is no type, context or metadata.
    """
    if not (question.type or question.contexts or question.metadata):
        return {}
    rest = {
        "type": question.type,
        "supporting": list(question.supporting),
        "by_title": question.by_title,
        "contexts": [passage.to_dict() for passage in question.contexts],
        "metadata": dict(question.metadata),
    }
    return {REST: json.dumps(rest, ensure_ascii=False, default=str)}


def with_rest(question: Question, text: str) -> Question:
    """Return a question with the fields that `rest_of` wrote into `text`.

    Raises:
        ValueError: If `rest_of` did not write the text.
    """
    rest = json.loads(text)
    return replace(
        question,
        type=rest["type"],
        supporting=tuple(rest["supporting"]),
        by_title=rest["by_title"],
        contexts=tuple(map(Passage.from_dict, rest["contexts"])),
        metadata=rest["metadata"],
    )


def read_grades(metadata: Mapping[str, Any], where: str) -> Mapping[str, float]:
    """Return the grade of each passage under the key `relevance`; {} if the user's metadata use that key for
    something else.

    Args:
        metadata: The metadata of a question.
        where: The place of the metadata, for error messages.

    Raises:
        IngestError: If a grade is not a finite number.
    """
    grades = metadata.get("relevance")
    if not isinstance(grades, Mapping) or not all(
        isinstance(grade, int | float | None) for grade in grades.values()
    ):
        return {}
    for name, grade in grades.items():
        # a grade that is not a number is read as None
        if grade is None or not abs(grade) <= sys.float_info.max:
            raise IngestError(
                f"{where}: the grade of {name!r} should be a finite number, found {grade!r:.80}"
            )
    return dict(grades)


def context_passage(title: str, text: str, **metadata: Any) -> Passage:
    """Return a benchmark's paragraph as a passage. Its id is made from title and text, so equal paragraphs have
    one id.
    """
    content = text.encode(errors="surrogatepass")
    digest = hashlib.blake2b(content, digest_size=4).hexdigest()
    return Passage(f"{title}#{digest}", text, title, metadata=metadata)


def listed_choices(question: str, texts: Sequence[str]) -> tuple[dict[str, str], str]:
    """Return the options by letter, from A, and the question with one line added for each option.

    Args:
        question: The question.
        texts: The texts of the options.
    """
    choices = {}
    lines = [question]
    for place, text in enumerate(texts):
        letter = chr(ord("A") + place)
        choices[letter] = text
        lines.append(f"{letter}. {text}")
    return choices, "\n".join(lines)


def given_passages(record: QuestionRecord, *keys: str) -> tuple[Passage, ...]:
    """Return the passages under the first of `keys` that the record has, each once, in order; () if it has none
    of them.

    A passage can be a text; an object with `text` (or `paragraph_text`, `content`) and optional `title` (or
    `wikipage`); or a [title, sentences] pair. If the value is an object with the columns `title` and
    `sentences` (or `content`), these are read as pairs.
    """
    for key in keys:
        if key in record:
            passages: dict[str, Passage] = {}
            for place, item in context_items(record, key):
                passage = context_of_item(record, item, place)
                passages[passage.id] = passage
            return tuple(passages.values())
    return ()


def gold_titles(record: QuestionRecord, key: str) -> tuple[str, ...]:
    """Return the titles that supporting facts name, each once; () if the record has nothing under `key`.

    Facts can be the columns `title` and `sent_id`, [title, sentence] pairs, objects with a title (or
    `wikipage`), {title: sentences}, or titles. A single fact need not be in a list. Raises IngestError for
    another form.
    """
    facts = unpacked(record.data.get(key))
    if not facts:
        return ()
    if isinstance(facts, Mapping):
        for column in ("title", "titles"):
            if column in facts:
                return tuple(dict.fromkeys(record.inside(facts, key).texts(column)))
    if isinstance(facts, str):
        if facts.lstrip().startswith(("{'", '{"')):
            raise record.error(
                f"{key!r} is an object in Python's notation, {facts!r:.80}: write it as JSON, with json.dumps(...)"
            )
        return record.texts(key)
    if not isinstance(facts, list | Mapping):
        raise record.error(
            f"{key!r} should be a list of titles, or of [title, sentence] pairs, found {facts!r:.80}"
        )
    if _is_pair(facts):
        facts = [facts]
    titles = []
    for fact in facts:
        title = _title_of(fact)
        if not isinstance(title, str):
            raise record.error(
                f"each item of {key!r} should be a title or a [title, sentence] pair, found {fact!r:.80}"
            )
        titles.append(title)
    return tuple(dict.fromkeys(titles))


def _is_pair(facts: object) -> bool:
    """Tell whether facts are one [title, sentence] pair and not a list of pairs."""
    if not isinstance(facts, list) or len(facts) != 2:
        return False
    title, sentence = facts
    return isinstance(title, str) and isinstance(sentence, int)


def union_of_contexts(questions: Iterable[Question]) -> list[Passage]:
    """Return the contexts of all questions, each passage once, in the order of first appearance."""
    passages: dict[str, Passage] = {}
    for question in questions:
        for passage in question.contexts:
            passages.setdefault(passage.id, passage)
    return list(passages.values())


def _title_of(fact: object) -> object:
    """Return the title of a fact, which is an object with a title, {title: sentences}, a pair, or a title."""
    if isinstance(fact, list) and fact:
        return fact[0]
    if not isinstance(fact, Mapping):
        return fact
    for key in ("title", "wikipage"):
        if key in fact:
            return fact[key]
    if len(fact) == 1:
        ((title, sentences),) = fact.items()
        if isinstance(sentences, list | int):
            return title
    return fact


def context_items(record: QuestionRecord, key: str) -> list[tuple[str, Any]]:
    """Return each context under a key with its place in the record; [] if there are none. Columns are read as
    pairs.
    """
    if key not in record:
        return []
    value = unpacked(record.data[key])
    if isinstance(value, Mapping) and "title" in value:
        columns = record.inside(value, key)
        titles = columns.texts("title")
        texts = columns.items("sentences", "content")
        if len(titles) != len(texts):
            raise columns.error(f"{len(titles)} titles but {len(texts)} texts")
        pairs = zip(titles, texts, strict=True)
        items: list[Any] = list(map(list, pairs))
    else:
        items = record.items(key)
    placed = []
    for number, item in enumerate(items, 1):
        placed.append((f"{key} {number}", item))
    return placed


def context_of_item(record: QuestionRecord, item: object, place: str) -> Passage:
    """Return a context as a passage whose id is made from its content.

    `place` is where the item is in the record, for messages.
    """
    if isinstance(item, str):
        return context_passage("", item)
    if isinstance(item, list) and len(item) == 2 and isinstance(item[0], str):
        title, sentences = item
        return context_passage(title, joined_sentences(sentences))
    inner = record.inside(item, place)
    title = inner.text("title", "wikipage", default="")
    more = {}
    for key in ("id", "score", "is_supporting", "isgold"):
        if key in inner:
            more[key] = inner.data[key]
    return context_passage(
        title, inner.text("text", "paragraph_text", "content"), **more
    )


def joined_sentences(sentences: str | Sequence[object]) -> str:
    """Join the sentences of a paragraph to one text. HotpotQA's begin with a space, 2Wiki's do not, and some
    are blank.
    """
    if isinstance(sentences, str):
        return sentences
    stripped = [str(sentence).strip() for sentence in sentences]
    return " ".join(filter(None, stripped))
