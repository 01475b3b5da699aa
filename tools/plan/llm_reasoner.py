"""IRCoT's reasoner on any chat model: it writes one more sentence of the chain of thought per call."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from ras_agent.budget import current_ledger
from ras_agent.errors import ParseError
from ras_agent.prompts import Turn, as_data, as_line, load, passage_block
from ras_agent.question_graph import QuestionGraph
from ras_agent.question_graph.usefulness import passages_by_use
from ras_agent.records import Passage
from ras_agent.text.canonical import canonical_key
from ras_agent.text.sentences import sentence_spans
from ras_agent.tools.chat.client import ChatSettings, Request, as_chat
from ras_agent.tools.chat.dialogue import Dialogue, aconverse, converse, fitted, repair, without_thinking
from ras_agent.tools.chat.fit import ByUse, Evidence, did_not_fit, fit
from ras_agent.tools.chat.window import estimate_turns

MOST_TOKENS = 1024
"""The most tokens of a reply, of a model that writes no thoughts."""

_FORM = "one sentence that says something new"


class LLMReasoner:
    """Reasons with a chat model.

    model: a LangChain chat model, a string such as "openai:gpt-4o-mini", or a Chat.
    few_shot: whether a worked example comes before the question.
    task: a task's own instruction, shown above the question.
    prompts_dir: a folder whose files override the packaged prompts (next-sentence, next-sentence-few-shot, repair).
    """

    def __init__(
        self,
        model: object,
        *,
        few_shot: bool = False,
        task: str = "",
        prompts_dir: str | Path | None = None,
        settings: ChatSettings | None = None,
    ) -> None:
        self._chat = as_chat(model, settings)
        self._prompt = load("next-sentence", prompts_dir, few_shot=few_shot)
        self._repair = load("repair", prompts_dir)
        self._task = task

    @property
    def name(self) -> str:
        return self._chat.name

    def next_sentence(self, question: str, passages: Sequence[Passage], thoughts: Sequence[str]) -> str:
        """Return the next sentence. Raises ParseError if neither the first reply nor the second holds a new one."""
        return converse(self._chat, self._dialogue(question, passages, thoughts))

    async def anext_sentence(self, question: str, passages: Sequence[Passage], thoughts: Sequence[str]) -> str:
        """Do the same as `next_sentence`, for coroutines."""
        return await aconverse(self._chat, self._dialogue(question, passages, thoughts))

    def _dialogue(self, question: str, passages: Sequence[Passage], thoughts: Sequence[str]) -> Dialogue[str]:
        shown = Evidence()

        def prompt(passages: Sequence[Passage]) -> tuple[Turn, ...]:
            return self._prompt.fill(
                passages=passage_block(passages),
                task=self._task,
                question=as_data(question),
                thoughts=" ".join(map(as_line, thoughts)) or "(none yet)",
            )

        def by_use() -> ByUse:
            return (), passages_by_use(passages, QuestionGraph(), (question, *thoughts))

        def render(room: int) -> Request:
            nonlocal shown
            shown = fit((), passages, room - estimate_turns(prompt(())), by_use)
            return Request(prompt(shown.passages))

        request, reply = yield from fitted(self._chat, MOST_TOKENS, render)
        if shown.left_out:
            current_ledger().note(did_not_fit(shown.left_out, self._chat.window))
        sentence = first_new_sentence(reply.text, thoughts)
        if not sentence:
            reply = yield repair(request, reply, self._repair, "it holds no new sentence", _FORM)
            sentence = first_new_sentence(reply.text, thoughts)
        if not sentence:
            raise ParseError(f"no new sentence in the reply {reply.text[:200]!r}")
        return sentence


def first_new_sentence(reply: str, thoughts: Sequence[str]) -> str:
    """Return the first sentence of a reply that is not among the thoughts, which models like to repeat; "" for none.

    >>> first_new_sentence("Bell lived in Edinburgh. The Water of Leith flows there.", ["Bell lived in Edinburgh."])
    'The Water of Leith flows there.'
    """
    known = {canonical_key(thought) for thought in thoughts}
    text = without_thinking(reply)
    for start, end in sentence_spans(text):
        # a no-break space stays: it is what keeps a passage's "answer is" from ending the chain (ras_agent.marks)
        sentence = re.sub(r"[ \t\n\r\f\v]+", " ", text[start:end]).strip('*_`"“”> -')
        if any(map(str.isalnum, sentence)) and canonical_key(sentence) not in known:
            return sentence
    return ""
