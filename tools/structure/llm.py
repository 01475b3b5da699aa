"""Extracts facts by any chat model, and finds the sentence that states each fact."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

from ras_agent.contracts.errors import BudgetExceeded, ModelCallError
from ras_agent.contracts.marks import FLAGS, NONE
from ras_agent.contracts.records import (
    Extraction,
    Failure,
    Passage,
    RefusedFacts,
    Source,
    Triple,
)
from ras_agent.contracts.schema import Schema
from ras_agent.prompts import STOPS, Prompt, as_line, passage_block, render
from ras_agent.prompts.templates import examples_in
from ras_agent.running.budget import current_ledger
from ras_agent.running.standing_facts import keep_standing
from ras_agent.text.sentences import sentence_spans
from ras_agent.text.standing import fact_text
from ras_agent.text.tokens import estimate_tokens
from ras_agent.tools.chat.by_need import Asking, ByNeed
from ras_agent.tools.chat.call import Reply, Request
from ras_agent.tools.chat.client import Chat, ChatRole, ChatSettings
from ras_agent.tools.chat.dialogue import (
    Dialogue,
    aconverse_all,
    converse_all,
    in_parts,
    repair,
)
from ras_agent.tools.chat.endings import EMPTY_REPLY
from ras_agent.tools.chat.form import FormUse
from ras_agent.tools.chat.names import model_name, sampling_parameters
from ras_agent.tools.chat.thoughts import without_thinking
from ras_agent.tools.chat.window import fit_into
from ras_agent.tools.roles import RoleOptions
from ras_agent.tools.structure.parse_triples import (
    EXAMPLE,
    REPLY_FORM,
    ParsedTriples,
    parse_triples,
)
from ras_agent.tools.structure.two_fields import mended

# may be followed by a reason, or stand on the line after one
_NOTHING = re.compile(rf"^(?:[^\S\n]|[*_`>#-])*+(?:{NONE.live})", FLAGS)
MOST_FACTS = 1000
"""The maximum number of facts that are taken from one reply; only a model that does not stop writes more."""
TOKENS_PER_TOKEN = 3
MORE_TOKENS = 128
"""A reply may have TOKENS_PER_TOKEN tokens for each token of the passages, plus MORE_TOKENS; thoughts get more."""


class LLMExtractor(ChatRole):
    """Asks a chat model for the facts in passages.

    Each passage is read in a call of its own, and one that does not fit into the model's window in parts. A failed
    call, a reply that is still unreadable when asked again, and a reply that is cut off each become a Failure, and
    do not affect the facts of other passages. The facts do not depend on the sub-query (RAS, section
    3.2), so cached replies serve every question.
    """

    def __init__(
        self,
        model: object,
        *,
        few_shot: bool = False,
        prompts_dir: str | Path | None = None,
        settings: ChatSettings | None = None,
        at_once: int = 5,
        form: FormUse = "auto",
        schema: Schema | None = None,
    ) -> None:
        """Take the model and the prompts.

        Args:
            model: a LangChain chat model, a string such as "openai:gpt-4o-mini", or a Chat.
            few_shot: whether worked examples come before the passage.
            prompts_dir: a folder with files that override the packaged prompts (triples, triples-few-shot, repair).
            at_once: the number of calls at the same time.
            form: when the server enforces the form of replies: "auto" after an unreadable one, "on" always, "off"
                never.
            schema: the relations that the model is shown.
        """
        if at_once < 1:
            raise ValueError(f"at_once must be positive, got {at_once}")
        super().__init__(model, settings)
        by_need = ByNeed.load(
            "triples",
            prompts_dir,
            few_shot=few_shot,
            example=EXAMPLE,
            form=REPLY_FORM,
            use=form,
        )
        shown = ""
        if schema is not None:
            (turn,) = render("schema", directory=prompts_dir, relations=schema.lines())
            shown = turn.text
        self._by_need = replace(
            by_need,
            plain=_with_schema(shown, by_need.plain),
            examples=_with_schema(shown, by_need.examples),
        )
        examples = "\n".join(examples_in(self._by_need.examples.turns))
        self._examples = frozenset(
            triple.key for triple in parse_triples(examples).triples
        )
        self._at_once = at_once

    @property
    def fingerprint(self) -> str:
        """Return a hash of everything that determines a passage's facts: the model, sampling and prompts, but not the
        server.
        """
        name = model_name(self._chat.model)
        turns = (*self._by_need.plain.turns, *self._by_need.repair.turns)
        identity = [
            name,
            sampling_parameters(self._chat.model, where=False),
            [[turn.role, turn.text] for turn in turns],
            1,  # passages a call; kept so that facts in earlier caches are found
        ]
        written = json.dumps(identity, sort_keys=True, default=str)
        digest = hashlib.sha256(written.encode()).hexdigest()
        return f"{name} {digest[:16]}"

    def extract(self, passages: Sequence[Passage], subquery: str = "") -> Extraction:
        """Return the facts of the passages, in their order. The sub-query is ignored."""
        dialogues = self._dialogues(passages)
        parts = converse_all(self._chat, dialogues, self._at_once)
        return Extraction.joined(parts)

    async def aextract(
        self, passages: Sequence[Passage], subquery: str = ""
    ) -> Extraction:
        """Return the same as `extract`, as a coroutine."""
        dialogues = self._dialogues(passages)
        return Extraction.joined(
            await aconverse_all(self._chat, dialogues, self._at_once)
        )

    def _dialogues(self, passages: Sequence[Passage]) -> list[Dialogue[Extraction]]:
        asking = self._by_need.asking()
        dialogues = []
        for passage in passages:
            reading = _Reading(
                self._chat, self._by_need, asking, passage, self._examples
            )
            dialogues.append(reading.dialogue())
        return dialogues


class _Reading:
    """Reads a passage with the model, and collects its facts and failures."""

    def __init__(
        self,
        chat: Chat,
        by_need: ByNeed,
        asking: Asking,
        passage: Passage,
        examples: frozenset[tuple[str, str, str]],
    ) -> None:
        """Take the passage and how to ask about it.

        Args:
            examples: the keys of the facts in the worked examples.
        """
        self._chat = chat
        self._by_need = by_need
        self._asking = asking
        self._passage = passage
        self._examples = examples
        self._triples: list[Triple] = []
        self._failures: list[Failure] = []
        self._unread: list[str] = []

    def dialogue(self) -> Dialogue[Extraction]:
        """Ask about the passage, in parts if it is too long, and return its facts."""
        render = partial(self._render, self._asking)
        try:
            yield from in_parts(self._chat, self._passage, render, _halves, self._read)
        except ModelCallError as error:
            self._fail(f"{type(error).__name__}: {error}")
        except BudgetExceeded as error:
            self._fail(str(error))
        facts = self._facts()
        read_facts = Extraction(facts, tuple(self._failures), tuple(self._unread))
        extraction = keep_standing(read_facts, [self._passage], current_ledger().hop)
        # facts were read, but none of them is supported by the passage
        if self._triples and not extraction.triples:
            return replace(extraction, unread=(self._passage.id,))
        return extraction

    def _fail(self, message: str, detail: str = "") -> None:
        located = f"{message} (passage {self._passage.id})"
        hop = current_ledger().hop
        self._failures.append(Failure("extractor", located, hop, detail[:500]))

    def _render(self, asking: Asking, part: Passage) -> Request:
        block = passage_block([part])
        max_tokens = TOKENS_PER_TOKEN * estimate_tokens(block) + MORE_TOKENS
        room = self._chat.sizes.room(max_tokens, share=2)
        turns = asking.prompt.fill(passages=block)
        for version in asking.prompt.versions():
            turns = version.fill(passages=block)
            if fit_into(turns, room):
                break
        return Request(
            turns,
            max_tokens=max_tokens,
            form=asking.form,
            stop=STOPS,
            takes_part=True,
            ends_early=True,
        )

    def _read(self, part: Passage, request: Request, reply: Reply) -> Dialogue[None]:
        """Take the facts of a reply; ask a second time if some of its lines cannot be read."""
        parsed = _parsed(reply)
        problem = problem_of(parsed, reply.text)
        has_facts = bool(parsed.triples)
        self._triples.extend(parsed.triples)
        was_cut_off_in_facts = has_facts and bool(reply.shortfall)
        if problem and not was_cut_off_in_facts:
            reply = yield from self._again(part, request, reply, problem, has_facts)
            parsed = _parsed(reply)
            problem = problem_of(parsed, reply.text)
            has_facts = has_facts or bool(parsed.triples)
            self._triples.extend(parsed.triples)
        if problem and not has_facts:
            self._unread.append(part.id)
        if reply.shortfall:
            self._fail(reply.shortfall, "".join(parsed.leftovers[-1:]))
        elif not reply.text.strip():
            self._fail(EMPTY_REPLY)
        elif problem:
            message = "facts could not be read, also when the model was asked again"
            self._fail(message, "\n".join(parsed.leftovers))

    def _again(
        self,
        part: Passage,
        request: Request,
        reply: Reply,
        problem: str,
        has_facts: bool,
    ) -> Dialogue[Reply]:
        """Return a second reply: asked in another way if the first has no facts, else in a conversation."""
        if not has_facts:

            def render(asking: Asking, room: int) -> Request:
                return self._render(asking, part)

            _, second = yield from self._by_need.again(
                self._chat, self._asking, (request, reply), problem, render
            )
            return second
        second = yield repair(request, reply, self._by_need.repair, problem, EXAMPLE)
        return second

    def _facts(self) -> tuple[Triple, ...]:
        """Return the facts with their sources; those that are copied from an example become failures."""
        triples = list(dict.fromkeys(self._triples))
        count = len(triples)
        if count > MOST_FACTS:
            self._fail(f"only the first {MOST_FACTS:,} of {count:,} facts were taken")
        facts: list[Triple] = []
        for triple in triples[:MOST_FACTS]:
            fact = located(triple, self._passage, self._chat.name)
            if triple.key in self._examples and not _says(self._passage, triple):
                self._failures.append(_copied(fact))
            else:
                facts.append(fact)
        return tuple(facts)


def _parsed(reply: Reply) -> ParsedTriples:
    parsed = parse_triples(reply.text, cut_off=reply.truncated)
    return mended(parsed)


def _halves(passage: Passage) -> Sequence[Passage]:
    """Split a passage in the middle, between two sentences; return () for a single sentence."""
    text = passage.text
    starts = [start for start, _ in sentence_spans(text)][1:]
    if not starts:
        return ()
    cut = min(starts, key=lambda start: abs(start - len(text) // 2))
    first = replace(passage, text=text[:cut])
    second = replace(passage, text=text[cut:])
    return first, second


def llm_extractor(model: object, options: RoleOptions) -> LLMExtractor:
    """Build the extractor on a chat model, with an agent's options."""
    return LLMExtractor(
        model,
        few_shot=options.few_shot,
        prompts_dir=options.prompts_dir,
        settings=options.chat,
        form=options.form,
        schema=options.schema,
    )


