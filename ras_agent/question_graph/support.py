"""Decides whether the sentences that an answer cites support the answer.

A claim is a sentence of the answer, or the whole of a short answer. Its own words are those that the question does not
contain. A citation supports a claim if its evidence contains the claim's own words. The evidence is the quote, the
title of its passage, and the subjects and objects of the facts that were read there and stand in the passage. Several
citations may support a claim together, as with a list. A citation also supports a claim if it leads from a name of the
question to a sentence that supports the claim. An answer of yes or no is judged by a reader model.

`Citation.supported` is True, False, or None if it cannot be decided: there is no reader, or the quote is in another
language than the question.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import compress, filterfalse

from ras_agent.contracts.marks import NUMBER
from ras_agent.contracts.records import (
    Answer,
    Citation,
    Passage,
    Source,
    Triple,
    Verdict,
    is_person,
)
from ras_agent.text.canonical import canonical_key
from ras_agent.text.languages import foreign_language
from ras_agent.text.names import is_name, names_in
from ras_agent.text.options import options_of
from ras_agent.text.overlap import Sentence, holds, sentences_of
from ras_agent.text.sentences import sentence_spans
from ras_agent.text.standing import Standing, Words, Writing, fact_text
from ras_agent.text.terms import Term, terms_of
from ras_agent.text.titles import with_title

_NUMBERS = re.compile(rf"\s*(?:{NUMBER.live})")
_LEADING = re.compile(rf"(?:\s*(?:{NUMBER.live}))+")
_VERDICT = re.compile(r"\W*(yes|no|true|false)(?=\s*(?:[^\w\s]|\Z))", re.IGNORECASE)
_AFFIRMS = frozenset({"yes", "true"})
# a claim with at most so many words needs all of them; a longer one needs most
_SHORT = 3
_SHARE_OF_NAME = 0.6
_SHARE_OF_WORDS = 0.4
_OR = re.compile(r"\bor\b", re.IGNORECASE)
_TOGETHER = 0  # stands for all citations together; single citations are numbered from 1
# probabilities from which a verdict counts: a denial is right less often than an affirmation
_SURE_YES = 0.5
_SURE_NO = 0.7
_SURE_NOT_SAID = 0.7


@dataclass(frozen=True, slots=True)
class _Claim:
    """Holds a sentence of an answer without its citation numbers, and the citations that it names (all, if it
    names none).
    """

    text: str
    citations: tuple[Citation, ...]


@dataclass(frozen=True, slots=True)
class _Evidence:
    """Holds the contents of a citation: its sentence with names in place of pronouns, the names in it, and its
    language.
    """

    sentence: Words
    names: frozenset[str]
    language: str


def with_support(
    question: str,
    answer: Answer,
    passages: Mapping[str, Passage],
    facts: Mapping[str, Triple],
    verdicts: Sequence[Verdict] = (),
) -> Answer:
    """Return the answer with `supported` set in each citation.

    Args:
        passages: the passages by id.
        facts: the facts by id.
        verdicts: the reader's verdicts on `texts_to_judge`, in their order; () without a reader.
    """
    if not answer.citations:
        return answer
    evidence: dict[int, _Evidence] = {}
    support: dict[int, list[bool | None]] = {}
    for one in answer.citations:
        evidence[one.number] = _evidence(one, passages, facts)
        support[one.number] = []
    judged: dict[int, Verdict] = {}
    if verdicts:
        numbers = (*evidence, _TOGETHER)
        judged = dict(zip(numbers, verdicts, strict=True))
    for claim in _claims_of(question, answer):
        if said := _VERDICT.match(claim.text):
            affirms = said[1].lower() in _AFFIRMS
            found = _judged(affirms, claim.citations, judged)
        else:
            found = _worded(question, claim, evidence)
        for number, supported in found.items():
            support[number].append(supported)
    citations = []
    for one in answer.citations:
        supported = _any(support[one.number])
        citations.append(replace(one, supported=supported))
    return replace(answer, citations=tuple(citations))


def texts_to_judge(
    question: str, answer: Answer, passages: Mapping[str, Passage]
) -> list[str]:
    """Return the texts that a reader judges if an answer begins with yes or no: each quote, then all quotes joined.

    Return [] for any other answer, and if the question or the quotes are not in English.
    """
    if not answer.citations or not _VERDICT.match(_said(answer)):
        return []
    quotes = []
    for one in answer.citations:
        passage = passages[one.passage_id]
        quote = one.quote or passage.text
        quotes.append(with_title(passage.heading, quote))
    together = " ".join(quotes)
    if foreign_language(question) or foreign_language(together):
        return []
    return [*quotes, together]


def best_bearing(question: str, answer: str, passage: Passage) -> Sentence | None:
    """Return the sentence of a passage that best supports an answer, or None if no sentence shares a word with it.

    A sentence scores 1 for each word of the answer that it contains and the question does not, plus the support that
    it gives to answer and question as whole phrases (see `Sentence.support`).
    """
    writing = fact_text(passage.text, passage.heading).words.writing
    own = _own_terms(question, answer, writing)
    best = None
    most = 0.0
    for sentence in sentences_of(passage.text):
        bears = sentence.support((answer, question))
        if bears:
            words = Words(passage.text[sentence.start : sentence.end], writing)
            bears += sum(words.has(term) is True for term in own)
        if bears > most:
            best = sentence
            most = bears
    return best


def is_grounded(answer: Answer) -> bool:
    """Tell whether citations support an answer: it does not abstain, and at least one citation supports it or
    may do so.
    """
    if answer.abstained:
        return False
    return any(one.supported is not False for one in answer.citations)


def unsupported_message(answer: Answer) -> str:
    """Return a message with a remedy if no citation supports the answer; "" if one does or may, or if the answer
    abstains.
    """
    if answer.abstained or is_grounded(answer):
        return ""
    said = f"{answer.text.strip():.80}"
    if not answer.citations:
        return f"the answer {said!r} cites nothing, so nothing shows that it is right: let the answerer cite passages"
    return (
        f"no cited sentence supports the answer {said!r}: do not rely on it; search wider (k, max_hops), "
        "or give the answerer a stronger model"
    )


def _claims_of(question: str, answer: Answer) -> list[_Claim]:
    """Return the claims of an answer: its sentences if they have citation numbers, otherwise the whole answer."""
    text = _said(answer)
    if not text:
        return []
    text = options_of(question).get(text.strip(), text)
    if not _NUMBERS.search(text):
        return [_Claim(text, answer.citations)]
    claims: list[_Claim] = []
    for sentence in _numbered_sentences(text):
        runs = " ".join(_NUMBERS.findall(sentence))
        digits = re.findall(r"\d+", runs)
        numbers = set(map(int, digits))
        cited = [one for one in answer.citations if one.number in numbers]
        bare = _NUMBERS.sub("", sentence).strip()
        if bare:
            claims.append(_Claim(bare, tuple(cited) or answer.citations))
    return claims


def _numbered_sentences(text: str) -> list[str]:
    """Return the sentences of a text, each with the citation numbers that follow its full stop."""
    sentences: list[str] = []
    for start, end in sentence_spans(text):
        sentence = text[start:end]
        leading = _LEADING.match(sentence)
        if leading and sentences:
            sentences[-1] += leading.group()
            sentence = sentence[leading.end() :]
        sentences.append(sentence)
    return sentences


def _said(answer: Answer) -> str:
    """Return an answer's text, or the suggestion of an answer that abstains."""
    if answer.abstained:
        return answer.suggestion
    return answer.text


