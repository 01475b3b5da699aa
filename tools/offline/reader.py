"""The reader of the offline mode finds answers in texts: a MiniLM fine-tuned in this repository, in numpy.

It reads "[CLS] question [SEP] text [SEP]". Every token has a logit of starting and one of ending the answer; those
at [CLS] mean that the text contains no answer (as Devlin et al. 2019 read SQuAD 2.0, arXiv:1810.04805). Without a
text the tokens mark the part of the question that describes something without naming it. [CLS] also shows whether a
text affirms a question, denies it or says neither. `lab.weights.reader.train` made the weights; the JSON card next
to them names the data.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from importlib.resources import as_file, files
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from ras_agent.contracts.arrays import Floats
from ras_agent.contracts.errors import WeightsError
from ras_agent.contracts.records import Span, Verdict
from ras_agent.running.recent import RecentResults
from ras_agent.text.normal_form import encodable
from ras_agent.tools.embed.bert import WIDTH, Bert, bert, panels
from ras_agent.tools.embed.stored_bert import CLS, SEP, bert_tokenizer, load_weights

if TYPE_CHECKING:
    from tokenizers import Tokenizer

QUESTION_TOKENS = 64
WINDOW_TOKENS = 192  # question, text and three special tokens; a longer text is read in overlapping windows
OVERLAP_TOKENS = 48
ANSWER_TOKENS = 24
_REMEMBERED = 512  # cached readings; planner and answerer share them


class Reading(NamedTuple):
    """Holds a text's likeliest answers to a question, best first, and its verdict."""

    spans: tuple[Span, ...]
    verdict: Verdict


class Reader:
    """Finds the answers to a question in texts, and judges yes-or-no questions. Thread safe.

    Weights are loaded at the first use, which raises WeightsError for a file that contains no reader.
    """

    def __init__(self, weights: Path | str | None = None, spans: int = 5) -> None:
        """Choose the weights.

        Args:
            weights: a .safetensors file to use instead of the packaged weights.
            spans: the maximum number of answers for each text.
        """
        self._weights = None if weights is None else Path(weights)
        self._spans = spans
        self._loading = Lock()
        self._readings: RecentResults[tuple[str, str], Reading] = RecentResults(
            _REMEMBERED
        )
        self._descriptions: RecentResults[str, Span | None] = RecentResults(_REMEMBERED)

    def read(self, question: str, texts: Sequence[str]) -> list[list[Span]]:
        """Return, for each text, up to `spans` answers that do not overlap, best first."""
        readings = self.readings(question, texts)
        return [list(one.spans) for one in readings]

    def judge(self, question: str, texts: Sequence[str]) -> list[Verdict]:
        """Return, for each text, its verdict on a yes-or-no question."""
        readings = self.readings(question, texts)
        return [one.verdict for one in readings]

    def readings(self, question: str, texts: Sequence[str]) -> list[Reading]:
        """Return, for each text, its answers and its verdict for a question."""

        def read(new: list[tuple[str, str]]) -> list[Reading]:
            unread = [text for _, text in new]
            return self._loaded().read(question, unread, self._spans)

        keys = [(question, text) for text in texts]
        return self._readings.of(keys, read)

    def described(self, question: str) -> Span | None:
        """Return the part of a question that describes something without naming it; None if no part does.

        Its margin, in logits, says how much likelier this is than that the question describes nothing.
        """

        def describe(_: list[str]) -> list[Span | None]:
            return [self._loaded().described(question)]

        (described,) = self._descriptions.of([question], describe)
        return described

    def _loaded(self) -> _Network:
        with self._loading:
            return self._network

    @cached_property
    def _network(self) -> _Network:
        with as_file(files("ras_agent.data") / "reader.safetensors") as packaged:
            return _load(self._weights or packaged)


class _Window(NamedTuple):
    """Holds tokens of a text that are read together, with their offsets in the text."""

    text: int
    """The index of the text."""
    ids: list[int]
    offsets: list[tuple[int, int]]


def _load(file: Path) -> _Network:
    weights = load_weights(file)
    try:
        network = bert(weights)
    except KeyError as error:
        raise WeightsError(
            f"{file}: these weights are not a reader's, as {error} is missing; install ras-agent again"
        ) from None
    return _Network(network, bert_tokenizer(), weights)


