"""Questions to be answered with yes or no, made of questions with an answer and of plain sentences, true and false.

When was Rice University founded?  (1912)
-> Was Rice University founded in 1912?   yes
-> Was Rice University founded in 1961?   no: another year of the same text
The text of another question of the same article   not said
"""

from __future__ import annotations

import random
import re
from collections.abc import Iterator, Sequence

from lab.weights.reader.examples import ReaderExample
from lab.weights.reader.forms import QuestionForm, form_of
from ras_agent.text.names import is_name, name_spans
from ras_agent.text.sentences import sentence_spans
from ras_agent.text.values import figures_in
from ras_agent.text.words import FUNCTION_WORDS, fold

_SUBJECT = re.compile(
    r"(?:the|a|an|his|her|its|their|this|he|she|it|they|people) ", re.IGNORECASE
)
_BEGINS_PLACED = re.compile(
    r"(?:in|at|on|from|by|to|near|during|since|after|before|around|between)\b",
    re.IGNORECASE,
)
_BRACKETS = re.compile(r" ?\([^()]*\)")
_DAY = re.compile(r"\b\d{1,2}\b.*\d{4}|[A-Z][a-z]+ \d{1,2}\b")
_SENTENCE = re.compile(
    r"(?P<subject>(?:The )?[A-Z][^,.;:()]{1,60}?) (?P<aux>is|was|are|were|has|had|can|will) "
    r"(?P<rest>[a-z][^;:()]{10,160}?)[.]"
)
_LONGEST = 40  # words


def polar(question: str, answer: str) -> str:
    """Return the question whether `answer` is a question's answer, blank where no rule knows its form.

    >>> polar("When was Rice University founded?", "1912"), polar("Who invented the telephone?", "Bell")
    ('Was Rice University founded in 1912?', 'Is it true that Bell invented the telephone?')
    """
    form = form_of(question)
    if form is None:
        return ""
    match form.kind:
        case "defined":
            return f"{form.auxiliary.capitalize()} {answer} {form.rest}?"
        case "who":
            return f"Is it true that {answer} {form.rest}?"
        case "when":
            return _asked(form, "on" if _DAY.search(answer) else "in", answer)
        case "where":
            return _asked(form, "in", answer)
        case "many":
            return _asked(
                form, "", answer if form.noun in answer else f"{answer} {form.noun}"
            )
        case "placed" | "object" | "what it is":
            return _asked(form, form.before, answer)
        case _:
            return ""


def _asked(form: QuestionForm, preposition: str, answer: str) -> str:
    if not (form.rest[0].isupper() or _SUBJECT.match(form.rest)):
        return ""  # "in each granum": the subject was what is asked for
    before = "" if _BEGINS_PLACED.match(answer) else preposition
    return (
        " ".join(filter(None, (form.auxiliary.capitalize(), form.rest, before, answer)))
        + "?"
    )


def verdicts(
    examples: Sequence[ReaderExample], texts: Sequence[str], rng: random.Random
) -> Iterator[ReaderExample]:
    """Yield one question to be judged for each example with an answer: true, false or not said, about equally often.

    texts: the other texts that a question may meet, those of one article side by side.
    """
    places: dict[str, int] = {}
    for place, text in enumerate(texts):
        places.setdefault(text, place)
    for example in examples:
        if not example.spans:
            continue
        answer, kind = example.answer, rng.choice(("true", "false", "not said"))
        asked = polar(example.question, answer)
        if not asked or len(asked.split()) > _LONGEST:
            continue
        text = example.text
        if kind == "false":
            if not (other := other_value(answer, text, texts, rng)):
                continue
            asked = polar(example.question, other)
        elif kind == "not said":
            place = places.get(text, 0)
            near = [
                one
                for one in texts[max(place - 3, 0) : place + 4]
                if one != text and answer.lower() not in one.lower()
            ]
            if not near:
                continue
            text = rng.choice(near)
            if rng.random() < 0.5 and (other := other_value(answer, text, texts, rng)):
                asked = polar(example.question, other)
        yield ReaderExample(asked, _cut(text, example, kind, rng), (), "verdict", kind)


