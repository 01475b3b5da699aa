"""Reasons as in IRCoT by a chat model: each call writes one more sentence of the chain of thought."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from ras_agent.contracts.errors import ParseError
from ras_agent.contracts.records import Passage
from ras_agent.prompts import Turn, as_data, as_line, load, passage_block, task_block
from ras_agent.prompts.fit import ByUse, Evidence, fit
from ras_agent.question_graph import QuestionGraph
from ras_agent.question_graph.usefulness import passages_by_use
from ras_agent.text.canonical import canonical_key
from ras_agent.text.loose_json import first_text, is_json, json_objects
from ras_agent.text.sentences import sentence_spans
from ras_agent.text.unusable import speaks_of_itself
from ras_agent.tools.chat.call import Request
from ras_agent.tools.chat.client import ChatRole, ChatSettings
from ras_agent.tools.chat.dialogue import (
    Dialogue,
    aconverse,
    converse,
    fitted,
    parsed_twice,
)
from ras_agent.tools.chat.thoughts import without_thinking
from ras_agent.tools.chat.window import estimate_turns
from ras_agent.tools.roles import RoleOptions

MAX_TOKENS = 1024
"""The maximum number of tokens of a reply; a model that writes thoughts gets more."""

_WRAPPING = '*_`"“”> -'
_LABEL = re.compile(
    r"(?:(?:next |new )?(?:sentence|thought)(?: \d+)?[*_]*:[*_]*|\d+[.)](?=\s))\s*",
    re.IGNORECASE,
)
_CHATTER = re.compile(
    r"\A\s*+(?:(?:sure|certainly|of course|okay|ok|great|alright|absolutely)(?:[!,.]\s*+|\s++(?=here)))?+"
    r"(?:(?:here(?:['’]s| is| are)|the next sentence)\b[^\n:]{0,80}+:)?+",
    re.IGNORECASE,
)
_KEYS = ("sentence", "next_sentence", "thought", "response", "text")
_FORM = "Jørn Utzon was born in Copenhagen."


class LLMReasoner(ChatRole):
    """Writes the next sentence of a chain of thought by a chat model."""

    accepts_feedback = True

    def __init__(
        self,
        model: object,
        *,
        few_shot: bool = False,
        task: str = "",
        prompts_dir: str | Path | None = None,
        settings: ChatSettings | None = None,
    ) -> None:
        """Take the model and the prompts.

        Args:
            model: a LangChain chat model, a string such as "openai:gpt-4o-mini", or a Chat.
            few_shot: whether a worked example comes before the question.
            task: an instruction that is shown above the question.
            prompts_dir: a folder with files that override the packaged prompts (next-sentence,
                next-sentence-few-shot, repair).
        """
        super().__init__(model, settings)
        self._prompt = load("next-sentence", prompts_dir, few_shot=few_shot)
        self._repair = load("repair", prompts_dir)
        self._task = task

    def next_sentence(
        self, question: str, passages: Sequence[Passage], thoughts: Sequence[str]
    ) -> str:
        """Return the sentence that continues `thoughts`. Raises ParseError if neither of two replies has a new one."""
        dialogue = self._dialogue(question, passages, thoughts)
        return converse(self._chat, dialogue)

    async def anext_sentence(
        self, question: str, passages: Sequence[Passage], thoughts: Sequence[str]
    ) -> str:
        """Return the same as `next_sentence`, as a coroutine."""
        dialogue = self._dialogue(question, passages, thoughts)
        return await aconverse(self._chat, dialogue)

    def _dialogue(
        self, question: str, passages: Sequence[Passage], thoughts: Sequence[str]
    ) -> Dialogue[str]:
        evidence = Evidence()

        def prompt(passages: Sequence[Passage]) -> tuple[Turn, ...]:
            return self._prompt.fill(
                passages=passage_block(passages),
                task=task_block(self._task),
                question=as_data(question),
                thoughts=" ".join(map(as_line, thoughts)) or "(none yet)",
            )

        def by_use() -> ByUse:
            no_facts = QuestionGraph()
            texts = (question, *thoughts)
            return (), passages_by_use(passages, no_facts, texts)

        def render(room: int) -> Request:
            nonlocal evidence
            left = room - estimate_turns(prompt(()))
            evidence = fit(
                (), passages, left, by_use, most=self._chat.sizes.evidence_tokens
            )
            return Request(prompt(evidence.passages))

        asked = yield from fitted(self._chat, MAX_TOKENS, render)
        evidence.note(self._chat.sizes.window)

        def parse(text: str) -> str:
            sentence = first_new_sentence(text, thoughts)
            if not sentence:
                raise ParseError("it holds no new sentence")
            return sentence

        return (yield from parsed_twice(asked, parse, self._repair, _FORM))


def llm_reasoner(model: object, options: RoleOptions) -> LLMReasoner:
    """Build the reasoner on a chat model, with an agent's options."""
    return LLMReasoner(
        model,
        few_shot=options.few_shot,
        task=options.task,
        prompts_dir=options.prompts_dir,
        settings=options.chat,
    )


def first_new_sentence(reply: str, thoughts: Sequence[str]) -> str:
    """Return the first sentence of a reply that is not among `thoughts`, which models often repeat; "" without a new
    one.

    Repetition is recognised by canonical keys, regardless of case and punctuation. Words that announce or label the
    sentence are removed, and so is JSON around it. A refusal ("I cannot ...") does not count as a sentence.

    >>> first_new_sentence("Bell lived in Edinburgh. The Water of Leith flows there.", ["Bell lived in Edinburgh."])
    'The Water of Leith flows there.'
    """
    known = set(map(canonical_key, thoughts))
    text = _unwrap(without_thinking(reply))
    for start, end in sentence_spans(text):
        # no-break spaces stay: one keeps a passage's "answer is" from ending the chain (ras_agent.contracts.marks)
        spaced = re.sub(r"[ \t\n\r\f\v]+", " ", text[start:end])
        sentence = _LABEL.sub("", spaced.strip(_WRAPPING)).strip(_WRAPPING)
        if speaks_of_itself(sentence) or canonical_key(sentence) in known:
            continue
        if any(map(str.isalpha, sentence)):
            return sentence
    return ""


def _unwrap(text: str) -> str:
    """Return a reply's text without JSON around it, and without words that announce the sentence."""
    if not is_json(text):
        return _CHATTER.sub("", text, count=1)
    for _, item in json_objects(text):
        return first_text(item, _KEYS)
    return ""
