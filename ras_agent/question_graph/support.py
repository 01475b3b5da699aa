"""Do the sentences that an answer cites bear it?

A claim is a sentence of an answer, or all of a short one. Its own words are those that the question does not have. A
citation bears a claim whose own words its sentence has: the quote, the title of its passage, and the ends of the facts
that were read there and stand in the passage. Several citations may bear a claim together, as they do a list, and one
supports it too that leads from a name of the question to a sentence that bears it. What is answered with yes or no is
judged by a reader.

`Citation.supported` is True, False, or None where nothing can be told: there is no reader, or the quote is in another
language than the question.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import compress

from ras_agent.marks import NUMBER
from ras_agent.records import Answer, Citation, Passage, Source, Triple, Verdict
from ras_agent.text.canonical import canonical_key
from ras_agent.text.languages import foreign_language
from ras_agent.text.names import is_name, name_spans, names_in
from ras_agent.text.sentences import sentence_spans
from ras_agent.text.titles import bare_title, file_title, with_title
from ras_agent.text.wording import Part, Wording, content_of

_NUMBERS = re.compile(rf"\s*(?:{NUMBER.live})")
_LEADING = re.compile(rf"(?:\s*(?:{NUMBER.live}))+")
_VERDICT = re.compile(r"\W*(yes|no|true|false)\b", re.IGNORECASE)
_AFFIRMS = frozenset({"yes", "true"})
_SHORT = 3  # words of a claim that have to be there, all of them; of more most
_SHARE_OF_NAME, _SHARE_OF_WORDS = 0.5, 0.6
_TOGETHER = 0  # the number of what all citations say, which are numbered from 1
# probabilities from which a verdict is taken: what it denies is seldomer right than what it affirms
_SURE_YES, _SURE_NO, _SURE_NOT_SAID = 0.5, 0.7, 0.7


@dataclass(frozen=True, slots=True)
class _Claim:
    """A sentence of an answer without its numbers, and the citations that it names; all of them where it names none."""

    text: str
    citations: tuple[Citation, ...]


@dataclass(frozen=True, slots=True)
class _Evidence:
    """What a citation says: its sentence with what stands for its pronouns, its passage, and the names in it."""

    sentence: Wording
    passage: Wording
    names: frozenset[str]
    language: str


def with_support(
    question: str,
    answer: Answer,
    passages: Mapping[str, Passage],
    facts: Mapping[str, Triple],
    verdicts: Sequence[Verdict] = (),
) -> Answer:
    """Return the answer whose citations say whether they support it.

    passages, facts: by id. verdicts: on `texts_to_judge`, in their order; none without a reader.
    """
    if not answer.citations:
        return answer
    evidence = {one.number: _evidence(one, passages, facts) for one in answer.citations}
    judged = dict(zip((*evidence, _TOGETHER), verdicts, strict=True)) if verdicts else {}
    support: dict[int, list[bool | None]] = {one.number: [] for one in answer.citations}
    for claim in claims_of(answer):
        if said := _VERDICT.match(claim.text):
            found = _judged(said[1].lower() in _AFFIRMS, claim.citations, judged)
        else:
            found = _worded(question, claim, evidence)
        for number, supported in found.items():
            support[number].append(supported)
    citations = [replace(one, supported=_any(support[one.number])) for one in answer.citations]
    return replace(answer, citations=tuple(citations))


def texts_to_judge(question: str, answer: Answer, passages: Mapping[str, Passage]) -> list[str]:
    """Return what a reader has to judge where an answer begins with yes or no: each quote, then all of them."""
    if not answer.citations or not _VERDICT.match(_said(answer)):
        return []
    quotes = [with_title(one.title, one.quote or passages[one.passage_id].text) for one in answer.citations]
    together = " ".join(quotes)
    return [] if foreign_language(question) or foreign_language(together) else [*quotes, together]


def is_grounded(answer: Answer) -> bool:
    """Return whether an answer rests on what it cites: it does not abstain, and a citation supports it, or may."""
    return not answer.abstained and any(one.supported is not False for one in answer.citations)


def what_is_not_borne(answer: Answer) -> str:
    """Say that nothing that an answer cites bears it, and what to do; "" where something does or may."""
    if answer.abstained or is_grounded(answer):
        return ""
    said = f"{answer.text.strip():.80}"
    if not answer.citations:
        return f"the answer {said!r} cites nothing, so nothing shows that it is right: let the answerer cite passages"
    return (
        f"no cited sentence bears the answer {said!r}: do not rely on it; search wider (k, max_hops), "
        "or give the answerer a stronger model"
    )


def claims_of(answer: Answer) -> list[_Claim]:
    """Return what an answer claims: its sentences where they have numbers of citations, else all of it at once."""
    text = _said(answer)
    if not _NUMBERS.search(text):
        return [_Claim(text, answer.citations)]
    claims: list[_Claim] = []
    for sentence in _numbered_sentences(text):
        numbers = {int(number) for run in _NUMBERS.findall(sentence) for number in re.findall(r"\d+", run)}
        cited = tuple([one for one in answer.citations if one.number in numbers])
        claims.append(_Claim(_NUMBERS.sub("", sentence).strip(), cited or answer.citations))
    return [claim for claim in claims if claim.text]


def _numbered_sentences(text: str) -> list[str]:
    """Return the sentences of a text, each with the numbers that stand behind its full stop."""
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
    """Return an answer's text; of one that abstains what it suggests, behind a colon."""
    _, colon, suggested = answer.text.partition(": ")
    return suggested if answer.abstained and colon else answer.text


