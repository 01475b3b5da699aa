"""Makes a few English questions as examples of what a collection answers, from facts that were read in it."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence

from ras_agent.config.registry import find
from ras_agent.contracts.records import Passage, Triple
from ras_agent.question_graph import QuestionGraph
from ras_agent.text.canonical import canonical_key
from ras_agent.text.overlap import holds
from ras_agent.text.words import stem_set

_MAKERS = {
    "founded": "founder",
    "invented": "inventor",
    "discovered": "discoverer",
    "designed": "designer",
    "written": "author",
    "directed": "director",
    "composed": "composer",
    "painted": "painter",
}
_PAST = {"written": "wrote"}  # past tenses that differ from the participle
_OFFICES = (
    "mayor",
    "chief executive",
    "president",
    "director",
    "chair",
    "head",
    "rector",
    "owner",
)
_MADE_BY = re.compile(rf"was ({'|'.join(_MAKERS)}) by")
_OF_OFFICE = re.compile(rf"the (?:{'|'.join(_OFFICES)}) of (?P<of>[^?]+)\?")
_PLACE = re.compile(r"\b(city|town|village|river)\b")
_BORN = "was born in"
# number of passages from which questions are made and answered
_PASSAGES = 300
_MOST = 4  # number of questions
_TRIED = 12  # number of questions that are tried to find them
_READ = 5  # number of passages with which a question is tried


def questions_about(passages: Sequence[Passage]) -> list[str]:
    """Return questions that a collection can answer, made from facts in its first passages.

    Each question is about something that the text names.
    """
    facts = []
    extractor = find("extractor", "offline")()
    first = passages[:_PASSAGES]
    for passage in first:
        heading, _, text = passage.text.partition("\n")
        # a heading that repeats the title does not count as naming the subject
        if not text or heading.strip("# ") != passage.title:
            text = passage.text
        text = text.casefold()
        facts += [
            fact
            for fact in extractor.extract([passage]).triples
            if fact.subject.casefold() in text
        ]
    answered: list[str] = []
    for question in example_questions(facts, _TRIED):
        if len(answered) < _MOST and is_answered(question, first):
            answered.append(question)
    return answered


def is_answered(question: str, passages: Sequence[Passage]) -> bool:
    """Tell whether the offline mode answers a question from `passages`.

    For a question about an office, such as "Who is the director of ...?", a cited sentence must name the institution.
    """
    asked = stem_set(question)
    nearest = sorted(
        passages,
        key=lambda one: len(asked & stem_set(f"{one.title} {one.text}")),
        reverse=True,
    )
    answer = find("answerer", "offline")().answer(
        question, QuestionGraph(), nearest[:_READ], ()
    )
    if answer.abstained:
        return False
    office = _OF_OFFICE.search(question)
    if office is None:
        return True
    # a line such as "Chair: Ada Crane" is rarely about the subject of its page
    return any(holds(citation.quote, office["of"]) for citation in answer.citations)


def example_questions(facts: Iterable[Triple], most: int = 4) -> list[str]:
    """Return at most `most` questions that one or two of the facts answer, each about another subject.

    Questions that need two facts come first, but are at most half of all; within each kind, they follow the
    order of the facts. Questions are made only for a few predicates ("was founded by", "was born in"), so facts
    in other words or in another language give none.
    """
    forms = _Forms(
        fact
        for fact in facts
        if fact.subject[:1].isupper() and fact.object[:1].isalnum()
    )
    hard = list(_first_of_each(forms.of_two()).items())[: most // 2]
    questions = dict(hard)
    for about, question in forms.of_one():
        questions.setdefault(about, question)
    return list(questions.values())[:most]


def _first_of_each(questions: Iterable[tuple[str, str]]) -> dict[str, str]:
    """Return the first question about each subject."""
    firsts: dict[str, str] = {}
    for about, question in questions:
        firsts.setdefault(about, question)
    return firsts


class _Forms:
    """Makes questions from facts, each with the key of its subject."""

    def __init__(self, facts: Iterable[Triple]) -> None:
        # by subject and predicate
        self._facts: dict[tuple[str, str], list[Triple]] = defaultdict(list)
        self._kinds: dict[str, str] = {}  # by key: "city", "town", "village" or "river"
        for fact in facts:
            key = canonical_key(fact.subject)
            self._facts[key, fact.predicate].append(fact)
            if fact.predicate.startswith("is") and (
                kind := _PLACE.search(f"{fact.predicate} {fact.object}")
            ):
                self._kinds.setdefault(key, kind[1])

    def of_one(self) -> Iterator[tuple[str, str]]:
        """Yield questions that one fact answers."""
        for fact, key in self._single():
            subject = fact.subject
            predicate = fact.predicate
            office = predicate.removesuffix(" is")
            named = fact.object[:1].isupper()
            if (made := _MADE_BY.fullmatch(predicate)) and named:
                yield key, f"Who {_PAST.get(made[1], made[1])} {subject}?"
            elif predicate == _BORN and named:
                kind = self._kinds.get(canonical_key(fact.object))
                yield (
                    key,
                    f"In which {kind} was {subject} born?"
                    if kind
                    else f"Where was {subject} born?",
                )
            elif (
                predicate in ("was founded in", "was launched in")
                and fact.object.isdecimal()
            ):
                yield key, f"When was {subject} {predicate.split()[1]}?"
            elif office in _OFFICES and office != predicate and named:
                yield key, f"Who is the {office} of {subject}?"

    def of_two(self) -> Iterator[tuple[str, str]]:
        """Yield questions that two facts answer: a fact, and another one about the same object."""
        through = {
            canonical_key(fact.object)
            for fact, key in self._single()
            if fact.predicate == "flows through" and self._kinds.get(key) == "river"
        }
        for fact, key in self._single():
            place = canonical_key(fact.object)
            if (
                fact.predicate == _BORN
                and place in through
                and self._kinds.get(place, "river") != "river"
            ):
                yield (
                    key,
                    f"Which river flows through the {self._kinds[place]} where {fact.subject} was born?",
                )
            made = _MADE_BY.fullmatch(fact.predicate)
            office = fact.predicate.removesuffix(" is")
            maker = (
                _MAKERS[made[1]]
                if made
                else office
                if office in _OFFICES and office != fact.predicate
                else ""
            )
            births = self._facts.get((place, _BORN), ())
            if maker and any(birth.object[:1].isupper() for birth in births):
                yield key, f"Where was the {maker} of {fact.subject} born?"

    def _single(self) -> Iterator[tuple[Triple, str]]:
        """Yield the facts that are the only ones with their subject and relation, each with the subject's key."""
        for (key, _), facts in self._facts.items():
            if len({canonical_key(fact.object) for fact in facts}) == 1:
                yield facts[0], key
