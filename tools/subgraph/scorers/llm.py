"""The scorers "llm" and "llm-ft": a chat model, plain or fine-tuned, that grades texts from 0 to 10."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from ras_agent.budget import current_ledger
from ras_agent.errors import BudgetExceeded, ModelCallError
from ras_agent.prompts import as_data, as_line, load
from ras_agent.records import Failure
from ras_agent.tools.chat.client import ChatSettings, Reply, Request, as_chat
from ras_agent.tools.chat.dialogue import Dialogue, converse_all, in_parts, repair, without_thinking
from ras_agent.tools.subgraph.scorers.bm25 import BM25Scorer
from ras_agent.tools.subgraph.scoring import Scored, Scorer, best

MOST_TOKENS = 1024
"""The most tokens of a reply, of a model that writes no thoughts."""

_FORM = "one line for each candidate, its number, a colon and its grade from 0 to 10, as in '3: 8'"
_GRADE = re.compile(r"^[\s*\-•#(\[]*(\d{1,5})[\])*]{0,3}\s*[:=|]\s*\**(\d{1,2}(?:\.\d+)?)\b")
Grades = dict[int, float]


class LLMScorer:
    """Grades with a chat model: one call for every `per_call` texts, `at_once` calls at a time.

    model: a LangChain chat model, a string such as "openai:gpt-4o-mini" or "vllm:http://host:port/v1#tuned", or a Chat.
    first: the scorer that chooses the `at_most` texts which the model reads, so that a thousand facts do not become
        fifty calls; the others score below those, in its order. The paper uses a sentence encoder.
    prompts_dir: a folder whose files override the packaged prompts (grade-facts, repair).
    """

    def __init__(
        self,
        model: object,
        *,
        first: Scorer | None = None,
        at_most: int = 128,
        per_call: int = 32,
        at_once: int = 4,
        prompts_dir: str | Path | None = None,
        settings: ChatSettings | None = None,
    ) -> None:
        if min(at_most, per_call, at_once) < 1:
            raise ValueError(f"at_most, per_call and at_once must be positive, got {at_most}, {per_call}, {at_once}")
        self._chat = as_chat(model, settings)
        self._first = first or BM25Scorer()
        self._at_most, self._per_call, self._at_once = at_most, per_call, at_once
        self._prompt, self._repair = load("grade-facts", prompts_dir), load("repair", prompts_dir)

    @property
    def name(self) -> str:
        return self._chat.name

    def score(self, question: str, texts: Sequence[str]) -> Scored:
        """Return grades from 0 to 10; a text that was read but not graded has -1, one that was not read less than -1.

        A call that fails, or a reply that stays unreadable after one repair, is a Failure and costs only the grades of
        its texts.
        """
        if not texts:
            return Scored(np.empty(0, dtype=np.float32))
        first = self._first.score(question, texts)
        ranked = best(first.values, len(texts))
        values = np.empty(len(texts), dtype=np.float32)
        values[ranked] = -2 - np.arange(len(texts), dtype=np.float32) / len(texts)
        read = sorted(ranked[: self._at_most])
        values[read] = -1
        batches = [read[at : at + self._per_call] for at in range(0, len(read), self._per_call)]
        dialogues = [self._dialogue(question, [texts[place] for place in batch]) for batch in batches]
        failures = list(first.failures)
        for batch, (grades, failed) in zip(batches, converse_all(self._chat, dialogues, self._at_once), strict=True):
            failures += failed
            for number, grade in grades.items():
                values[batch[number - 1]] = grade
        return Scored(values, tuple(failures))

    def _dialogue(self, question: str, texts: Sequence[str]) -> Dialogue[tuple[Grades, list[Failure]]]:
        """Grade the texts; in parts, where the model's window does not hold them all."""
        grades: Grades = {}
        failures: list[Failure] = []

        def render(part: range) -> Request:
            lines = "\n".join(f"{number}. {as_line(texts[place])}" for number, place in enumerate(part, 1))
            return Request(self._prompt.fill(question=as_data(question), candidates=lines), most=MOST_TOKENS)

        def read(part: range, request: Request, reply: Reply) -> Dialogue[None]:
            found = read_grades(reply.text, len(part))
            try:
                if len(found) < len(part):
                    missing = f"it grades {len(found)} of {len(part)} candidates"
                    reply = yield repair(request, reply, self._repair, missing, _FORM)
                    found |= read_grades(reply.text, len(part))
            finally:
                grades.update({part[number - 1] + 1: grade for number, grade in found.items()})
            if len(found) < len(part):
                missing = f"{len(part) - len(found)} of {len(part)} facts have no grade, even after a repair"
                failures.append(Failure("scorer", missing, current_ledger().hop, reply.text[:500]))

        try:
            yield from in_parts(self._chat, range(len(texts)), render, _halves, read)
        except (BudgetExceeded, ModelCallError) as error:
            failures.append(Failure("scorer", str(error), current_ledger().hop))
        return grades, failures


def _halves(part: range) -> tuple[range, ...]:
    middle = len(part) // 2
    return (part[:middle], part[middle:]) if middle else ()


def read_grades(reply: str, count: int) -> Grades:
    """Read grades by number from lines such as "3: 8"; ignore other lines, numbers over `count`, grades over 10.

    >>> read_grades("1: 9\\n**2**: 4\\n- 3: 7.5 because", 3)
    {1: 9.0, 2: 4.0, 3: 7.5}
    """
    found: Grades = {}
    for line in without_thinking(reply).splitlines():
        match = _GRADE.match(line)
        if match and 1 <= int(match[1]) <= count and float(match[2]) <= 10:
            found.setdefault(int(match[1]), float(match[2]))
    return found