def _evidence(
    citation: Citation, passages: Mapping[str, Passage], facts: Mapping[str, Triple]
) -> _Evidence:
    passage = passages[citation.passage_id]
    title = citation.bare_title
    whole = fact_text(passage.text, title)
    quote = passage.text[citation.start : citation.end] or passage.text
    ends = []
    for end in _ends(citation, facts):
        if whole.words.standing(end) is Standing.STANDS:
            ends.append(end)
    ends += _said_by_a_person(citation, facts)
    sentence = with_title(title, " ".join([quote, *ends]))
    names = [title, *ends, *names_in(quote)]
    return _Evidence(
        Words(sentence, whole.words.writing),
        _keys(filter(is_name, names)),
        foreign_language(whole.words.text),
    )


def _said_by_a_person(citation: Citation, facts: Mapping[str, Triple]) -> list[str]:
    """Return the subjects and objects of cited facts that a person wrote or corrected. They need no other
    support.
    """
    ends = []
    for fact in _cited_facts(citation, facts):
        if any(is_person(source.extractor) for source in fact.sources):
            ends += [fact.subject, fact.object]
    return ends


def _cited_facts(citation: Citation, facts: Mapping[str, Triple]) -> list[Triple]:
    known = map(facts.get, citation.triple_ids)
    return list(filter(None, known))


