"""Two-hop questions made of single ones: a question takes the place of the name that answers it in another question.

    What is Steve Crowther chairman of?  (UKIP)
    Who is the leader of UKIP?
    -> Who is the leader of what Steve Crowther is chairman of?

The method is MuSiQue's (Trivedi et al. 2022, arXiv:2108.00573, section 3); the questions are joined by rules on their
first words instead of by people, so the two texts, both questions and both answers are known.
"""

from __future__ import annotations

import random
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from lab.weights.reader.examples import ReaderExample
from lab.weights.reader.forms import QuestionForm, form_of
from ras_agent.eval.question import Question
from ras_agent.eval.question_file import read_records
from ras_agent.text.names import is_name, name_spans
from ras_agent.text.sentences import sentence_spans
from ras_agent.tools.offline.chain import asking_for
from ras_agent.train.data import training_set

# a thing that these nouns ask for has no name
_NO_NAMES = frozenset({"kind", "type", "year"})
_LONGEST = 14  # words of a description
_MOST_OF_A_NAME = 6  # questions that may ask about one name


def description(question: str) -> str:
    """Return a noun phrase for the thing that a question asks for, blank where no rule knows its form.

    >>> description("Who invented the telephone?"), description("In which city was Bell born?")
    ('the person who invented the telephone', 'the city in which Bell was born')
    """
    form = form_of(question)
    if form is None or form.noun.split(" ")[0].lower() in _NO_NAMES:
        return ""
    match form.kind:
        case "defined":
            return form.rest
        case "who":
            return f"the person who {form.rest}"
        case "subject":
            return f"the {form.noun} that {form.rest}"
        case "what it is":
            return _turned("what", form)
        case "placed":
            return _turned(f"the {form.noun} {form.before} which", form)
        case "object":
            return _turned(f"the {form.noun} that", form)
        case "where":
            return _turned("the place where", form)
        case _:
            return ""


def _turned(head: str, form: QuestionForm) -> str:
    """Put the auxiliary behind the name with which the rest begins; blank where it begins with no name."""
    names = name_spans(form.rest)
    if not names or names[0][0] > (4 if form.rest.lower().startswith("the ") else 0):
        return ""
    subject, predicate = form.rest[: names[0][1]], form.rest[names[0][1] :].split()
    if form.auxiliary not in {"did", "does", "do"}:
        return " ".join((head, subject, form.auxiliary, *predicate))
    if not predicate:
        return ""
    return " ".join(
        (head, subject, _inflected(predicate[0], form.auxiliary), *predicate[1:])
    )


_PAST = {
    "begin": "began", "become": "became", "buy": "bought", "come": "came", "get": "got", "give": "gave", "go": "went",
    "grow": "grew", "have": "had", "hold": "held", "keep": "kept", "lead": "led", "leave": "left", "lose": "lost",
    "make": "made", "meet": "met", "run": "ran", "see": "saw", "sell": "sold", "sign": "signed", "take": "took",
    "teach": "taught", "win": "won", "write": "wrote", "hide": "hid", "find": "found", "build": "built",
    "fight": "fought",
}  # fmt: skip


def _inflected(verb: str, auxiliary: str) -> str:
    if auxiliary == "do":
        return verb
    if auxiliary == "does":
        return "has" if verb == "have" else f"{verb}s"
    return _PAST.get(verb) or (f"{verb}d" if verb.endswith("e") else f"{verb}ed")


@dataclass(frozen=True, slots=True)
class Composition:
    """Question over two hops. span: characters that describe the answer of `first`; `second` has its name there."""

    question: str
    span: tuple[int, int]
    first: ReaderExample
    second: ReaderExample


def compositions(
    examples: Sequence[ReaderExample], rng: random.Random
) -> Iterator[Composition]:
    """Yield pairs of questions of different texts, where the first one's answer is a name that the second one holds."""
    asking = defaultdict[str, list[ReaderExample]](list)
    for example in examples:
        for start, end in name_spans(example.question):
            asking[example.question[start:end].lower()].append(example)
    for first in examples:
        answer = first.answer
        described = description(first.question)
        if (
            not described
            or not is_name(answer)
            or len(described.split()) > _LONGEST
            or answer.lower() in described.lower()
        ):
            continue
        seconds = [
            one
            for one in asking[answer.lower()]
            if one.text != first.text and not _told(one, first)
        ]
        for second in rng.sample(seconds, min(len(seconds), _MOST_OF_A_NAME)):
            if joined := _joined(second.question, answer, described):
                yield Composition(*joined, first, second)


def _told(second: ReaderExample, first: ReaderExample) -> bool:
    return (
        second.answer.lower() in first.question.lower()
        or first.question.lower() == second.question.lower()
    )


def _joined(
    question: str, name: str, described: str
) -> tuple[str, tuple[int, int]] | None:
    places = list(
        re.finditer(
            rf"(?:\b[Tt]he )?(?<!\w){re.escape(name)}(?![\w’'])",
            question,
            re.IGNORECASE,
        )
    )
    if len(places) != 1 or len(question.split()) < len(name.split()) + 3:
        return None
    start, end = places[0].span()
    inner = described if start else described[0].upper() + described[1:]
    return question[:start] + inner + question[end:], (start, start + len(inner))