def _cut(text: str, example: ReaderExample, kind: str, rng: random.Random) -> str:
    """Return the whole text or, half of the times, the sentence with the answer and its neighbours."""
    spans = sentence_spans(text)
    if rng.random() < 0.5 or len(spans) < 2:
        return text
    at = rng.randrange(len(spans))
    if kind != "not said":
        at = next(
            (
                place
                for place, (_, end) in enumerate(spans)
                if end > example.spans[0][0]
            ),
            at,
        )
    return text[
        spans[max(at - rng.randrange(2), 0)][0] : spans[
            min(at + rng.randrange(2), len(spans) - 1)
        ][1]
    ]


def sentence_verdicts(
    texts: Sequence[str], rng: random.Random
) -> Iterator[ReaderExample]:
    """Yield questions made of sentences such as "X was born in Y." by turning them round, with a value changed or not.

    One in six is a statement instead, and one in six of those denies what the sentence says.
    """
    for whole in texts:
        text = _BRACKETS.sub("", whole)
        # the stop of "directed by Alan J. Pakula" is no end
        ends = {end for _, end in sentence_spans(text)}
        found = [
            one
            for one in _SENTENCE.finditer(text)
            if one.end() in ends and _is_subject(one["subject"])
        ]
        if not found:
            continue
        sentence = rng.choice(found)
        subject, auxiliary, rest = (
            sentence["subject"],
            sentence["aux"],
            sentence["rest"],
        )
        if " not " in f" {rest} ":
            continue
        kind = rng.choice(("true", "false"))
        if kind == "false":
            values = [(figure.start, figure.end) for figure in figures_in(rest)] + list(
                name_spans(rest)
            )
            if not values:
                continue
            start, end = rng.choice(values)
            if not (other := other_value(rest[start:end], text, texts, rng)):
                continue
            rest = rest[:start] + other + rest[end:]
        inner = (
            subject[0].lower() + subject[1:] if subject.startswith("The ") else subject
        )
        asked = f"{auxiliary.capitalize()} {inner} {rest}?"
        if (chance := rng.random()) < 1 / 6:
            denied = chance < 1 / 36
            asked = f"{subject} {auxiliary} {'not ' if denied else ''}{rest}."
            if denied:
                kind = "false" if kind == "true" else "true"
        spans = sentence_spans(text)
        at = next(
            (place for place, (_, end) in enumerate(spans) if end > sentence.start()), 0
        )
        around = text[spans[max(at - 1, 0)][0] : spans[min(at + 1, len(spans) - 1)][1]]
        yield ReaderExample(
            asked, text if rng.random() < 0.5 else around, (), "sentence", kind
        )


def _is_subject(text: str) -> bool:
    """Whether a text is one name, with or without its article."""
    name = text.removeprefix("The ")
    return (
        name_spans(name) == [(0, len(name))]
        and fold(name.split()[0]) not in FUNCTION_WORDS
    )


def other_value(
    answer: str, text: str, texts: Sequence[str], rng: random.Random
) -> str:
    """Return another value of the answer's sort, mostly one of the same text: a figure of one kind, or a name.

    Blank where there is none. It shares no word with the answer.
    """
    words = set(re.findall(r"\w+", answer.lower()))
    figures = figures_in(answer)
    for source in (text, *rng.sample(texts, min(6, len(texts)))):
        if figures:
            kind = figures[0].kind
            values = [
                source[one.start : one.end]
                for one in figures_in(source)
                if one.kind == kind
            ]
        elif is_name(answer):
            values = [source[start:end] for start, end in name_spans(source)]
            values = [
                value
                for value in values
                if abs(len(value.split()) - len(answer.split())) <= 1
            ]
        else:
            return ""
        values = [
            value
            for value in values
            if words.isdisjoint(re.findall(r"\w+", value.lower())) and len(value) > 1
        ]
        if values and (source is not text or rng.random() < 0.7):
            return rng.choice(values)
    return ""