class _Network:
    """Holds the network, its tokenizer, and the weights with its heads. They never change."""

    def __init__(
        self, network: Bert, tokenizer: Tokenizer, weights: Mapping[str, Floats]
    ) -> None:
        self.network = network
        self.tokenizer = tokenizer
        self.weights = weights

    def read(self, question: str, texts: Sequence[str], count: int) -> list[Reading]:
        asked, _ = self._encoded(question)
        windows = list(self._windows(texts, WINDOW_TOKENS - len(asked) - 3))
        first = len(asked) + 2
        rows = [[CLS, *asked, SEP, *window.ids, SEP] for window in windows]
        spans: list[list[Span]] = [[] for _ in texts]
        verdicts: list[list[Floats]] = [[] for _ in texts]
        for window, states in zip(windows, self._states(rows, first), strict=True):
            logits = self._logits("spans", states)  # (T, 2)
            spans[window.text] += _spans(logits, first, window.offsets, count)
            (verdict,) = self._logits("verdicts", states[:1])
            verdicts[window.text].append(verdict)
        readings = []
        for of_text, said in zip(spans, verdicts, strict=True):
            best = tuple(_best(of_text, count))
            readings.append(Reading(best, _verdict(said)))
        return readings

    def described(self, question: str) -> Span | None:
        asked, offsets = self._encoded(question)
        if not asked:
            return None
        (states,) = self._states([[CLS, *asked, SEP]], len(asked) + 2)
        logits = self._logits("descriptions", states)
        (span,) = _spans(logits, 1, offsets, 1, QUESTION_TOKENS)
        return span if span.margin > 0 else None

    def _encoded(self, question: str) -> tuple[list[int], list[tuple[int, int]]]:
        """Return the ids of a question's first tokens, and their offsets."""
        text = encodable(question)
        encoding = self.tokenizer.encode(text, add_special_tokens=False)
        read = slice(QUESTION_TOKENS)
        return encoding.ids[read], encoding.offsets[read]

    def _windows(self, texts: Sequence[str], room: int) -> Iterator[_Window]:
        encodings = self.tokenizer.encode_batch(
            [encodable(text) for text in texts], add_special_tokens=False
        )
        step = room - OVERLAP_TOKENS
        for number, encoding in enumerate(encodings):
            last = max(1, len(encoding.ids) - OVERLAP_TOKENS)
            for start in range(0, last, step):
                piece = slice(start, start + room)
                ids = encoding.ids[piece]
                if ids:
                    yield _Window(number, ids, encoding.offsets[piece])

    def _states(self, rows: Sequence[Sequence[int]], first: int) -> list[Floats]:
        """Return the last states (T, 384) of each row.

        Args:
            first: the position at which the second segment begins.
        """
        found: list[Floats] = [np.empty((0, WIDTH), np.float32)] * len(rows)
        if not rows:
            return found
        for panel in panels(rows, self.network.columns):
            chosen = [rows[number] for number in panel]
            states, groups = self.network.states(chosen, [first] * len(panel))
            of_rows: list[Floats] = []
            for group in groups:
                of_rows += np.split(states[group.columns], group.texts)
            for number, one in zip(panel, of_rows, strict=True):
                found[number] = one
        return found

    def _logits(self, head: str, states: Floats) -> Floats:
        weight = self.weights[f"heads.{head}.weight"]
        logits: Floats = states @ weight.T
        logits += self.weights[f"heads.{head}.bias"]
        return logits


def _spans(
    logits: Floats,
    first: int,
    offsets: Sequence[tuple[int, int]],
    count: int,
    longest: int = ANSWER_TOKENS,
) -> Iterator[Span]:
    """Yield the best spans of the tokens from `first` on, which have these offsets.

    Args:
        logits: (T, 2), of starting and of ending the answer.
    """
    none = float(logits[0].sum())
    inside = logits[first : first + len(offsets)]
    for start, end, score in best_spans(inside[:, 0], inside[:, 1], count, longest):
        first_character, _ = offsets[start]
        _, last_character = offsets[end]
        yield Span(first_character, last_character, score, none)


def _best(spans: Sequence[Span], count: int) -> Iterator[Span]:
    """Yield the best spans of all windows of a text, by their margins.

    Each gets the lowest no-answer logit of the windows.
    """
    surest = [span.no_answer for span in spans]
    none = min(surest, default=0.0)
    ordered = sorted(spans, key=lambda span: (-span.margin, span.start))
    for span in ordered[:count]:
        score = span.margin + none
        yield Span(span.start, span.end, score, none)


def _verdict(logits: Sequence[Floats]) -> Verdict:
    """Return the verdict of the window whose text most surely affirms or denies the question."""
    verdicts: list[Verdict] = []
    for one in logits:
        odds = np.exp(one - one.max())
        verdicts.append(Verdict(*map(float, odds / odds.sum())))
    nothing = Verdict(0.0, 0.0, 1.0)
    return min(verdicts, key=lambda one: one.not_said, default=nothing)


def best_spans(
    start: Floats, end: Floats, count: int, longest: int = ANSWER_TOKENS
) -> list[tuple[int, int, float]]:
    """Return the `count` best spans without overlaps, best first: (first token, last token, sum of their logits).

    Args:
        start, end: (T,), the logits of the tokens.
        longest: the maximum number of tokens of a span.
    """
    scores = start[:, None] + end[None, :]  # (T, T): row first token, column last token
    places = np.arange(len(end))
    lengths = places - places[:, None]
    scores[(lengths < 0) | (lengths >= longest)] = -np.inf
    best: list[tuple[int, int, float]] = []
    while len(best) < count:
        top = float(scores.max(initial=-np.inf))
        if not np.isfinite(top):
            break
        first, last = divmod(int(scores.argmax()), len(end))
        best.append((first, last, top))
        # spans that begin before this one's end and end after its start overlap it
        scores[: last + 1, first:] = -np.inf
    return best
