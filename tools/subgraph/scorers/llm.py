"""The scorers "llm" and "llm-ft": a chat model, plain or fine-tuned, divides a score of 1 among texts."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

import numpy as np

from ras_agent.contracts.errors import BudgetExceeded, ModelCallError
from ras_agent.contracts.records import Failure
from ras_agent.prompts import Prompt, Turn, as_data, as_line, load
from ras_agent.running.budget import current_ledger
from ras_agent.running.protocols import Scored, Scorer
from ras_agent.text.lines import lines_of
from ras_agent.tools.chat.call import Reply, Request
from ras_agent.tools.chat.client import ChatSettings, as_chat
from ras_agent.tools.chat.dialogue import Dialogue, converse, in_parts, repair
from ras_agent.tools.chat.thoughts import without_thinking
from ras_agent.tools.subgraph.scorers.bm25 import BM25Scorer
from ras_agent.tools.subgraph.scoring import NO_SCORES, best

PROMPT = "share-facts"
"""The name of the default prompt."""
MOST_TOKENS = 1024
"""The maximum number of tokens of a reply; a model that writes thoughts gets more."""

_FORM = "1: 0.6\n2: 0.4"
_NUMBER = r"(\d{1,4}(?:\.\d{1,9})?|\.\d{1,9})(?![\d.]*\d)"
_SHARE = re.compile(rf"^[\s*\-•#(\[]*(\d{{1,5}})[\])*]{{0,3}}\s*[:=|]\s*\**{_NUMBER}")
_LIST = re.compile(r"^\W*scores?\W*:\s*([\d.,;\s]+)$", re.IGNORECASE)
_WHOLE = 0.95  # if shares add up to this much, texts without a share get 0
Shares = dict[int, float]


class LLMScorer:
    """Asks a chat model to divide a score of 1 among the texts of a call (LEGO-GraphRAG, appendix A.2).

    A score depends on the other texts of the call, so this is a RelativeScorer.
    """

    def __init__(
        self,
        model: object,
        *,
        first: Scorer | None = None,
        at_most: int = 64,
        prompts_dir: str | Path | None = None,
        settings: ChatSettings | None = None,
        prompt: str = PROMPT,
    ) -> None:
        """Take the model and the prompt.

        Args:
            model: a LangChain chat model, a string such as "openai:gpt-4o-mini" or
                "vllm:http://host:port/v1#tuned", or a Chat.
            first: the scorer that chooses the texts which the model reads; all other texts score lower, in the
                order of this scorer. By default BM25; the paper uses a sentence encoder.
            at_most: the number of texts that the model reads. The paper does not state it.
            prompts_dir: a folder with files that override the packaged prompts (share-facts, repair).
            prompt: the name of the prompt that shows the texts.
        """
        if at_most < 1:
            raise ValueError(f"at_most must be positive, got {at_most}")
        self._chat = as_chat(model, settings)
        self._first = first or BM25Scorer()
        self._at_most = at_most
        self._prompt = load(prompt, prompts_dir)
        self._repair = load("repair", prompts_dir)

    @property
    def name(self) -> str:
        """Return the model's name."""
        return self._chat.name

    def over(self, texts: Sequence[str]) -> Callable[[str], Scored]:
        """Return `score` for these texts as a function of the question."""
        return partial(self.score, texts=texts)

    def score(self, question: str, texts: Sequence[str]) -> Scored:
        """Return one score for each text. The scores that the model gave sum to 1.

        A text that the model read without giving it a score has -1; one that it did not read has less than -1. A
        call that fails, or a reply that is still unreadable when asked again, is a Failure and costs only the
        scores of its texts. If the model's window cannot hold all texts, they are read in parts, which count in
        proportion to their sizes.
        """
        if not texts:
            return NO_SCORES
        first = self._first.score(question, texts)
        ranked = best(first.values, len(texts))
        ranks = np.arange(len(texts), dtype=np.float32)
        values = np.empty(len(texts), dtype=np.float32)
        values[ranked] = -2 - ranks / len(texts)
        places = sorted(ranked[: self._at_most])
        values[places] = -1
        shown = [texts[place] for place in places]
        dialogue = self._dialogue(question, shown)
        shares, failed = converse(self._chat, dialogue)
        for number, share in shares.items():
            values[places[number - 1]] = share
        return Scored(values, (*first.failures, *failed))

    def _dialogue(
        self, question: str, texts: Sequence[str]
    ) -> Dialogue[tuple[Shares, list[Failure]]]:
        """Ask the model to divide 1 among the texts, in parts if its window cannot hold them all.

        Returns the shares by the texts' numbers, from 1, and the failures.
        """
        shares: Shares = {}
        failures: list[Failure] = []

        def render(part: range) -> Request:
            shown = texts[part.start : part.stop]
            turns = share_turns(self._prompt, question, shown)
            return Request(turns, max_tokens=MOST_TOKENS)

        def read(part: range, request: Request, reply: Reply) -> Dialogue[None]:
            part_shares = read_shares(reply.text, len(part))
            try:
                if len(part_shares) < len(part):
                    missing = f"it scores {len(part_shares)} of {len(part)} candidates"
                    reply = yield repair(request, reply, self._repair, missing, _FORM)
                    part_shares |= read_shares(reply.text, len(part))
            finally:
                weight = len(part) / len(texts)
                for number, share in _normalise(part_shares).items():
                    shares[part.start + number] = weight * share
            if len(part_shares) < len(part):
                missing = f"{len(part) - len(part_shares)} of {len(part)} facts have no score, even after a repair"
                failures.append(
                    Failure("scorer", missing, current_ledger().hop, reply.text[:500])
                )

        try:
            yield from in_parts(self._chat, range(len(texts)), render, _halves, read)
        except (BudgetExceeded, ModelCallError) as error:
            failures.append(Failure("scorer", str(error), current_ledger().hop))
        return shares, failures