def _ends(citation: Citation, facts: Mapping[str, Triple]) -> list[str]:
    """Return the subjects and objects of the facts that were read in a citation's sentence."""
    place = Source(citation.passage_id, citation.start, citation.end)
    ends = []
    for fact in _cited_facts(citation, facts):
        if not fact.sources or fact.was_read_in(place):
            ends += [fact.subject, fact.object]
    return ends


def _worded(
    question: str, claim: _Claim, evidence: Mapping[int, _Evidence]
) -> dict[int, bool | None]:
    """Return by citation number whether the citation supports a claim, judged by the words of both."""
    first = evidence[claim.citations[0].number]
    writing = first.sentence.writing
    terms = _own_terms(question, claim.text, writing)
    cited = {}
    held = {}
    for citation in claim.citations:
        number = citation.number
        one = evidence[number]
        cited[number] = one
        held[number] = list(map(one.sentence.has, terms))
    by_term = zip(*held.values(), strict=True)
    together = list(map(_any, by_term))
    has = dict(zip(terms, together, strict=True))
    supported = _is_supported(claim.text, has)
    if supported is False:
        sentences = cited.values()
        if _may_be_said_otherwise(question, has, sentences):
            supported = None
    if not supported:
        return dict.fromkeys(cited, supported)
    if not _is_chosen(question, claim.text):
        return _supporting(question, held, evidence)
    asked = _keys_asked(question)
    support: dict[int, bool | None] = {}
    for number, one in cited.items():
        is_open = bool(one.names & asked)
        support[number] = None if is_open else False
    return support


@lru_cache(maxsize=4)  # all claims of an answer are compared with one question
def _words_asked(question: str, writing: Writing) -> Words:
    return Words(question, writing)


@lru_cache(maxsize=4)
def _keys_asked(question: str) -> frozenset[str]:
    return _keys(names_in(question))


@lru_cache(maxsize=4)
def _choices(question: str) -> tuple[str, ...]:
    """Return the names in a question that asks for a choice ("A or B"); () for any other question."""
    if not _OR.search(question):
        return ()
    return tuple(names_in(question))


def _keys(names: Iterable[str]) -> frozenset[str]:
    return frozenset(map(canonical_key, names))


def _is_chosen(question: str, claim: str) -> bool:
    """Return whether a claim is one of the question's choices, because any sentence about that choice contains
    its words.
    """
    choices = _choices(question)
    return any(holds(claim, name) for name in choices)


def _own_terms(question: str, claim: str, writing: Writing) -> list[Term]:
    """Return the words and figures of a claim that are not in the question; all of its words if all are in the
    question.
    """
    content = Words("", writing).content(claim)
    terms = list(dict.fromkeys(content))
    asked = _words_asked(question, writing)
    return list(filterfalse(asked.has, terms)) or terms


def _may_be_said_otherwise(
    question: str, held: Mapping[Term, bool | None], evidence: Iterable[_Evidence]
) -> bool:
    """Return whether sentences without a claim's words may still state it, in another language or with other
    word endings.

    A missing figure is missing in every language.
    """
    for term, has in held.items():
        if term.is_figure and has is False:
            return False
    holds_some = True in held.values()
    asked_in = foreign_language(question)
    for one in evidence:
        is_foreign = one.language != "" or not one.sentence.text.isascii()
        is_inflected = is_foreign and one.sentence.writing is Writing.LETTERS
        if one.language != asked_in or (is_inflected and holds_some):
            return True
    return False


