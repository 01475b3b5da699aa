"""Reading examples: a question, a text and where in it the answer is, from the labelled training sets.

Where a set names an answer but not its place, every whole-word occurrence in a supporting text counts (distant
supervision): the loss lets the reader choose among them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from ras_agent.records import Passage
from ras_agent.train.data import training_set, two_wiki_passages

_HOP = re.compile(r"#(\d)")


@dataclass(frozen=True, slots=True)
class ReaderExample:
    """Question and text; `spans` are half-open character spans of the answer, none where the text does not answer."""

    question: str
    text: str
    spans: tuple[tuple[int, int], ...]
    source: str


def occurrences(answers: Iterable[str], text: str) -> tuple[tuple[int, int], ...]:
    """Return the places of any of `answers` in `text`, as whole words in any case; none for an empty answer."""
    places = set()
    for answer in answers:
        if answer.strip():
            pattern = rf"(?<!\w){re.escape(answer.strip())}(?!\w)"
            places |= {match.span() for match in re.finditer(pattern, text, re.IGNORECASE)}
    return tuple(sorted(places))


def text_with_title(passage: Passage) -> str:
    """Return a passage as the reader sees it: its title is its first sentence."""
    return f"{passage.title}. {passage.text}" if passage.title else passage.text


def squad(data: Path) -> Iterator[ReaderExample]:
    """Yield SQuAD's questions over their paragraphs, with the places of their answers."""
    for question in training_set("squad", data).questions:
        spans = tuple((start, end) for start, end in question.metadata["spans"])
        yield ReaderExample(question.question, question.contexts[0].text, spans, "squad")


def nq(data: Path) -> Iterator[ReaderExample]:
    """Yield Natural Questions over the passage that holds the answer; its places are found by string match."""
    for question in training_set("nq", data).questions:
        text = text_with_title(question.contexts[0])
        if spans := occurrences(question.answers, text):
            yield ReaderExample(question.question, text, spans, "nq")


def hotpot(data: Path) -> Iterator[ReaderExample]:
    """Yield two-hop questions over their two supporting passages, together and one at a time."""
    hotpotqa = training_set("hotpotqa", data)
    for question in hotpotqa.questions:
        yield from _two_hop(
            question.question, question.answers, list(map(text_with_title, hotpotqa.gold(question))), "hotpot"
        )


def ircot(data: Path) -> Iterator[ReaderExample]:
    """Yield annotated questions over the first two passages that their chains of thought name."""
    annotations = training_set("ircot", data)
    for question in annotations.questions:
        texts = list(map(text_with_title, annotations.gold(question)))
        yield from _two_hop(question.question, question.answers, texts[:2], "ircot")


def musique(data: Path) -> Iterator[ReaderExample]:
    """Yield multi-hop questions, and each of their single-hop steps over its supporting paragraph."""
    for question in training_set("musique", data).questions:
        texts = {passage.id: text_with_title(passage) for passage in question.contexts}
        steps = question.decomposition
        for step in steps:
            text_of_step = _HOP.sub(lambda hop: steps[int(hop[1]) - 1]["answer"], step["question"])  # noqa: B023
            text = texts[step["supporting_id"]]
            if spans := occurrences([step["answer"]], text):
                yield ReaderExample(text_of_step.replace(" >> ", " "), text, spans, "musique_step")
        support = [texts[step["supporting_id"]] for step in steps]
        yield from _two_hop(question.question, question.answers, support, "musique")


LOADERS: dict[str, Callable[[Path], Iterator[ReaderExample]]] = {
    "squad": squad,
    "nq": nq,
    "hotpot": hotpot,
    "ircot": ircot,
    "musique": musique,
}


def passages(data: Path) -> list[Passage]:
    """Return the plain text that pseudo questions are made of: the passages of the sets above and of 2WikiMultihopQA.

    Each text comes once, in a fixed order; texts of a dozen words or fewer are left out.
    """
    # 2Wiki's tokeniser left gaps: "( 1900 – 1984)", "Montreal ’s"
    texts = [
        (passage.title, passage.text.replace("( ", "(").replace(" ’s", "’s")) for passage in two_wiki_passages(data)
    ]
    for name in ("hotpotqa", "musique", "nq", "ircot"):
        source = training_set(name, data)
        contexts = (passage for question in source.questions for passage in question.contexts)
        texts += [(passage.title, passage.text) for passage in (*source.passages, *contexts)]
    # of texts with one beginning the last counts
    distinct = {text[:100]: (title, text) for title, text in texts if len(text.split()) > 12}
    return [Passage(str(number), text, title) for number, (title, text) in enumerate(distinct.values())]


def _two_hop(question: str, answers: Sequence[str], texts: Sequence[str], source: str) -> Iterator[ReaderExample]:
    if answers[0].lower() in {"yes", "no"}:
        return
    if len(texts) > 1:
        for context in (" ".join(texts), " ".join(reversed(texts))):
            if spans := occurrences(answers, context):
                yield ReaderExample(question, context, spans, source)
    for text in texts:
        if spans := occurrences(answers, text):
            yield ReaderExample(question, text, spans, source)