def share_turns(
    prompt: Prompt, question: str, candidates: Sequence[str]
) -> tuple[Turn, ...]:
    """Return the prompt that asks a model to divide 1 among candidates, which are numbered from 1."""
    lines = []
    for number, text in enumerate(candidates, 1):
        lines.append(f"{number}. {as_line(text)}")
    return prompt.fill(
        question=as_data(question),
        candidates="\n".join(lines),
    )


def _halves(part: range) -> tuple[range, ...]:
    middle = len(part) // 2
    if middle:
        return (part[:middle], part[middle:])
    return ()


def _normalise(shares: Shares) -> Shares:
    """Return shares scaled to add up to 1, whatever scale the model used; unchanged if all are 0."""
    total = sum(shares.values())
    if not total:
        return shares
    return {number: share / total for number, share in shares.items()}


def read_shares(reply: str, count: int) -> Shares:
    r"""Return scores by number, from lines such as "3: 0.2" or one list of all of them, "Score: 0.5, 0.3, 0.2".

    Other lines, and numbers above `count`, are ignored. If the scores sum to nearly 1, texts without one get 0.

    >>> read_shares("1: 0.75\n**2**: 0.2 because", 3)
    {1: 0.75, 2: 0.2, 3: 0.0}
    >>> read_shares("Score: 0.4, 0.6", 2)
    {1: 0.4, 2: 0.6}
    """
    shares: Shares = {}
    for line in lines_of(without_thinking(reply)):
        match = _SHARE.match(line)
        listed = _LIST.match(line)
        if match and 1 <= int(match[1]) <= count:
            shares.setdefault(int(match[1]), float(match[2]))
        elif listed and not shares:
            numbers = re.findall(r"\d{1,4}(?:\.\d{1,9})?|\.\d{1,9}", listed[1])
            if len(numbers) == count:
                shares = dict(enumerate(map(float, numbers), 1))
            else:
                shares = {}
    if _WHOLE <= sum(shares.values()) <= 2 - _WHOLE:
        for number in range(1, count + 1):
            shares.setdefault(number, 0.0)
    return shares
