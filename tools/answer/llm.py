"""Answers with any chat model: shows it numbered evidence, and turns the numbers in its reply into citations."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Self

from ras_agent.contracts.errors import BudgetExceeded, ModelCallError, PromptTooLong
from ras_agent.contracts.events import AnswerToken, emit, streaming
from ras_agent.contracts.marks import UNKNOWN
from ras_agent.contracts.records import (
    Answer,
    AnswerStyle,
    EvidenceLayout,
    Failure,
    Passage,
    Step,
)
from ras_agent.prompts import STOPS, Prompt, Turn, as_data, fragment, task_block
from ras_agent.prompts.fit import Evidence, fit, fit_version
from ras_agent.prompts.templates import examples_in
from ras_agent.question_graph import QuestionGraph
from ras_agent.question_graph.usefulness import evidence_by_use
from ras_agent.running.budget import current_ledger
from ras_agent.text.unusable import copies, echoes
from ras_agent.tools.answer.citations import NumberedEvidence, read_citations
from ras_agent.tools.answer.forms import (
    FORMS,
    abstains,
    answer_part,
    bare_words,
    first_words,
    is_fact,
    opens_with_answer,
    restates,
)
from ras_agent.tools.answer.samples import CallError, most_agreed
from ras_agent.tools.chat.by_need import Asking, ByNeed
from ras_agent.tools.chat.call import Reply, Request
from ras_agent.tools.chat.client import ChatRole, ChatSettings
from ras_agent.tools.chat.dialogue import (
    Dialogue,
    aconverse_all,
    converse_all,
    fitted,
    repair,
)
from ras_agent.tools.chat.endings import EMPTY_REPLY
from ras_agent.tools.chat.form import FormUse
from ras_agent.tools.chat.thoughts import without_thinking
from ras_agent.tools.chat.window import estimate_turns
from ras_agent.tools.roles import RoleOptions

MAX_TOKENS = 2048
"""The maximum number of tokens of a reply, unless `answer_tokens` is set; a model that writes thoughts gets more."""

# tokens of a reply in addition to the answer: "Answer:" and numbers; the reasons of the style "reader"
_MARKS = 32
_REASONS = 512
I_DO_NOT_KNOW = "I don't know."
_IS_EMPTY = "it is empty"
_NOTHING_TO_SHOW = "I don't know: no facts were read in what was found."
# a streamed reply longer than this is parsed again only after it grew by _PART of its length, to stay linear
_READ_AT_EACH_PIECE = 1000
_PART = 1 / 16


class LLMAnswerer(ChatRole):
    """Asks a chat model for the answer, given the facts and passages of a run.

    If the evidence does not fit into the model's window, the least useful part is left out, and a Failure says so.
    """

    accepts_feedback = True

    def __init__(
        self,
        model: object,
        *,
        style: AnswerStyle = "short",
        layout: EvidenceLayout = "evidence",
        few_shot: bool = False,
        may_abstain: bool = True,
        asks_anyway: bool = False,
        task: str = "",
        prompts_dir: str | Path | None = None,
        settings: ChatSettings | None = None,
        answer_tokens: int | None = None,
        form: FormUse = "auto",
        samples: int = 1,
    ) -> None:
        """Take the model, the form of answers and the evidence to show. Raises ValueError for an unknown style or
        layout.

        Args:
            model: a LangChain chat model, a string such as "openai:gpt-4o-mini", or a Chat.
            style: the form of the answer: "short", "choice" (a label), "boolean", "long", "reader" (reasons first,
                like IRCoT's reader), or "citing" (a short answer, then the nodes and edges that support it).
            layout: the evidence that the model is shown: "evidence" is all passages and facts; "chain" is RAS's
                input (eq. 8), each sub-query with all its facts and no passages; "chain-of-text" has the passages
                in place of the facts; "searches" has only the sub-queries, for a model that reads the facts through
                graph tokens.
            few_shot: whether worked examples come before the question.
            may_abstain: whether the model may say that the evidence does not contain the answer. If not, its reply
                is the answer, whatever its form.
            asks_anyway: whether the model is asked for its own knowledge if passages were found but the layout
                shows nothing of them.
            task: an instruction that is shown above the question.
            prompts_dir: a folder with files that override the packaged prompts (answer, answer-short, may-abstain,
                ...).
            answer_tokens: the maximum number of tokens of an answer; None for 2,048. The reasons of "reader" do not
                count.
            form: when the server enforces the form of replies: "auto" after an unreadable one, "on" always, "off"
                never.
            samples: the number of replies, of which the answer is kept that most agree on. A model of temperature 0
                is then asked with a higher one.
        """
        if style not in FORMS:
            raise ValueError(
                f"unknown answer style {style!r}; known: {', '.join(FORMS)}"
            )
        if layout not in _SHOWN:
            raise ValueError(f"unknown layout {layout!r}; known: {', '.join(_SHOWN)}")
        super().__init__(model, settings)
        self._form = FORMS[style]
        examples = ""
        if style != "reader" and layout in _EXAMPLES:
            examples = f"{self._form.prompt}{_EXAMPLES[layout]}"
        self._by_need = ByNeed.load(
            self._form.prompt,
            prompts_dir,
            few_shot=few_shot,
            example=self._form.example,
            form=self._form.reply_form(may_abstain=may_abstain),
            use=form,
            examples=examples,
        )
        abstention = "may-abstain" if may_abstain else "must-answer"
        self._on_evidence = _Instructions.load(_SHOWN[layout], abstention, prompts_dir)
        self._from_memory = _Instructions.load(
            "answer-from-memory", f"{abstention}-from-memory", prompts_dir
        )
        self._instructions = [self._form.words]
        for prompt in (self._by_need.examples, self._by_need.repair):
            self._instructions += [turn.text for turn in prompt.turns]
        for part in (self._on_evidence, self._from_memory):
            self._instructions += [part.evidence, part.abstention]
        self._layout: EvidenceLayout = layout
        self._may_abstain = may_abstain
        self._asks_anyway = asks_anyway
        self._task = task
        self._samples = samples
        self._max_tokens = MAX_TOKENS
        if answer_tokens is not None:
            reasons = _REASONS if style == "reader" else 0
            self._max_tokens = answer_tokens + reasons + _MARKS

    def answer(
        self,
        question: str,
        graph: QuestionGraph,
        passages: Sequence[Passage],
        steps: Sequence[Step],
    ) -> Answer:
        """Return the answer, and emit it as AnswerToken events if events are streamed.

        Without any evidence the model answers from its own knowledge. If passages were found but the layout shows
        nothing of them, the model is not asked, unless `asks_anyway`. Raises ModelCallError if the call fails, and
        BudgetExceeded if the run's budget forbids it.
        """
        dialogues = self._dialogues(question, graph, passages, steps)
        samples = converse_all(self._chat, dialogues, at_once=self._samples)
        return _kept(samples)

    async def aanswer(
        self,
        question: str,
        graph: QuestionGraph,
        passages: Sequence[Passage],
        steps: Sequence[Step],
    ) -> Answer:
        """Return the same as `answer`, as a coroutine."""
        dialogues = self._dialogues(question, graph, passages, steps)
        samples = await aconverse_all(self._chat, dialogues, at_once=self._samples)
        return _kept(samples)

    def _dialogues(
        self,
        question: str,
        graph: QuestionGraph,
        passages: Sequence[Passage],
        steps: Sequence[Step],
    ) -> Sequence[Dialogue[Answer | CallError]]:
        """Return a conversation for each sample; one that fails ends in its error, unless it is the only one."""
        if self._samples == 1:
            return [self.dialogue(question, graph, passages, steps)]
        dialogues = []
        for sample in range(1, self._samples + 1):
            dialogue = self.dialogue(question, graph, passages, steps, sample)
            dialogues.append(_or_error(dialogue))
        return dialogues

    def dialogue(
        self,
        question: str,
        graph: QuestionGraph,
        passages: Sequence[Passage],
        steps: Sequence[Step],
        sample: int = 0,
    ) -> Dialogue[Answer]:
        """Return the conversation with the model that ends in the answer.

        Args:
            sample: the number of the sample, from 1, which is not streamed; 0 if the model is asked once.
        """
        everything = NumberedEvidence.laid_out(self._layout, graph, passages, steps)
        grounded = bool(everything.passages or everything.facts)
        if passages and not grounded and not self._asks_anyway:
            return Answer(_NOTHING_TO_SHOW, abstained=True)
        instructions = self._on_evidence if grounded else self._from_memory
        asking = self._by_need.asking()
        tokens = _TokenStream()
        evidence = everything
        fitting = Evidence()

        def prompt(version: Prompt, block: str) -> tuple[Turn, ...]:
            return version.fill(
                shown=instructions.evidence,
                abstention=instructions.abstention,
                evidence=block,
                task=task_block(self._task),
                question=as_data(question),
            )

        def on_text(so_far: str) -> None:
            if not tokens.is_due(len(so_far)):
                return
            answer = self._so_far(so_far, question, evidence.passage_ids())
            tokens.grow(answer)

        def fitted_prompt(whole: Prompt, room: int) -> tuple[Turn, ...]:
            nonlocal evidence, fitting
            if not everything.in_text:
                return prompt(whole, everything.block())
            ranked = partial(
                evidence_by_use, question, graph, everything.passages, steps
            )

            def fit_to(version: Prompt) -> Evidence:
                return fit(
                    everything.facts,
                    everything.passages,
                    room - estimate_turns(prompt(version, everything.frame())),
                    ranked,
                    everything.chain,
                    everything.times(),
                    self._chat.sizes.evidence_tokens,
                )

            version, fitting = fit_version(whole, fit_to)
            if grounded and not (fitting.facts or fitting.passages):
                self._refuse()
            evidence = everything.showing(fitting.facts, fitting.passages)
            return prompt(version, evidence.block())

        def render(asking: Asking, room: int) -> Request:
            return Request(
                fitted_prompt(asking.prompt, room),
                on_text if streaming() and not sample else None,
                graph=graph.by_subquery(steps),
                form=asking.form,
                varied=sample > 0,
                sample=sample,
                stop=STOPS,
                takes_part=True,
            )

        request, reply = yield from fitted(
            self._chat, self._max_tokens, partial(render, asking)
        )
        failures = []
        if left_out := fitting.shortfall(self._chat.sizes.window):
            failures.append(_failure(left_out))
        answer, problem = self._read(reply, question, evidence)
        if problem:
            first = answer
            first_reply = reply
            try:
                reply = yield from self._asked_again(
                    asking, (request, reply), problem, render
                )
                answer, problem = self._read(reply, question, evidence)
            except (BudgetExceeded, ModelCallError) as error:
                problem = f"{problem}; asking again failed: {error}"
            if answer.failed:
                answer = self._fall_back(first, first_reply, question, evidence)
                if not answer.failed:
                    problem = (
                        f"{problem}, so the first reply's first words are the answer"
                    )
        if problem:
            message = EMPTY_REPLY if problem == _IS_EMPTY else problem
            failures.append(_failure(message, reply.text))
        if reply.shortfall:
            failures.append(_failure(reply.shortfall, reply.text[-200:]))
        if not sample:
            tokens.grow(answer.text)
        return replace(answer, failures=(*failures, *answer.failures))

    def _refuse(self) -> None:
        """Raise BudgetExceeded or PromptTooLong, because no evidence fits into the prompt."""
        ledger = current_ledger()
        if ledger.tokens_left() < self._chat.sizes.window:
            ledger.refuse("max_tokens")
        raise PromptTooLong(
            "question and instructions leave no room for evidence in the model's window of "
            f"{self._chat.sizes.window:,} tokens; shorten them, or set context_window if the window is larger"
        )

    def _asked_again(
        self,
        asking: Asking,
        asked: tuple[Request, Reply],
        problem: str,
        render: Callable[[Asking, int], Request],
    ) -> Dialogue[Reply]:
        """Ask again after an unreadable reply. A model that may not abstain, but did, is told so in a conversation."""
        if problem.startswith(str(UNKNOWN)):
            again = repair(*asked, self._by_need.repair, problem, self._by_need.example)
            return (yield again)
        _, reply = yield from self._by_need.again(
            self._chat, asking, asked, problem, render
        )
        return reply

    def _read(
        self, reply: Reply, question: str, evidence: NumberedEvidence
    ) -> tuple[Answer, str]:
        """Return the answer in a reply, and the problem with the reply ("" if there is none)."""
        if not reply.text.strip():
            return _no_answer("the model's reply was empty"), _IS_EMPTY
        part = answer_part(reply.text, prose=self._form.prose, listed=self._form.listed)
        if not part and not self._may_abstain:
            part = without_thinking(reply.text).strip()
        return self._answer_in(part, question, evidence)

    def _fall_back(
        self, first: Answer, reply: Reply, question: str, evidence: NumberedEvidence
    ) -> Answer:
        """Return the answer in the first words of the first reply, used if the second reply has no answer either."""
        if not first.failed:
            return first
        words = first_words(reply.text, question)
        answer, problem = self._answer_in(words, question, evidence)
        return first if problem else answer

    def _answer_in(
        self, part: str, question: str, evidence: NumberedEvidence
    ) -> tuple[Answer, str]:
        """Return the answer in the answering part of a reply, and the problem with it ("" if there is none)."""
        if abstains(part):
            if self._may_abstain:
                return Answer(I_DO_NOT_KNOW, abstained=True), ""
            problem = f"{UNKNOWN} is no answer. {self._on_evidence.abstention}"
            return Answer(part), problem
        cited = read_citations(part, evidence.passage_ids())
        if not bare_words(cited.bare) or self._is_echo(cited.bare, question, evidence):
            return _no_answer("the model's reply held no answer"), "it holds no answer"
        citations = evidence.citations(cited.numbers, cited.bare, question)
        if not citations:
            citations = evidence.supporting(cited.bare, question)
        failures = [
            _failure(f"cited [{number}], which is no evidence shown", part)
            for number in cited.invented
        ]
        text = self._form.read(cited.text(self._form), question)
        answer = Answer(text or cited.bare.strip(), citations, failures=tuple(failures))
        if text:
            return answer, ""
        return answer, "its answer does not have the form that was asked for"

    def _is_echo(self, answer: str, question: str, evidence: NumberedEvidence) -> bool:
        """Return whether an answer only repeats the instructions, a worked example or the question."""
        if not self._form.prose and (is_fact(answer) or restates(answer, question)):
            return True
        material = (question, evidence.block())
        if echoes(answer, self._instructions, material):
            return True
        examples = (self._form.example, *examples_in(self._by_need.examples.turns))
        return copies(answer, examples, material)

    def _so_far(self, reply: str, question: str, passage_ids: Mapping[int, str]) -> str:
        """Return the beginning of the answer, as far as an unfinished reply already determines it."""
        if self._chat.sizes.may_think_unmarked and not opens_with_answer(reply):
            return ""
        part = answer_part(
            reply, prose=self._form.prose, finished=False, listed=self._form.listed
        )
        bracket = part.rfind("[")
        if bracket > part.rfind("]"):  # the number or token is still incomplete
            part = part[:bracket]
        if abstains(part):
            return ""
        cited = read_citations(part, passage_ids)
        return self._form.read(cited.text(self._form), question)


def llm_answerer(model: object, options: RoleOptions) -> LLMAnswerer:
    """Build the answerer on a chat model, with an agent's options."""
    return LLMAnswerer(
        model,
        style=options.style,
        layout=options.layout or "evidence",
        few_shot=options.few_shot,
        may_abstain=options.may_abstain,
        asks_anyway=options.asks_anyway,
        task=options.task,
        prompts_dir=options.prompts_dir,
        settings=options.chat,
        answer_tokens=options.answer_tokens,
        form=options.form,
        samples=options.samples,
    )


_SHOWN: dict[EvidenceLayout, str] = {
    "evidence": "answer-from-evidence",
    "chain": "answer-from-chain",
    "chain-of-text": "answer-from-text",
    "searches": "answer-from-graph",
    "dialogue": "answer-from-evidence",  # a layout of the planner only
}


# suffixes of the prompts with worked examples in other layouts than "evidence"; the style "reader" has none
_EXAMPLES: dict[EvidenceLayout, str] = {
    "chain": "-few-shot-chain",
    "chain-of-text": "-few-shot-text",
}


@dataclass(frozen=True, slots=True)
class _Instructions:
    """Holds the parts of the prompt that depend on the evidence: its description, and what to do if it holds no answer."""

    evidence: str
    abstention: str

    @classmethod
    def load(
        cls, evidence: str, abstention: str, prompts_dir: str | Path | None
    ) -> Self:
        return cls(
            evidence=fragment(evidence, prompts_dir),
            abstention=fragment(abstention, prompts_dir),
        )


class _TokenStream:
    """Emits the new parts of a growing answer as events.

    A retried call or a repaired reply starts from the beginning. If the answer then differs from what was already
    emitted, nothing more is emitted.
    """

    def __init__(self) -> None:
        self._emitted = ""
        self._length = 0

    def is_due(self, length: int) -> bool:
        """Return whether a reply of `length` characters should be parsed again for new text."""
        grown = length - self._length
        if 0 <= grown < _PART * length and length > _READ_AT_EACH_PIECE:
            return False
        self._length = length
        return True

    def grow(self, answer: str) -> None:
        """Emit the text by which `answer` extends what was emitted so far."""
        added = answer.removeprefix(self._emitted)
        if added and len(added) + len(self._emitted) == len(answer):
            emit(AnswerToken(added))
            self._emitted = answer


def _or_error(dialogue: Dialogue[Answer]) -> Dialogue[Answer | CallError]:
    """Run a dialogue, which ends in its error if a call fails."""
    try:
        return (yield from dialogue)
    except (BudgetExceeded, ModelCallError) as error:
        return error


def _kept(samples: Sequence[Answer | CallError]) -> Answer:
    """Return the answer that most samples agree on, and emit it if events are streamed."""
    if len(samples) == 1 and isinstance(samples[0], Answer):
        return samples[0]
    answer = most_agreed(samples)
    _TokenStream().grow(answer.text)
    return answer


def _failure(message: str, detail: str = "") -> Failure:
    hop = current_ledger().hop
    return Failure("answerer", message, hop, detail[:500])


def _no_answer(problem: str) -> Answer:
    return Answer(I_DO_NOT_KNOW, abstained=True, failed=problem)