def _is_supported(claim: str, held: Mapping[Term, bool | None]) -> bool | None:
    """Return whether enough of a claim's own terms are held: all figures, most of each name, and many other words.

    A claim with a figure or a name may lack one other word: "the year 1847". A claim of a few words without figures and
    names needs all of them. Returns None if it is open for every term.
    """
    known = {term: has for term, has in held.items() if has is not None}
    if not known:
        return None
    named: set[Term] = set()
    for name in names_in(claim):
        words = known.keys() & terms_of(name)
        has_words = [known[term] for term in words]
        if words and _share(has_words) < _SHARE_OF_NAME:
            return False
        named |= words
    others = []
    has_figures = False
    for term, has in known.items():
        if term.is_figure:
            has_figures = True
            if not has:
                return False
        elif term not in named:
            others.append(has)
    if has_figures or named:
        return len(others) <= 1 or _share(others) >= _SHARE_OF_WORDS
    if len(known) <= _SHORT:
        return all(others)
    return _share(others) >= _SHARE_OF_WORDS


def _share(held: Sequence[bool]) -> float:
    return sum(held) / len(held)


def _supporting(
    question: str,
    held: Mapping[int, Sequence[bool | None]],
    evidence: Mapping[int, _Evidence],
) -> dict[int, bool | None]:
    """Return by citation number whether the citation supports a claim that citations state together.

    A citation supports the claim if it contains terms of the claim, unless another citation contains all of
    these and more, or if it leads to such a citation through a shared name.
    """
    parts = {}
    for number, has in held.items():
        places = compress(range(len(has)), has)
        parts[number] = frozenset(places)
    support: dict[int, bool | None] = {}
    for number, own in parts.items():
        is_within_another = any(map(own.__lt__, parts.values()))
        if own and not is_within_another:
            support[number] = True
    asked = _keys_asked(question)
    reached = set(support)
    while reached:
        bridges: set[str] = set()
        for number in reached:
            bridges |= evidence[number].names
        bridges -= asked
        left = parts.keys() - support.keys()
        reached = {number for number in left if evidence[number].names & bridges}
        support |= dict.fromkeys(reached, True)
    for number in parts:
        is_open = not evidence[number].names
        support.setdefault(number, None if is_open else False)
    return support


def _judged(
    affirms: bool, citations: Sequence[Citation], verdicts: Mapping[int, Verdict]
) -> dict[int, bool | None]:
    """Return by citation number whether the citation supports an answer of yes or no.

    A citation supports the answer if its verdict agrees with it. If no single verdict does, all citations
    support it if the verdict on all of them together agrees.
    """
    support: dict[int, bool | None] = {}
    for one in citations:
        support[one.number] = None
    if not verdicts:
        return support
    for number in support:
        verdict = verdicts[number]
        support[number] = _agrees(affirms, verdict)
    # a single citation that disagrees may still be part of the proof: one of two things that are compared
    if True in support.values():
        return {number: supported or None for number, supported in support.items()}
    if _agrees(affirms, verdicts[_TOGETHER]):
        return dict.fromkeys(support, True)
    return support


def _agrees(affirms: bool, verdict: Verdict) -> bool | None:
    """Return whether a verdict agrees with the answer; None if the verdict is not sure enough."""
    says_yes = verdict.true >= _SURE_YES
    says_no = verdict.false >= _SURE_NO
    if says_yes or says_no:
        return says_yes is affirms
    if verdict.not_said >= _SURE_NOT_SAID:
        return False
    return None


def _any(found: Iterable[bool | None]) -> bool | None:
    """Return True if a value is true; else None if a value is None or there are no values; else False."""
    seen = set(found)
    if True in seen:
        return True
    if None in seen or not seen:
        return None
    return False
