"""Reads the questions from which samples are made, with the documents that each needs and, if known, its
sub-queries.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import NamedTuple

from ras_agent.contracts.errors import IngestError, RunError
from ras_agent.contracts.records import Passage
from ras_agent.eval.question import Question, context_passage
from ras_agent.eval.question_file import OnBad, QuestionRecord, read_records
from ras_agent.eval.study.oracles import decomposed
from ras_agent.text.words import content_words, stem
from ras_agent.tools.index.documents import Skipped
from ras_agent.tools.index.stated_facts import STATED, mentions
from ras_agent.tools.kg.formats.openie import load_openie
from ras_agent.train.data import TrainingSet, questions_and_corpus

_PASSAGES_OF_A_SEARCH = 5  # RAS's
_REFERENCE = re.compile(r"#(\d+)")


@dataclass(frozen=True, slots=True)
class SubqQuestion:
    """Holds a question, the documents that together contain its answer, and, if known, a sub-query for each of
    them.

    Without sub-queries, the documents are in no particular order, and may be more than the question needs.
    """

    source: str
    question: Question
    documents: tuple[Passage, ...]
    subqueries: tuple[str, ...] = ()
    opening: tuple[Passage, ...] = ()
    """The passages found by a search for the question itself, if the history begins with it."""
    only_answer: bool = False
    """Whether only answering is learnt from it: from all documents at once, or without documents from
    memory."""


class SubqSource(NamedTuple):
    """Holds the questions of a file, and the passages that the loop would search for them."""

    questions: tuple[SubqQuestion, ...]
    passages: tuple[Passage, ...]


def musique(file: Path, on_bad: OnBad) -> SubqSource:
    """Read MuSiQue's questions with their gold decompositions, in which #1 and #2 are replaced by the gold answers.

    `on_bad` is called with the problem of each record or question that is left out.
    """
    return _read("musique", file, on_bad, _decomposed_question)


def hotpotqa(file: Path, on_bad: OnBad) -> SubqSource:
    """Read questions with their supporting documents, from HotpotQA or another set in one of its two formats.

    The documents come from the questions' contexts, or from a corpus.jsonl next to the file. `on_bad` is as for
    `musique`.
    """
    return _read("hotpotqa", file, on_bad, _supported_question)


def two_wiki(file: Path, on_bad: OnBad) -> SubqSource:
    """Read 2WikiMultihopQA's questions with sub-questions (`qa_pairs`), one for each supporting document, in its order.

    `on_bad` is as for `musique`.
    """
    return _read("2wikimultihopqa", file, on_bad, _question_of_pairs)


def arc_easy(file: Path, on_bad: OnBad) -> SubqSource:
    """Read ARC-Easy's questions, from which only answering is learnt.

    The first five passages of a record are read, if it has any. `on_bad` is as for `musique`.
    """
    return _read("arc-challenge", file, on_bad, partial(_to_answer, "arc-easy"))


def asqa(file: Path, on_bad: OnBad) -> SubqSource:
    """Read ASQA's questions with their long answers, from which only answering is learnt. `on_bad` is as for
    `musique`.
    """
    return _read("asqa", file, on_bad, partial(_to_answer, "asqa"))


def _read(
    form: str,
    file: Path,
    on_bad: OnBad,
    make: Callable[[Question, TrainingSet], SubqQuestion],
) -> SubqSource:
    """Return the questions of a file in the format of the benchmark `form`.

    `make` raises IngestError or RunError for a question that cannot be used.
    """
    training_set = questions_and_corpus(form, file, on_bad)
    questions = []
    for question in training_set.questions:
        try:
            if not question.answers:
                raise IngestError(f"{question.id}: no answer")
            questions.append(make(question, training_set))
        except (IngestError, RunError) as error:
            on_bad(IngestError(f"{file}: {error}"))
    return SubqSource(tuple(questions), training_set.passages)


def _decomposed_question(question: Question, _: TrainingSet) -> SubqQuestion:
    # "The Collegian >> owned by" names a relation of Wikidata; it is asked for in words
    subqueries = tuple(
        subquery.replace(" >> ", " ") for subquery in decomposed(question)
    )
    if not subqueries:
        raise IngestError(f"{question.id}: no decomposition")
    paragraphs = {passage.id: passage for passage in question.contexts}
    names = [str(step["supporting_id"]) for step in question.decomposition]
    if any(name not in paragraphs for name in names):
        raise IngestError(
            f"{question.id}: the paragraph_support_idx of a step is not the idx of one of the question's paragraphs"
        )
    return SubqQuestion(
        "musique", question, tuple(paragraphs[name] for name in names), subqueries
    )


def _supported_question(question: Question, training_set: TrainingSet) -> SubqQuestion:
    documents = tuple(training_set.gold(question))
    if not documents or len(documents) < len(question.supporting):
        raise IngestError(
            f"{question.id}: a supporting document is missing: documents are read from the corpus.jsonl next to the "
            "file, or without one from the contexts"
        )
    return SubqQuestion("hotpotqa", question, documents)


def _question_of_pairs(question: Question, training_set: TrainingSet) -> SubqQuestion:
    documents = tuple(training_set.gold(question))
    subqueries = tuple(decomposed(question))
    if not subqueries or len(subqueries) != len(documents):
        raise IngestError(
            f"{question.id}: {len(subqueries)} sub-questions (qa_pairs) for {len(documents)} supporting documents: "
            "each needs its own"
        )
    return SubqQuestion("2wiki", question, documents, subqueries)


def _to_answer(source: str, question: Question, _: TrainingSet) -> SubqQuestion:
    """Return a question from which only answering is learnt."""
    documents = question.contexts[:_PASSAGES_OF_A_SEARCH]
    return SubqQuestion(source, question, documents, only_answer=True)


def hotpotqa_subq(file: Path, on_bad: OnBad) -> SubqSource:
    """Read RAS's published HotpotQA-SUBQ: questions with `supporting_docs` and `sub_queries`, one for each document.

    A sub-query is left out if its document has no text. `on_bad` is as for `musique`.
    """
    questions = []
    for record in read_records(file, on_bad=on_bad):
        try:
            questions.append(_of_published_record(record))
        except IngestError as error:
            on_bad(error)
    return _source_of(questions)


def _of_published_record(record: QuestionRecord) -> SubqQuestion:
    topics = record.inside(record.data.get("supporting_docs"), "supporting_docs")
    texts = set[str]()
    for topic in topics.data:
        texts.update(topics.texts(topic))
    documents = []
    searches = []
    for item in record.objects("sub_queries"):
        text = item.text("supporting_doc")
        if not text.strip():
            continue
        if text not in texts:
            raise record.error(
                f"a document of 'sub_queries' is not among 'supporting_docs': {text!r:.80}"
            )
        documents.append(context_passage(item.text("doc_topic"), text))
        searches.append(item.text("sub_query"))
    if not documents:
        raise record.error(
            "'sub_queries' has no sub-query with a document: leave the record out"
        )
    question = Question(
        record.identity, record.text("question"), (record.text("answer"),)
    )
    return SubqQuestion("hotpotqa-subq", question, tuple(documents), tuple(searches))


def _source_of(questions: Sequence[SubqQuestion]) -> SubqSource:
    """Return the questions, with all their documents as the passages to search."""
    passages: list[Passage] = []
    for question in questions:
        passages += question.documents
    return SubqSource(tuple(questions), tuple(passages))


def strategyqa(file: Path, on_bad: OnBad) -> SubqSource:
    """Read those questions of StrategyQA whose last step compares the results of the other steps, which refer
    to no step.

    Only for these can the searches be written without the answers of single steps, which the set does not have.
    A question's facts are its documents: each is assigned to the step with which it shares most words. The
    set's development part is left out. `on_bad` is as for `musique`; it is also called with the number of
    questions of other kinds.
    """
    questions = []
    others = 0
    for record in read_records(file):
        steps = record.texts("decomposition")
        numbers = {str(number) for number in range(1, len(steps))}
        compares = (
            not any(map(_REFERENCE.search, steps[:-1]))
            and set(_REFERENCE.findall(steps[-1])) == numbers
        )
        if record.data.get("split") == "dev" or len(steps) < 3 or not compares:
            others += 1
            continue
        try:
            question = _comparison_question(record, steps[:-1])
            questions.append(question)
        except IngestError as error:
            on_bad(error)
    if others:
        on_bad(
            IngestError(
                f"{file}: {others} questions are not of the kind that can be used, or of the dev part"
            )
        )
    return _source_of(questions)


def _comparison_question(
    record: QuestionRecord, searches: tuple[str, ...]
) -> SubqQuestion:
    identity = record.text("qid")
    term = record.text("term")
    answer = record.data.get("answer")
    if not isinstance(answer, bool):
        raise record.error(f"'answer' should be true or false, found {answer!r:.80}")
    facts: list[list[str]] = [[] for _ in searches]
    for fact in record.texts("facts"):
        overlaps = [len(_stems(fact) & _stems(search)) for search in searches]
        most = max(overlaps)
        if most:
            facts[overlaps.index(most)].append(fact.strip())
    documents = []
    for number, texts in enumerate(facts, 1):
        if not texts:
            raise record.error(
                f"none of the 'facts' is about the sub-question {searches[number - 1]!r}: leave the record out"
            )
        documents.append(_document(f"{identity}#{number}", " ".join(texts), term))
    question = Question(
        id=identity,
        question=record.text("question"),
        answers=("yes" if answer else "no",),
    )
    return SubqQuestion("strategyqa", question, tuple(documents), searches)


def _document(name: str, text: str, term: str) -> Passage:
    """Return facts joined into a document. Its title is the question's term, if the facts name it, else "".

    The term is checked because an extractor takes the title as the subject of the text.
    """
    return Passage(name, text, term if mentions(text, term) else "")


def _stems(text: str) -> frozenset[str]:
    return frozenset(map(stem, content_words(text)))


ReadyTriples = Mapping[tuple[str, str], list[list[str]]]
"""The triples of documents, by title and text, as a passage lists what it states."""


def ready_triples(files: Iterable[Path], on_bad: OnBad) -> ReadyTriples:
    """Read files of OpenIE results, {"id", "title", "text", "triples"} a line.

    `on_bad` is called with the error of a line that cannot be read.
    """
    triples: dict[tuple[str, str], list[list[str]]] = {}
    for file in files:
        for entry in load_openie(file, str(file)):
            if isinstance(entry, Skipped):
                on_bad(IngestError(f"{entry.place}: {entry.reason}"))
            elif entry.facts.triples:
                rows = [
                    [fact.subject, fact.predicate, fact.object, file.name]
                    for fact in entry.facts.triples
                ]
                triples.setdefault(_content(entry.passage), rows)
    return triples


def with_triples(
    documents: Iterable[Passage], triples: ReadyTriples
) -> tuple[Passage, ...]:
    """Return the documents with the triples that `ready_triples` has read for them. Other documents are unchanged."""
    stating = []
    for document in documents:
        rows = triples.get(_content(document))
        if rows:
            document = replace(document, metadata={**document.metadata, STATED: rows})
        stating.append(document)
    return tuple(stating)


def _content(passage: Passage) -> tuple[str, str]:
    return passage.title.strip(), passage.text.strip()
