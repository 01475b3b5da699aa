"""An answerer on any chat model: it shows numbered evidence and turns the numbers in the reply into citations."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from ras_agent.budget import current_ledger
from ras_agent.errors import BudgetExceeded, ModelCallError
from ras_agent.events import AnswerToken, emit, streaming
from ras_agent.marks import UNKNOWN
from ras_agent.prompts import as_data, fragment, load
from ras_agent.question_graph import QuestionGraph
from ras_agent.records import Answer, AnswerStyle, Failure, Passage
from ras_agent.tools.answer.citations import NumberedEvidence, read_citations
from ras_agent.tools.answer.forms import FORMS, abstains, answer_part, bare_words
from ras_agent.tools.chat.client import ChatSettings, Reply, Request, as_chat
from ras_agent.tools.chat.dialogue import Dialogue, aconverse, converse, repair

I_DO_NOT_KNOW = "I don't know."
# a streamed reply of more characters is read again only when it has grown by a part of its length: in linear time
_READ_AT_EACH_PIECE = 1000
_PART = 1 / 16


class LLMAnswerer:
    """Answers with a chat model.

    model: a LangChain chat model, a string such as "openai:gpt-4o-mini", or a Chat.
    style: the form of the answer: "short", "choice" (a label), "boolean", "long", or "reader" (reasons first, as
        IRCoT's reader does).
    few_shot: whether worked examples come before the question.
    may_abstain: whether the model may say that the evidence does not hold the answer.
    task: a task's own instruction, shown above the question.
    prompts_dir: a folder whose files override the packaged prompts (answer, answer-short, may-abstain, ...).
    max_passage_chars: the passages that are shown have at most so many characters. The last retrieved are left out,
        and a Failure says so.
    """

    def __init__(
        self,
        model: object,
        *,
        style: AnswerStyle = "short",
        few_shot: bool = False,
        may_abstain: bool = True,
        task: str = "",
        prompts_dir: str | Path | None = None,
        settings: ChatSettings | None = None,
        max_passage_chars: int = 60_000,
    ) -> None:
        if style not in FORMS:
            raise ValueError(f"unknown answer style {style!r}; known: {', '.join(FORMS)}")
        self._chat = as_chat(model, settings)
        self._form = FORMS[style]
        self._prompt = load(self._form.prompt, prompts_dir, few_shot=few_shot)
        self._repair = load("repair", prompts_dir)
        self._abstention = fragment("may-abstain" if may_abstain else "must-answer", prompts_dir)
        self._may_abstain = may_abstain
        self._task = task
        self._max_passage_chars = max_passage_chars

    @property
    def name(self) -> str:
        return self._chat.name

    @property
    def timeout(self) -> float:
        """Return the seconds that an answer may take beyond the run's max_seconds."""
        return self._chat.settings.timeout

    def answer(self, question: str, graph: QuestionGraph, passages: Sequence[Passage]) -> Answer:
        """Return the answer, also as AnswerToken events where events are streamed.

        Raises ModelCallError if the call fails, BudgetExceeded if the budget forbids it.
        """
        return converse(self._chat, self._dialogue(question, graph, passages))

    async def aanswer(self, question: str, graph: QuestionGraph, passages: Sequence[Passage]) -> Answer:
        """Do the same as `answer`, for coroutines."""
        return await aconverse(self._chat, self._dialogue(question, graph, passages))

    def _dialogue(self, question: str, graph: QuestionGraph, passages: Sequence[Passage]) -> Dialogue[Answer]:
        evidence, failures = self._evidence(graph, passages)
        turns = self._prompt.fill(
            abstention=self._abstention,
            evidence=evidence.block(),
            task=self._task,
            question=as_data(question),
        )
        tokens, passage_ids = _TokenStream(), evidence.passage_ids()

        def on_text(so_far: str) -> None:
            if tokens.is_due(len(so_far)):
                tokens.grow(self._so_far(so_far, question, passage_ids))

        request = Request(turns, on_text if streaming() else None)
        reply = yield request
        answer, problem = self._read(reply, question, evidence)
        if problem:
            try:
                reply = yield repair(request, reply, self._repair, problem, self._form.wanted)
                answer, problem = self._read(reply, question, evidence)
            except (BudgetExceeded, ModelCallError) as error:
                problem = f"{problem}; asking again failed: {error}"
        if problem:
            failures.append(_failure(problem, reply.text))
        if reply.truncated:
            failures.append(_failure("the reply was cut off at its token limit", reply.text[-200:]))
        tokens.grow(answer.text)
        return replace(answer, failures=(*failures, *answer.failures))

    def _evidence(self, graph: QuestionGraph, passages: Sequence[Passage]) -> tuple[NumberedEvidence, list[Failure]]:
        room, count = self._max_passage_chars, 0
        for passage in passages:
            room -= len(passage.text)
            if room < 0:
                break
            count += 1
        left_out = len(passages) - count
        failures = [_failure(f"{left_out} of {len(passages)} passages did not fit into the prompt")] if left_out else []
        return NumberedEvidence(tuple(passages[:count]), graph.facts, tuple(passages[count:])), failures

    def _read(self, reply: Reply, question: str, evidence: NumberedEvidence) -> tuple[Answer, str]:
        """Return the answer that a reply holds, and what is wrong with it, "" for nothing."""
        part = answer_part(reply.text, prose=self._form.prose)
        if abstains(part):
            problem = "" if self._may_abstain else f"{UNKNOWN} is no answer. {self._abstention}"
            return Answer(I_DO_NOT_KNOW, abstained=True), problem
        cited = read_citations(part, evidence.passage_ids())
        if not bare_words(cited.bare):
            return Answer(
                I_DO_NOT_KNOW, abstained=True, failed="the model's reply held no answer"
            ), "it holds no answer"
        text = self._form.read(cited.numbered if self._form.prose else cited.bare, question)
        citations = evidence.citations(cited.numbers, cited.bare, question) or evidence.supporting(cited.bare, question)
        failures = [_failure(f"cited [{number}], which is no evidence shown", part) for number in cited.invented]
        problem = "" if text else "its answer does not have the form that was asked for"
        return Answer(text or cited.bare.strip(), citations, failures=tuple(failures)), problem

    def _so_far(self, reply: str, question: str, passage_ids: Mapping[int, str]) -> str:
        """Return the part of the answer that an unfinished reply already settles."""
        part = answer_part(reply, prose=self._form.prose, finished=False)
        if part.rfind("[") > part.rfind("]"):  # a number or a token that is not complete yet
            part = part[: part.rfind("[")]
        if abstains(part):
            return ""
        cited = read_citations(part, passage_ids)
        return self._form.read(cited.numbered if self._form.prose else cited.bare, question)


class _TokenStream:
    """Emits the new part of a growing answer.

    A call that was retried, or a reply that was repaired, begins anew. Where the answer then differs from the tokens
    that were emitted already, no more are emitted.
    """

    def __init__(self) -> None:
        self._emitted = ""
        self._read = 0

    def is_due(self, length: int) -> bool:
        """Return whether a reply of `length` characters should be read again for new tokens."""
        grown = length - self._read
        if 0 <= grown < _PART * length and length > _READ_AT_EACH_PIECE:
            return False
        self._read = length
        return True

    def grow(self, answer: str) -> None:
        """Emit what `answer` adds to the tokens emitted so far."""
        if len(answer) > len(self._emitted) and answer.startswith(self._emitted):
            emit(AnswerToken(answer[len(self._emitted) :]))
            self._emitted = answer


def _failure(message: str, detail: str = "") -> Failure:
    return Failure("answerer", message, current_ledger().hop, detail[:500])