def _with_schema(schema: str, prompt: Prompt) -> Prompt:
    """Return a prompt with a schema filled in, so that only the passages are left to fill; "" shows no schema."""
    turns = prompt.fill(schema=schema, passages="{{passages}}")
    return replace(prompt, turns=turns)


def problem_of(parsed: ParsedTriples, reply: str) -> str:
    """Return the problem with a reply; "" if there is no problem. Prose around readable facts does not count as one."""
    if parsed.broken:
        lines = as_line(" / ".join(parsed.broken))
        return f"these lines are not in the form of facts: {lines[:500]}"
    if parsed.triples or _NOTHING.search(reply):
        return ""
    if not parsed.leftovers and without_thinking(reply).strip():
        return ""
    return f"it holds no fact in the agreed form, nor {NONE}"


def located(triple: Triple, passage: Passage, extractor: str) -> Triple:
    """Return the triple with its source: the sentence of a passage that states it, else the whole passage.

    Args:
        extractor: the name of the extractor, which becomes part of the source.
    """
    text = fact_text(passage.text, passage.heading)
    span = text.sentence(triple.subject, triple.predicate, triple.object)
    start, end = span or (0, len(passage.text))
    source = Source(passage.id, start, end, extractor=extractor)
    return replace(triple, sources=(source,))


def _says(passage: Passage, triple: Triple) -> bool:
    """Return whether a passage contains all words of a fact, so that the fact is not just copied from an example."""
    fact = f"{triple.subject} {triple.predicate} {triple.object}"
    text = fact_text(passage.text, passage.heading)
    return not text.words.missing(fact)


def _copied(fact: Triple) -> RefusedFacts:
    message = (
        "a fact left out, as it is the prompt's worked example and not of the text: "
        f"{fact} (passage {fact.sources[0].passage_id})"
    )
    return RefusedFacts("extractor", message, current_ledger().hop, str(fact))
