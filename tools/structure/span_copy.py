"""Constrained decoding: a text-to-triples model can write facts in the agreed form alone, and copies their ends.

    (S> span of the text | P> a few words | O> span of the text), (S> ...

Each step of decoding allows only the tokens with which the reply can still become that. Spans begin and end where words
do; those with a character that means something in the form (`|`, parentheses, `<`, `>`, a backslash, an asterisk) are
not copied. A fact is begun only while its end fits into the reply, so everything that is written can be read.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from ras_agent.errors import SettingsError
from ras_agent.marks import NONE, OBJECT, PREDICATE, SUBJECT
from ras_agent.tools.structure.triple_text import TripleText

if TYPE_CHECKING:
    from torch import Tensor

SPAN_TOKENS, PREDICATE_TOKENS = 32, 16
"""The most tokens of a subject or an object, and of a predicate; fewer where a reply has little room."""

_LEAST_SPAN = 4
_SPECIAL = frozenset("|()（）｜<>＜＞\\*\n\r�")
_OPENERS, _CLOSERS = frozenset("$€£¥#@+-−~'\"“‘"), frozenset(".%°'\"”’!?+")
_ANCHOR = " x"  # a word, after which the marks are as they are in a fact


@dataclass(frozen=True, slots=True)
class _Marks:
    """Tokens around the fields of a fact."""

    first: tuple[int, ...]  # (S>
    predicate: tuple[int, ...]  # | P>
    object: tuple[int, ...]  # | O>
    another: tuple[int, ...]  # ), (S>
    last: tuple[int, ...]  # )
    nothing: tuple[int, ...]  # [NONE]

    @property
    def longest_fact(self) -> int:
        """Return the most tokens of a fact without its fields, the end of the text included."""
        begins = max(len(self.first), len(self.another))
        return begins + len(self.predicate) + len(self.object) + len(self.last) + 1


@dataclass(frozen=True, slots=True)
class _State:
    """Place in the form that a reply has come to.

    marks: the marks that it may be writing, each with the field that comes after ("" for the end), and how many of
    their tokens are written. field: S, P or O. spans: for the ends, the places of the text's tokens at which the copy
    may be, each with its length so far. words: the tokens of the predicate so far.
    """

    marks: tuple[tuple[tuple[int, ...], str], ...] = ()
    count: int = 0
    field: str = ""
    spans: frozenset[tuple[int, int]] = frozenset()
    words: int = 0


class SpanCopying:
    """Logits processor of transformers that keeps each row of a batch in the form of facts about its text.

    texts: what the rows are about. beams: rows that one text has. begins: the tokens in front of a reply. most: those
    that a reply may have. ends: the tokens that end it. Raises SettingsError where a fact does not fit into a reply.
    """

    def __init__(
        self, text: TripleText, texts: Sequence[str], *, beams: int, begins: int, most: int, ends: Iterable[int]
    ) -> None:
        self._vocabulary = _vocabulary(text.tokenizer)
        self._marks = _marks(text)
        self._beams, self._begins, self._most = beams, begins, most
        self._end = text.tokenizer.eos_token_id
        self._ends = frozenset(ends) | {self._end}
        least = self._marks.longest_fact + 2 * _LEAST_SPAN + 1
        if most < least:
            raise SettingsError(f"target_tokens has to be at least {least} to copy spans of the text, got {most}")
        room = most - self._marks.longest_fact
        self._span_tokens = min(SPAN_TOKENS, (room - 1) // 3)
        self._predicate_tokens = min(PREDICATE_TOKENS, room - 2 * self._span_tokens)
        self._rows = [_Copyable.of(text, text_of_row, self._vocabulary, self._span_tokens) for text_of_row in texts]
        self._states: list[dict[tuple[int, ...], _State | None]] = [{} for _ in texts]
        self._masks: dict[Any, Tensor] = {}

    def __call__(self, input_ids: Tensor, scores: Tensor) -> Tensor:
        """Return the scores (rows, V) with minus infinity for every token that the form does not allow."""
        import torch

        allowed = torch.full_like(scores, -torch.inf)
        for number, tokens in enumerate(input_ids[:, self._begins :].tolist()):
            text = number // self._beams
            state = self._state(text, tuple(tokens))
            if state is None:  # it has ended
                allowed[number, self._end] = 0
                continue
            listed, words = self._next(state, self._rows[text], self._most - len(tokens) - 1)
            if words:
                allowed[number] = self._words_mask(words, scores)
            allowed[number, torch.tensor(sorted(listed), dtype=torch.long, device=scores.device)] = 0
        return scores + allowed

    def _words_mask(self, place: str, scores: Tensor) -> Tensor:
        """Return zeros (V,) for the tokens that a predicate may have at a place, and minus infinity for others."""
        import torch

        if place not in self._masks:
            mask = torch.full((scores.shape[1],), -torch.inf, dtype=scores.dtype, device=scores.device)
            mask[[token for token in self._vocabulary.words[place] if token < len(mask)]] = 0
            self._masks[place] = mask
        return self._masks[place]

    def _state(self, text: int, tokens: tuple[int, ...]) -> _State | None:
        """Return the state of the reply `tokens` in the form; None where the reply has ended, or left the form."""
        states = self._states[text]
        if not tokens:
            return self._first_state(self._rows[text])
        if tokens not in states:
            before = self._state(text, tokens[:-1])
            tokens_left = self._most - len(tokens)
            states[tokens] = (
                None
                if before is None or tokens[-1] in self._ends
                else self._after(before, tokens[-1], self._rows[text], tokens_left)
            )
        return states[tokens]

    def _first_state(self, row: _Copyable) -> _State:
        nothing = (self._marks.nothing, "")
        return _State(((self._marks.first, "S"), nothing) if row.starts else (nothing,))

    def _next(self, state: _State, row: _Copyable, tokens_left: int) -> tuple[set[int], str]:
        """Return the tokens that may come next, and which words of a predicate may: "first", "further" or "" for none.

        tokens_left: how many tokens may come after the next.
        """
        if state.marks:
            listed = {mark[state.count] for mark, _ in state.marks if state.count < len(mark)}
            if any(state.count == len(mark) and not field for mark, field in state.marks):
                listed.add(self._end)
            return listed, ""
        if state.field == "P":
            further = state.words < self._predicate_tokens
            listed = {self._marks.object[0]} if state.words else set()
            return listed, ("further" if state.words else "first") if further else ""
        if not state.spans:
            return {row.tokens[place] for place in row.starts}, ""
        listed = {row.tokens[place + 1] for place, length in state.spans if row.goes_on(place, length)}
        if any(row.ends(place, length) for place, length in state.spans):
            listed |= {mark[0] for mark, _ in self._after_span(state.field, tokens_left)}
        return listed, ""

    def _after(self, state: _State, token: int, row: _Copyable, tokens_left: int) -> _State | None:
        """Return the state after one more token, with `tokens_left` to come; None if the form does not allow it."""
        if state.marks:
            marks = tuple(
                (mark, field) for mark, field in state.marks if state.count < len(mark) and mark[state.count] == token
            )
            return self._in_next_field(replace(state, marks=marks, count=state.count + 1)) if marks else None
        if state.field == "P":
            if state.words and token == self._marks.object[0]:
                return self._in_next_field(_State(((self._marks.object, "O"),), 1))
            return replace(state, words=state.words + 1)
        if not state.spans:
            spans = frozenset((place, 1) for place in row.starts if row.tokens[place] == token)
        else:
            spans = frozenset(
                (place + 1, length + 1)
                for place, length in state.spans
                if row.goes_on(place, length) and row.tokens[place + 1] == token
            )
        if spans:
            return replace(state, spans=spans)
        marks = tuple((mark, field) for mark, field in self._after_span(state.field, tokens_left) if mark[0] == token)
        return self._in_next_field(_State(marks, 1)) if marks else None

    def _after_span(self, field: str, tokens_left: int) -> list[tuple[tuple[int, ...], str]]:
        """Return the marks behind a subject or an object; another fact only where there is room for all of it."""
        if field == "S":
            return [(self._marks.predicate, "P")]
        fact = self._marks.longest_fact + 2 * self._span_tokens + self._predicate_tokens
        return [(self._marks.last, ""), *([(self._marks.another, "S")] if tokens_left >= fact else [])]

    @staticmethod
    def _in_next_field(state: _State) -> _State:
        """Return the state; if the marks in front of the next field are complete, it is moved into that field."""
        fields = [field for mark, field in state.marks if field and len(mark) == state.count]
        return _State(field=fields[0]) if fields else state


@dataclass(frozen=True, slots=True)
class _Copyable:
    """Tokens of a text, and where spans may begin and end.

    stops: where a span may end; a stop without a letter or digit, such as the point of "U.S.", follows a stop.
    nearest: for each place, the first stop from there on that is reached without a token that cannot be copied, or -1.
    most: the tokens of a span.
    """

    tokens: tuple[int, ...]
    starts: tuple[int, ...]
    stops: frozenset[int]
    nearest: tuple[int, ...]
    words: frozenset[int]  # places with a letter or digit
    most: int

    @classmethod
    def of(cls, text: TripleText, source: str, vocabulary: _Vocabulary, most: int) -> _Copyable:
        """Find the spans of a text that a fact may copy; a span has at most `most` tokens."""
        # behind a blank, as behind a mark, so that the first word's tokens are those of a word inside a text
        behind = f" {source}"
        tokenized = text.tokenizer(behind, add_special_tokens=False, return_offsets_mapping=True)
        tokens: list[int] = list(tokenized["input_ids"])
        # some tokenizers count the blank in front of a word to its token
        spans = [_trim(behind, start, end) for start, end in tokenized["offset_mapping"]]
        words = [behind[start:end] for start, end in spans]
        plain = [
            token in vocabulary.plain and not _SPECIAL.intersection(word)
            for token, word in zip(tokens, words, strict=True)
        ]
        worded = [any(map(str.isalnum, word)) for word in words]
        begins = [
            not place or (spans[place - 1][1] <= start and not _inside_a_word(behind, start))
            for place, (start, _) in enumerate(spans)
        ]
        ends = [
            place + 1 == len(spans) or (spans[place + 1][0] >= end and not _inside_a_word(behind, end))
            for place, (_, end) in enumerate(spans)
        ]
        stops = {place for place in range(len(tokens)) if plain[place] and ends[place] and worded[place]}
        stops |= {
            place
            for place in range(1, len(tokens))
            if plain[place] and ends[place] and words[place][-1:] in _CLOSERS and place - 1 in stops
        }
        nearest = [-1] * (len(tokens) + 1)
        for place in reversed(range(len(tokens))):
            nearest[place] = -1 if not plain[place] else place if place in stops else nearest[place + 1]
        starts = [
            place
            for place in range(len(tokens))
            if begins[place]
            and 0 <= nearest[place] < place + most
            # a span has a word: what begins with a sign goes on
            and (worded[place] or (words[place][:1] in _OPENERS and 0 <= nearest[place + 1] < place + most))
        ]
        letters = frozenset(place for place, is_word in enumerate(worded) if is_word)
        return cls(tuple(tokens), tuple(starts), frozenset(stops), tuple(nearest), letters, most)

    def goes_on(self, place: int, length: int) -> bool:
        """Tell whether a span of `length` tokens up to `place` may grow and still end within `most` tokens."""
        nearest = self.nearest[place + 1]
        return nearest >= 0 and length + nearest - place <= self.most

    def ends(self, place: int, length: int) -> bool:
        """Tell whether a span of `length` tokens may end at `place`. A lone token must have a letter or digit."""
        return place in self.stops and (length > 1 or place in self.words)


def _trim(text: str, start: int, end: int) -> tuple[int, int]:
    while start < end and text[start].isspace():
        start += 1
    return start, end


def _inside_a_word(text: str, place: int) -> bool:
    """Tell whether `place` lies inside a word of a text."""
    return 0 < place < len(text) and text[place - 1].isalnum() and text[place].isalnum()


@dataclass(frozen=True, slots=True)
class _Vocabulary:
    """Tokens that are plain text, and those that a predicate may begin with, or go on with."""

    plain: frozenset[int]
    words: dict[str, list[int]]


@lru_cache(maxsize=8)
def _vocabulary(tokenizer: Any) -> _Vocabulary:
    special = set(tokenizer.all_special_ids)
    tokens = [token for token in range(len(tokenizer)) if token not in special]
    texts = tokenizer.batch_decode([[token] for token in tokens], clean_up_tokenization_spaces=False)
    # byte-fallback tokens are shown as <0x0A>, parts of a character as a replacement mark
    plain = {token: text for token, text in zip(tokens, texts, strict=True) if not _SPECIAL.intersection(text)}
    first = [token for token, text in plain.items() if any(map(str.isalnum, text))]
    further = [token for token, text in plain.items() if text]
    # parts of characters may be copied, all of them in a row, but not written
    broken = {token for token, text in zip(tokens, texts, strict=True) if text and set(text) <= {"�", " "}}
    return _Vocabulary(frozenset(plain) | broken, {"first": first, "further": further})


def _marks(text: TripleText) -> _Marks:
    def tokens_of(mark: str) -> tuple[int, ...]:
        return tuple(text.tokenizer(mark, add_special_tokens=False)["input_ids"])

    def behind_a_word(mark: str) -> tuple[int, ...]:
        anchor, both = tokens_of(_ANCHOR), tokens_of(_ANCHOR + mark)
        return both[len(anchor) :] if both[: len(anchor)] == anchor else tokens_of(mark)

    another = behind_a_word(f"), ({SUBJECT}")
    # a reply begins as its targets do: see TripleText.target
    lead = "" if text.seq2seq or text.tokenizer.chat_template else " "
    return _Marks(
        tokens_of(f"{lead}({SUBJECT}"),
        behind_a_word(f" | {PREDICATE}"),
        behind_a_word(f" | {OBJECT}"),
        another,
        behind_a_word(")"),
        tokens_of(f"{lead}{NONE}"),
    )