def described_span(question: str, second: str, name: str) -> tuple[int, int] | None:
    """Find the phrase that stands in a question where its last step has a name; None where the rest of the step is not in it.

    >>> described_span("When was the institute that owned The Collegian founded?", "When was Rice founded?", "Rice")
    (9, 48)
    """
    place = re.search(rf"(?<!\w){re.escape(name)}(?!\w)", second, re.IGNORECASE)
    if not place:
        return None
    before, after = (
        second[: place.start()].strip().lower(),
        second[place.end() :].strip(" ?.").lower(),
    )
    whole, low = question.rstrip(" ?."), question.lower().rstrip(" ?.")
    before = before.removesuffix(" the") if not low.startswith(before) else before
    if (
        not (before or after)
        or not low.startswith(before)
        or not low.endswith(after)
        or not before
    ):
        return None
    start, end = len(before), len(whole) - len(after)
    while start < end and not whole[start].isalnum() and whole[start] not in "\"“'":
        start += 1
    while end > start and whole[end - 1] in " ,":
        end -= 1
    return (start, end) if len(whole[start:end].split()) >= 2 else None


def decompositions(
    data: Path, examples: Sequence[ReaderExample], rng: random.Random
) -> tuple[list[ReaderExample], list[ReaderExample]]:
    """Return questions with their descriptions (none in a plain question), and readings of such descriptions.

    A question with a description has no text; the description is its span. The readings ask for a described thing
    over the text that names it, in the words in which the planner asks.
    """
    single = [
        one
        for one in examples
        if one.source in {"squad", "nq", "musique_step", "two_wiki_step"}
    ]
    made = list(compositions(single, rng))
    described = [
        ReaderExample(one.question, "", (one.span,), "composed") for one in made
    ]
    steps = [
        ReaderExample(
            asking_for(one.question[slice(*one.span)]),
            one.first.text,
            one.first.spans,
            "composed_step",
        )
        for one in made
    ]
    labelled = [*_labelled(training_set("musique", data).questions), *_two_wiki(data)]
    described += [one for one in labelled for _ in range(_REPEATED)]
    plain = rng.sample(single, min(len(single), len(described)))
    return described + [
        ReaderExample(one.question, "", (), "plain") for one in plain
    ], steps


def composed_pairs(
    examples: Sequence[ReaderExample], rng: random.Random
) -> Iterator[ReaderExample]:
    """Yield composed questions over the text around both answers, the text that names the bridge first."""
    for made in compositions(examples, rng):
        lead = _around(made.first.text, made.first.spans[0])[0]
        text, spans = _around(made.second.text, made.second.spans[0])
        shift = len(lead) + 1
        moved = tuple((start + shift, end + shift) for start, end in spans)
        yield ReaderExample(made.question, f"{lead} {text}", moved, "composed_pair")


def compositions_inside(
    examples: Sequence[ReaderExample], rng: random.Random
) -> Iterator[ReaderExample]:
    """Yield questions of three hops with their outer description, and the question for that one with its inner one."""
    made = {one.question: one for one in compositions(examples, rng)}
    middle = [
        ReaderExample(one.question, one.second.text, one.second.spans, "squad")
        for one in made.values()
    ]
    for outer in compositions([*middle, *examples], rng):
        inner = made.get(outer.first.question)
        if inner is None:
            continue
        described = inner.question[slice(*inner.span)]
        asked = asking_for(outer.question[slice(*outer.span)])
        if described in asked:
            start = asked.index(described)
            yield ReaderExample(outer.question, "", (outer.span,), "composed_inside")
            yield ReaderExample(
                asked, "", ((start, start + len(described)),), "composed_inside"
            )


def _around(
    text: str, span: tuple[int, int]
) -> tuple[str, tuple[tuple[int, int], ...]]:
    """Return the sentence of a span with its neighbours, and the span there."""
    sentences = sentence_spans(text)
    at = next((place for place, (_, end) in enumerate(sentences) if end > span[0]), 0)
    start, end = (
        sentences[max(at - 1, 0)][0],
        max(sentences[min(at + 1, len(sentences) - 1)][1], span[1]),
    )
    return text[start:end], ((span[0] - start, span[1] - start),)


_REPEATED = 3  # times that a question which people have composed counts


def _labelled(questions: Iterable[Question]) -> Iterator[ReaderExample]:
    for question in questions:
        first, last = question.decomposition[-2:]
        if "#" not in last["question"] or ">>" in last["question"]:
            continue
        step = last["question"].replace("#1", first["answer"])
        if span := described_span(question.question, step, first["answer"]):
            yield ReaderExample(question.question, "", (span,), "musique_described")


def _two_wiki(data: Path) -> Iterator[ReaderExample]:
    for record in read_records(data / "2wikimultihopqa" / "train500_contexts.jsonl"):
        question, steps, facts = (
            record.text("question"),
            record.objects("qa_pairs"),
            record.triples("evidences"),
        )
        if record.text("type") in {"comparison", "bridge_comparison"}:
            yield ReaderExample(question, "", (), "two_wiki_plain")
        elif (
            len(steps) > 1
            and facts
            and (
                span := described_span(question, steps[1].text("question"), facts[0][2])
            )
        ):
            yield ReaderExample(question, "", (span,), "two_wiki_described")
