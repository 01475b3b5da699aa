"""An extractor on any chat model: it reads facts out of passages and finds the sentence that states each."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from math import inf
from pathlib import Path

from ras_agent.budget import current_ledger
from ras_agent.errors import BudgetExceeded, ModelCallError
from ras_agent.marks import FLAGS, NONE
from ras_agent.prompts import STOPS, as_line, passage_block
from ras_agent.prompts.templates import examples_in
from ras_agent.records import Extraction, Failure, Passage, RefusedFacts, Source, Triple
from ras_agent.standing_facts import keep_standing
from ras_agent.text.overlap import support
from ras_agent.text.sentences import sentence_spans
from ras_agent.text.standing import fact_text
from ras_agent.text.tokens import estimate_tokens
from ras_agent.tools.chat.by_need import Asking, ByNeed
from ras_agent.tools.chat.call import Reply, Request
from ras_agent.tools.chat.client import ChatSettings, as_chat
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

# in front of a reason, or behind one
_NOTHING = re.compile(rf"^(?:[^\S\n]|[*_`>#-])*+(?:{NONE.live})", FLAGS)
MOST_FACTS = 1000
"""The most facts that are taken from one reply; only a model that does not stop states more."""
TOKENS_PER_TOKEN = 3
MORE_TOKENS = 128
"""The most tokens of a reply, of a model that writes no thoughts: three for each of the passages, and 128."""


class LLMExtractor:
    """Extractor on a chat model: one call for every `passages_per_call` passages, `at_once` calls at the same time.

    Passages that do not fit into the model's window together are read in several calls, a long one in parts.

    A call that fails, a reply that stays unreadable after one repair, and a reply that is cut off are each a Failure,
    and do not affect the facts of other passages. The facts do not depend on the sub-query (RAS, section 3.2), so
    cached replies serve every question.

    model: a LangChain chat model, a string such as "openai:gpt-4o-mini", or a Chat.
    few_shot: whether worked examples come before the passages.
    prompts_dir: a folder whose files override the packaged prompts (triples, triples-few-shot, repair).
    form: when the server holds replies to their form.
    """

    def __init__(
        self,
        model: object,
        *,
        few_shot: bool = False,
        prompts_dir: str | Path | None = None,
        settings: ChatSettings | None = None,
        passages_per_call: int = 1,
        at_once: int = 5,
        form: FormUse = "auto",
    ) -> None:
        if passages_per_call < 1 or at_once < 1:
            raise ValueError(
                f"passages_per_call and at_once must be positive, got {passages_per_call} and {at_once}"
            )
        self._chat = as_chat(model, settings)
        self._by_need = ByNeed.load(
            "triples",
            prompts_dir,
            few_shot=few_shot,
            example=EXAMPLE,
            form=REPLY_FORM,
            use=form,
        )
        examples = "\n".join(examples_in(self._by_need.examples.turns))
        self._examples = frozenset(
            triple.key for triple in parse_triples(examples).triples
        )
        self._passages_per_call = passages_per_call
        self._at_once = at_once

    @property
    def name(self) -> str:
        return self._chat.name

    @property
    def fingerprint(self) -> str:
        """Return a hash of all that decides a passage's facts: model, sampling, prompts; not the model's server."""
        name = model_name(self._chat.model)
        turns = (*self._by_need.plain.turns, *self._by_need.repair.turns)
        identity = [
            name,
            sampling_parameters(self._chat.model, where=False),
            [[turn.role, turn.text] for turn in turns],
            self._passages_per_call,
        ]
        written = json.dumps(identity, sort_keys=True, default=str)
        digest = hashlib.sha256(written.encode()).hexdigest()
        return f"{name} {digest[:16]}"

    def extract(self, passages: Sequence[Passage], subquery: str = "") -> Extraction:
        """Return the facts in the order of the passages."""
        dialogues = self._dialogues(passages)
        return Extraction.joined(converse_all(self._chat, dialogues, self._at_once))

    async def aextract(
        self, passages: Sequence[Passage], subquery: str = ""
    ) -> Extraction:
        """Do the same as `extract`, for coroutines."""
        dialogues = self._dialogues(passages)
        return Extraction.joined(
            await aconverse_all(self._chat, dialogues, self._at_once)
        )

    def _dialogues(self, passages: Sequence[Passage]) -> list[Dialogue[Extraction]]:
        size = self._passages_per_call
        asking = self._by_need.asking()
        dialogues = []
        for start in range(0, len(passages), size):
            dialogues.append(self._dialogue(passages[start : start + size], asking))
        return dialogues

    def _dialogue(
        self, passages: Sequence[Passage], asking: Asking
    ) -> Dialogue[Extraction]:
        names = tuple(passage.id for passage in passages)
        triples: list[Triple] = []
        failures: list[Failure] = []
        unread: list[str] = []

        def fail(message: str, detail: str = "") -> None:
            located = f"{message} (passage {', '.join(names)})"
            failures.append(
                Failure("extractor", located, current_ledger().hop, detail[:500])
            )

        def render(asking: Asking, part: Sequence[Passage]) -> Request:
            block = passage_block(part)
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

        def read(
            part: Sequence[Passage], request: Request, reply: Reply
        ) -> Dialogue[None]:
            parsed = _parsed(reply)
            problem = problem_of(parsed, reply.text)
            first = parsed.triples
            triples.extend(first)
            if problem:
                if not first:
                    asked = (request, reply)
                    request, reply = yield from self._by_need.again(
                        self._chat,
                        asking,
                        asked,
                        problem,
                        lambda asking, room: render(asking, part),
                    )
                elif not reply.shortfall:
                    reply = yield repair(
                        request, reply, self._by_need.repair, problem, EXAMPLE
                    )
                parsed = _parsed(reply)
                triples.extend(parsed.triples)
                problem = problem_of(parsed, reply.text)
            if problem and not (first or parsed.triples):
                unread.extend(passage.id for passage in part)
            if reply.shortfall:
                fail(reply.shortfall, parsed.leftovers[-1] if parsed.leftovers else "")
            elif not reply.text.strip():
                fail(EMPTY_REPLY)
            elif problem:
                fail(
                    "facts could not be read, also when the model was asked again",
                    "\n".join(parsed.leftovers),
                )

        try:
            yield from in_parts(
                self._chat, passages, partial(render, asking), _halves, read
            )
        except ModelCallError as error:
            fail(f"{type(error).__name__}: {error}")
        except BudgetExceeded as error:
            fail(str(error))
        if len(triples) > MOST_FACTS:
            fail(f"only the first {MOST_FACTS:,} of {len(triples):,} facts were taken")
        facts: list[Triple] = []
        for triple in dict.fromkeys(triples[:MOST_FACTS]):
            fact = located(triple, passages, self.name)
            if not fact.sources:
                fail("a fact shares no word with any of its passages", str(triple))
            elif triple.key in self._examples and not _says(passages, triple):
                failures.append(_copied(fact))
            else:
                facts.append(fact)
        read_facts = Extraction(tuple(facts), tuple(failures), tuple(unread))
        extraction = keep_standing(read_facts, passages, current_ledger().hop)
        # no fact that was read stands in a passage
        if triples and not extraction.triples:
            return replace(extraction, unread=names)
        return extraction


def _parsed(reply: Reply) -> ParsedTriples:
    parsed = parse_triples(reply.text, cut_off=reply.truncated)
    return mended(parsed)


def _halves(passages: Sequence[Passage]) -> Sequence[Sequence[Passage]]:
    """Split passages into two parts, or a single passage between two sentences; () for a single sentence."""
    if len(passages) > 1:
        middle = len(passages) // 2
        return passages[:middle], passages[middle:]
    passage = passages[0]
    text = passage.text
    starts = [start for start, _ in sentence_spans(text)][1:]
    if not starts:
        return ()
    cut = min(starts, key=lambda start: abs(start - len(text) // 2))
    first = replace(passage, text=text[:cut])
    second = replace(passage, text=text[cut:])
    return [first], [second]


def llm_extractor(model: object, options: RoleOptions) -> LLMExtractor:
    """Return the extractor on a chat model, for the options of an agent."""
    return LLMExtractor(
        model,
        few_shot=options.few_shot,
        prompts_dir=options.prompts_dir,
        settings=options.chat,
        form=options.form,
    )


def problem_of(parsed: ParsedTriples, reply: str) -> str:
    """Return the problem of a reply, "" if it has none. Prose around readable facts is no problem."""
    if parsed.broken:
        lines = as_line(" / ".join(parsed.broken))
        return f"these lines are not in the form of facts: {lines[:500]}"
    if parsed.triples or _NOTHING.search(reply):
        return ""
    if not parsed.leftovers and without_thinking(reply).strip():
        return ""
    return f"it holds no fact in the agreed form, nor {NONE}"


def located(triple: Triple, passages: Sequence[Passage], extractor: str) -> Triple:
    """Return the triple with its source: the sentence that states it, in the passage in which it stands best.

    If no sentence shares a word, a single passage is the source as a whole; of several passages no one is.
    """
    fact = (triple.subject, triple.predicate, triple.object)
    best: Source | None = None
    best_rank = (inf, inf)
    for passage in passages:
        text = fact_text(passage.text, passage.heading)
        span = text.sentence(*fact)
        if span is None and len(passages) == 1:
            span = (0, len(passage.text))
        if span is None:
            continue
        rank = (0.0, 0.0)
        if len(passages) > 1:
            shared = support(passage.text[slice(*span)], fact)
            rank = (text.standing(*fact).value, -shared)
        if rank < best_rank:
            best = Source(passage.id, *span, extractor=extractor)
            best_rank = rank
    return replace(triple, sources=(best,) if best else ())


def _says(passages: Sequence[Passage], triple: Triple) -> bool:
    """Return whether a passage has all words of a fact, which is then its own."""
    fact = f"{triple.subject} {triple.predicate} {triple.object}"
    for passage in passages:
        text = fact_text(passage.text, passage.heading)
        if not text.words.missing(fact):
            return True
    return False


def _copied(fact: Triple) -> RefusedFacts:
    message = (
        "a fact left out, as it is the prompt's worked example and not of the text: "
        f"{fact} (passage {fact.sources[0].passage_id})"
    )
    return RefusedFacts("extractor", message, current_ledger().hop, str(fact))
