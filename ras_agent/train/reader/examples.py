"""Reading examples: a question, a text and where in it the answer stands, loaded from labelled question sets.

Where a set names an answer but not its place, every whole-word occurrence in a supporting text counts (distant
supervision): the loss lets the reader choose among them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ras_agent.errors import IngestError
from ras_agent.records import Passage
from ras_agent.tools.index.text_files import parse_line

__all__ = ["LOADERS", "Example", "occurrences", "passages", "read_jsonl", "titled"]

_HOP = re.compile(r"#(\d)")


@dataclass(frozen=True, slots=True)
class Example:
    """`spans` are half-open character spans of the answer in `text`; none means that the text does not answer."""

    question: str
    text: str
    spans: tuple[tuple[int, int], ...]
    source: str


def read_jsonl(path: Path) -> list[dict[str, Any]]:
    """One object a line. Raises OSError, or IngestError for a line that is none."""
    rows = []
    for number, line in enumerate(path.read_bytes().split(b"\n"), 1):
        if not line.strip():
            continue
        try:
            row = parse_line(line.decode("utf-8"))
        except ValueError as error:
            raise IngestError(f"{path} line {number}: {error}; mend the line, or take it out") from error
        if not isinstance(row, dict):
            raise IngestError(f"{path} line {number}: not a JSON object: {row!r:.80}; mend the line, or take it out")
        rows.append(row)
    return rows


def occurrences(answers: Iterable[str], text: str) -> tuple[tuple[int, int], ...]:
    """Whole-word, case-blind places of any of `answers` in `text`; none for an empty answer."""
    found = set()
    for answer in answers:
        if answer.strip():
            pattern = rf"(?<!\w){re.escape(answer.strip())}(?!\w)"
            found |= {match.span() for match in re.finditer(pattern, text, re.IGNORECASE)}
    return tuple(sorted(found))


def titled(title: str, text: str) -> str:
    """The reader's view of a passage: its title is its first sentence."""
    return f"{title}. {text}" if title else text


def squad(folder: Path) -> Iterator[Example]:
    """SQuAD-like records with answer offsets."""
    for row in read_jsonl(folder / "reading/squad_sample.jsonl"):
        spans = {(answer["answer_start"], answer["answer_start"] + len(answer["text"])) for answer in row["answers"]}
        yield Example(row["question"], row["context"], tuple(sorted(spans)), "squad")


def nq(folder: Path) -> Iterator[Example]:
    """Natural Questions with the passage that holds the answer; answers are found by string match."""
    for row in read_jsonl(folder / "reading/nq_oracle.jsonl"):
        text = titled(row["ctxs"][0]["title"], row["ctxs"][0]["text"])
        if spans := occurrences(row["answers"], text):
            yield Example(row["question"], text, spans, "nq")


def hotpot(folder: Path) -> Iterator[Example]:
    """Two-hop questions over their two supporting passages, together and one at a time."""
    passages = {row["title"]: row["text"] for row in read_jsonl(folder / "hotpotqa_train/corpus.jsonl")}
    for row in read_jsonl(folder / "hotpotqa_train/questions.jsonl"):
        texts = [titled(title, passages[title]) for title in row["supporting_titles"] if title in passages]
        yield from _two_hop(row["question"], row["answers"], texts, "hotpot")


def ircot(folder: Path) -> Iterator[Example]:
    """Annotated questions with their contexts, of which those that hold the answer or are named in the thought stay."""
    for row in read_jsonl(folder / "reading/ircot_cot.jsonl"):
        contexts = [context for context in row["contexts"] if context["title"].split(" (")[0] in row["cot"]]
        texts = [titled(context["title"], context["text"]) for context in contexts]
        yield from _two_hop(row["question"], [row["answer"]], texts[:2], "ircot")


def musique(folder: Path) -> Iterator[Example]:
    """Two-hop questions and each of their single-hop steps over its supporting paragraph."""
    for row in read_jsonl(folder / "musique_train200/questions.jsonl"):
        texts = {p["idx"]: titled(p["title"], p["paragraph_text"]) for p in row["paragraphs"]}
        steps = row["question_decomposition"]
        for step in steps:
            question = _HOP.sub(lambda hop: steps[int(hop[1]) - 1]["answer"], step["question"])  # noqa: B023
            text = texts[step["paragraph_support_idx"]]
            if spans := occurrences([step["answer"]], text):
                yield Example(question.replace(" >> ", " "), text, spans, "musique_step")
        support = [texts[step["paragraph_support_idx"]] for step in steps]
        yield from _two_hop(row["question"], [row["answer"], *row["answer_aliases"]], support, "musique")


LOADERS: dict[str, Callable[[Path], Iterator[Example]]] = {
    "squad": squad,
    "nq": nq,
    "hotpot": hotpot,
    "ircot": ircot,
    "musique": musique,
}


def passages(folder: Path) -> list[Passage]:
    """The plain text that pseudo questions are made of: the passages of the sets above and of 2WikiMultihopQA's corpus.

    Each text once, in a fixed order, without those of a dozen words or fewer.
    """
    found: list[tuple[str, str]] = []
    for row in read_jsonl(folder / "2wikimultihopqa/corpus.jsonl"):
        # its tokeniser left gaps: "( 1900 – 1984)", "Montreal ’s"
        found.append((row["title"], row["text"].replace("( ", "(").replace(" ’s", "’s")))
    found += [(row["title"], row["text"]) for row in read_jsonl(folder / "hotpotqa_train/corpus.jsonl")]
    for row in read_jsonl(folder / "musique_train200/questions.jsonl"):
        found += [(paragraph["title"], paragraph["paragraph_text"]) for paragraph in row["paragraphs"]]
    for name, key in (("nq_oracle", "ctxs"), ("ircot_cot", "contexts")):
        for row in read_jsonl(folder / f"reading/{name}.jsonl"):
            found += [(context["title"], context["text"]) for context in row[key]]
    distinct = {text[:100]: (title, text) for title, text in found if len(text.split()) > 12}
    return [Passage(str(number), text, title) for number, (title, text) in enumerate(distinct.values())]


def _two_hop(question: str, answers: Sequence[str], texts: Sequence[str], source: str) -> Iterator[Example]:
    if answers[0].lower() in {"yes", "no"}:
        return
    if len(texts) > 1:
        for joined in (" ".join(texts), " ".join(reversed(texts))):
            if spans := occurrences(answers, joined):
                yield Example(question, joined, spans, source)
    for text in texts:
        if spans := occurrences(answers, text):
            yield Example(question, text, spans, source)