def _evidence(citation: Citation, passages: Mapping[str, Passage], facts: Mapping[str, Triple]) -> _Evidence:
    passage = passages[citation.passage_id]
    title = "" if citation.file and citation.title == file_title(citation.file) else bare_title(citation.title)
    whole = with_title(title, passage.text)
    wording = Wording(whole)
    quote = citation.quote or passage.text
    ends = [end for end in _ends(citation, facts) if not wording.compare(end).lacking]
    sentence = with_title(title, " ".join([quote, *ends]))
    names = [title, *ends, *names_in(quote)]
    keys = frozenset([canonical_key(name) for name in names if is_name(name)])
    return _Evidence(Wording(sentence), wording, keys, foreign_language(whole))


def _ends(citation: Citation, facts: Mapping[str, Triple]) -> list[str]:
    """Return the ends of the facts that were read in a citation's sentence."""
    place = Source(citation.passage_id, citation.start, citation.end)
    cited = [facts[name] for name in citation.triple_ids if name in facts]
    read = [fact for fact in cited if not fact.sources or fact.was_read_in(place)]
    return [end for fact in read for end in (fact.subject, fact.object)]


def _worded(question: str, claim: _Claim, evidence: Mapping[int, _Evidence]) -> dict[int, bool | None]:
    """Return by number which citations support a claim, by its words."""
    numbers = [one.number for one in claim.citations]
    is_own = [not part.is_held for part in Wording(question).compare(claim.text).parts]
    if not any(is_own):
        is_own = [True] * len(is_own)
    held: dict[int, list[bool | None]] = {}
    parts: list[Part] = []
    for number in numbers:
        compared = evidence[number].sentence.compare(claim.text)
        parts = list(compress(compared.parts, is_own))
        held[number] = [part.is_held for part in parts]
    together = [_any(of_part) for of_part in zip(*held.values(), strict=True)]
    borne = _is_borne(claim.text, [part._replace(is_held=has) for part, has in zip(parts, together, strict=True)])
    asked_in = foreign_language(question)
    if borne is False and any(evidence[number].language != asked_in for number in numbers):
        borne = None
    if not borne:
        return dict.fromkeys(numbers, borne)
    return _supporting(question, held, evidence)


def _is_borne(claim: str, parts: Sequence[Part]) -> bool | None:
    """Return whether enough of a claim's own parts are held: all figures, half of each name, and most other words.

    Beside a figure or a name, a few other words need not be there: "the year 1847".
    """
    compared = {part.text: part for part in parts if part.is_held is not None}
    if not compared:
        return None
    figures = [part for part in compared.values() if part.is_figure]
    names = [words for name in _names_inside(claim) if (words := compared.keys() & content_of(name))]
    named = frozenset().union(*names)
    others = [part for part in compared.values() if not part.is_figure and part.text not in named]
    if not all(part.is_held for part in figures):
        return False
    if not all(_share([compared[word] for word in name]) >= _SHARE_OF_NAME for name in names):
        return False
    if len(others) <= _SHORT:
        return bool(figures or names) or all(part.is_held for part in others)
    return _share(others) >= _SHARE_OF_WORDS


def _names_inside(claim: str) -> list[str]:
    """Return the names of a claim; not its first word by itself, whose capital may be the sentence's."""
    return [claim[start:end] for start, end in name_spans(claim) if start or " " in claim[:end] or end == len(claim)]


def _share(parts: Sequence[Part]) -> float:
    return sum(part.is_held is True for part in parts) / len(parts)


def _supporting(
    question: str, held: Mapping[int, Sequence[bool | None]], evidence: Mapping[int, _Evidence]
) -> dict[int, bool | None]:
    """Return by number which citations support a claim that they bear together.

    Those do that have parts of it which no other one has besides more, and those that lead to them.
    """
    parts = {number: frozenset(compress(range(len(has)), has)) for number, has in held.items()}
    support: dict[int, bool | None] = {}
    for number, own in parts.items():
        if own and not any(own < other for other in parts.values()):
            support[number] = True
    asked = {canonical_key(name) for name in names_in(question)}
    reached = set(support)
    while reached:
        bridges = frozenset().union(*[evidence[number].names for number in reached]) - asked
        reached = {number for number in parts if number not in support and evidence[number].names & bridges}
        support |= dict.fromkeys(reached, True)
    return {number: support.get(number, False if evidence[number].names else None) for number in parts}


def _judged(affirms: bool, citations: Sequence[Citation], verdicts: Mapping[int, Verdict]) -> dict[int, bool | None]:
    """Return by number which citations support yes, or no: those that say so, or all where they say so together."""
    numbers = [one.number for one in citations]
    if not verdicts:
        return dict.fromkeys(numbers)
    support = {number: _agrees(affirms, verdicts[number]) for number in numbers}
    if True not in support.values() and _agrees(affirms, verdicts[_TOGETHER]):
        return dict.fromkeys(numbers, True)
    return support


def _agrees(affirms: bool, verdict: Verdict) -> bool | None:
    """Return whether a verdict is surely the answer's; None where it is not sure."""
    says_yes = verdict.true >= _SURE_YES
    says_no = verdict.false >= _SURE_NO
    if says_yes or says_no:
        return says_yes is affirms
    return False if verdict.not_said >= _SURE_NOT_SAID else None


def _any(found: Iterable[bool | None]) -> bool | None:
    """Return whether one is true; None where none is and one is unclear."""
    seen = set(found)
    if True in seen:
        return True
    return None if None in seen or not seen else False
