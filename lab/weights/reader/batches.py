"""Batches of the reader's training: rows of tokens, and the right reading of each."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple

from lab.weights.reader.examples import VERDICTS, ReaderExample
from ras_agent.tools.offline.reader import QUESTION_TOKENS

if TYPE_CHECKING:
    from tokenizers import Tokenizer


class Item(NamedTuple):
    """Example as tokens. text: none where only the question is read.

    gold: (first, last) tokens of each answer in the text, or of the description in the question; none where there is
    none. verdict: a place in VERDICTS, or -1 where spans are asked for.
    """

    question: list[int]
    text: list[int]
    gold: list[tuple[int, int]]
    verdict: int = -1


class Row(NamedTuple):
    """Item as the network sees it: a window of its text, and gold places in the row ([CLS] for none)."""

    question: list[int]
    text: list[int]
    gold: list[tuple[int, int]]
    verdict: int


def items(examples: Sequence[ReaderExample], tokenizer: Tokenizer) -> Iterator[Item]:
    """Yield the examples as tokens; an example is left out if an answer in it touches no token."""
    questions = tokenizer.encode_batch(
        [example.question for example in examples], add_special_tokens=False
    )
    texts = tokenizer.encode_batch(
        [example.text for example in examples], add_special_tokens=False
    )
    for example, question, text in zip(examples, questions, texts, strict=True):
        offsets = text.offsets if example.text else question.offsets
        gold = [
            tokens for span in example.spans if (tokens := token_span(span, offsets))
        ]
        verdict = VERDICTS.index(example.verdict) if example.verdict else -1
        if len(gold) == len(example.spans):
            yield Item(question.ids[:QUESTION_TOKENS], text.ids, gold, verdict)


def token_span(
    span: tuple[int, int], offsets: Sequence[tuple[int, int]]
) -> tuple[int, int] | None:
    """Return the first and the last token that touch a span of characters."""
    inside = [
        number
        for number, (start, end) in enumerate(offsets)
        if start < span[1] and end > span[0]
    ]
    return (inside[0], inside[-1]) if inside else None


def row_batches(
    items: Sequence[Item], tokens: int, batch_tokens: int, rng: random.Random
) -> list[list[Row]]:
    """Return one epoch: rows of like length together, at most `batch_tokens` a batch and in random order."""
    rows = [_row(item, tokens, rng) for item in items]
    rng.shuffle(rows)
    batches: list[list[Row]] = []
    for first in range(0, len(rows), 1024):  # sorting within a pool keeps batches mixed
        batch: list[Row] = []
        for row in sorted(rows[first : first + 1024], key=_length):
            if batch and (len(batch) + 1) * _length(row) > batch_tokens:
                batches.append(batch)
                batch = []
            batch.append(row)
        batches.append(batch)
    rng.shuffle(batches)
    return batches


def _row(item: Item, tokens: int, rng: random.Random) -> Row:
    """Cut a random window out of a text, one that holds a gold span if there is one; a verdict's text begins it."""
    if not item.text:
        gold = [
            (first + 1, last + 1)
            for first, last in item.gold
            if last < len(item.question)
        ]
        return Row(item.question, [], gold or [(0, 0)], item.verdict)
    room = tokens - len(item.question) - 3
    low, high = 0, max(0, len(item.text) - room)
    if item.gold:
        first, last = rng.choice(item.gold)
        high = min(high, first)
        low = min(high, max(0, last - room + 1))
    start = 0 if item.verdict >= 0 else rng.randint(low, high)
    shift = len(item.question) + 2 - start
    gold = [
        (a + shift, b + shift) for a, b in item.gold if a >= start and b < start + room
    ]
    return Row(
        item.question, item.text[start : start + room], gold or [(0, 0)], item.verdict
    )


def _length(row: Row) -> int:
    return len(row.question) + len(row.text) + 3
