"""A planner on any chat model: the model sees what has been asked and found, and replies with an action.

    [SUBQ] a question        search for this
    [SUFFICIENT]             the graph holds the answer
    [NO_RETRIEVAL]           no search is needed

An action is a whole token in square brackets at the start of a line or a sentence. The first valid one counts. Small
models also write `SUBQ: a question`, `[SUBQ: a question]`, `SUFFICIENT` alone on its line, JSON, translated tokens, or
the question alone; ras_agent.marks has the spellings. A token that is denied, doubted or asked about is none: neither
"INSUFFICIENT" nor "the facts are not [SUFFICIENT]" nor "[SUFFICIENT]? No" nor "sufficient" ends anything.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import cast

from ras_agent.budget import current_ledger
from ras_agent.errors import ParseError
from ras_agent.marks import FLAGS, NO_RETRIEVAL, SPELLINGS, SUBQ, SUFFICIENT
from ras_agent.prompts import Turn, as_data, history_block, load
from ras_agent.question_graph import QuestionGraph
from ras_agent.question_graph.usefulness import evidence_by_use
from ras_agent.records import Action, Plan, Step, Triple
from ras_agent.tools.chat.client import ChatSettings, Request, as_chat
from ras_agent.tools.chat.dialogue import Dialogue, aconverse, converse, fitted, repair, without_thinking
from ras_agent.tools.chat.fit import Evidence, did_not_fit, fit
from ras_agent.tools.chat.loose_json import Value, is_json, json_objects
from ras_agent.tools.chat.window import estimate_turns

MOST_TOKENS = 2048
"""The most tokens of a reply, of a model that writes no thoughts."""

_FORM = f"one line, either {SUBQ} and a search question, or {SUFFICIENT}, or {NO_RETRIEVAL}"
_TOKEN = re.compile(
    "|".join(f"(?P<{action}>{'|'.join(mark.live for mark in marks)})" for action, marks in SPELLINGS.items()), FLAGS
)
_STARTS = re.compile(r"(?:^|[\n.:;!?…。！？—→]|\\boxed\{)[\s*_`'\"“”‘’>#()|•-]*(?:\d+[.)]\s*)?\Z")
_WRAPPING = " \t*_`'\"“”‘’<>:：|-—"
_LOOK_BACK = 80
_LONGEST_REASON = 500

# in front of a token, apart from markup: what makes it none, and what makes a question's token one inside a sentence
_BROKEN_LINE = re.compile(r"[\w,]\s*\n[ \t]*\Z")
_DENIES = re.compile(r"(?:\b(?:not|never|nor|no|cannot|neither)|n['’]t)\b(?:\W+yet\b)?[^.!?\n]*\Z", re.IGNORECASE)
_LEADS = re.compile(r"(?:\b(?:is|be|are|ask)\b|\])[\s*_`'\"“(]*\Z", re.IGNORECASE)
# behind a token that stops: a question, a clause that the token is part of, second thoughts, something that is missing
_AFTER = 200
_ASKED = re.compile(r"[\s*_`'\"”)\]}]*\?")
_CLAUSE = re.compile(
    r"(?:is|was|are|would|will|could|can|cannot|does|do|did|has|should|may|might|must|if|unless|until|when|once|only|or"
    r"|versus|means?|requires?|needs?|tokens?|tags?|markers?|actions?|moves?|yet|not|nope|isn|wasn|false"
    r"|no(?!\s+(?:further|more|additional|other|need|search|retrieval)\b))\b",
    re.IGNORECASE,
)
_SECOND_THOUGHTS = re.compile(r"(?:wait|actually|hmm+|hold on|but|however|not yet|not quite|on second thought)\b", re.I)
_MISSING = re.compile(
    r"\b(?:missing|insufficient|still (?:need|unknown|unclear)"
    r"|not (?:yet )?(?:enough|sufficient|known|shown|stated|given))\b",
    re.IGNORECASE,
)
_MARKUP = " \t\n*_`'\"”’)]}>.,;:!-–—"

# a subquery that repeats the instructions; what follows a question on its line; a question that is the whole reply
_PLACE_HOLDER = re.compile(
    r"[<{\[(]?\s*(?:(?:a|the|your|next|new)\s+)*(?:search\s*|sub-?)?(?:question|query|subquery)\s*[>}\])]?[\s,.]*", re.I
)
_LEFT_OVER = re.compile(r"(?:</|<\||<｜).*|(?<=[?？])\W*\b(?:or|and|then|else)\W*\Z", re.IGNORECASE)
_ASKS = re.compile(
    r"(?:(?:in|on|at|for|to|from|by|of|with|under|during)\s+)?(?:who|whom|whose|what|when|where|which|why|how)\b"
    r"|(?:is|are|was|were|did|does|do|has|have|had)\b",
    re.IGNORECASE,
)
_NO_SEARCH = re.compile(
    r"\b(?:i|me|my|you|your|we|us|our|information|facts?|graph|evidence|passages?|enough|sufficient|missing|next|else)\b",
    re.IGNORECASE,
)

# an action in JSON: names of the keys, and words for the action in capitals without anything else
_ACTION_KEYS = ("action", "next_action", "move", "next_move", "decision", "plan", "type", "step", "output", "response")
_SEARCH_KEYS = (
    *("subq", "sub_q", "subquery", "sub_query", "subquestion", "sub_question", "query", "next_query", "next_question"),
    *("search", "search_query", "search_question"),
)
_TEXT_KEYS = ("question", "text", "content", "input", "value")
_SEARCHES = ("SUBQ", "SUBQUERY", "SUBQUESTION", "SEARCH", "QUERY", "RETRIEVE", "ASK", "INSUFFICIENT", "NOTSUFFICIENT")
_STOPS: dict[str, Action] = {
    "SUFFICIENT": "sufficient",
    "NORETRIEVAL": "no_retrieval",
    "NORETRIEVALNEEDED": "no_retrieval",
}
_FLAGS: dict[str, Action] = {"sufficient": "sufficient", "is_sufficient": "sufficient", "no_retrieval": "no_retrieval"}


class LLMPlanner:
    """Plans with a chat model.

    model: a LangChain chat model, a string such as "openai:gpt-4o-mini", or a Chat.
    few_shot: whether worked examples come before the question.
    task: a task's own instruction, shown above the question.
    repeats_facts: whether the history shows a fact at every search that found it, as in RAS (eq. 2), or at the first.
    follows_any: whether a reply that states no move, after the second try, is the next search, as in RAS's code.
    prompts_dir: a folder whose files override the packaged prompts (plan, plan-few-shot, repair).
    """

    def __init__(
        self,
        model: object,
        *,
        few_shot: bool = False,
        task: str = "",
        repeats_facts: bool = False,
        follows_any: bool = False,
        prompts_dir: str | Path | None = None,
        settings: ChatSettings | None = None,
    ) -> None:
        self._chat = as_chat(model, settings)
        self._prompt = load("plan", prompts_dir, few_shot=few_shot)
        self._repair = load("repair", prompts_dir)
        self._task, self._repeats_facts, self._follows_any = task, repeats_facts, follows_any

    @property
    def name(self) -> str:
        return self._chat.name

    def plan(self, question: str, graph: QuestionGraph, steps: Sequence[Step]) -> Plan:
        """Return the next action. Raises ParseError if neither the first reply nor the second states one.

        After the first search, a model that wants no retrieval is taken to find the facts sufficient.
        """
        return converse(self._chat, self._dialogue(question, graph, steps))

    async def aplan(self, question: str, graph: QuestionGraph, steps: Sequence[Step]) -> Plan:
        """Do the same as `plan`, for coroutines."""
        return await aconverse(self._chat, self._dialogue(question, graph, steps))

    def _dialogue(self, question: str, graph: QuestionGraph, steps: Sequence[Step]) -> Dialogue[Plan]:
        evidence = Evidence()
        times = Counter(name for step in steps for name in step.triple_ids) if self._repeats_facts else None

        def prompt(facts: Sequence[Triple]) -> tuple[Turn, ...]:
            known = graph if len(facts) == len(graph) else QuestionGraph(tuple(facts))
            history = history_block(known, steps, repeated=self._repeats_facts)
            return self._prompt.fill(history=history, task=self._task, question=as_data(question))

        def render(room: int) -> Request:
            nonlocal evidence
            ranked = partial(evidence_by_use, question, graph, (), steps)
            evidence = fit(graph.facts, (), room - estimate_turns(prompt(())), ranked, steps, times)
            return Request(prompt(evidence.facts))

        request, reply = yield from fitted(self._chat, MOST_TOKENS, render)
        if evidence.left_out:
            current_ledger().note(did_not_fit(evidence.left_out, self._chat.window))
        shown = request.turns[-1].text if steps or graph.facts else ""  # before any search, the question is a plan
        try:
            plan = parse_plan(reply.text, shown)
        except ParseError:
            second = yield repair(request, reply, self._repair, "it holds none of the three moves", _FORM)
            try:
                plan = parse_plan(second.text, shown)
            except ParseError:
                text = _question(without_thinking(second.text)) if self._follows_any else ""
                if not text:
                    raise
                plan = Plan("subq", text, "the reply states no move, so it is the next search")
        return replace(plan, action="sufficient") if steps and plan.action == "no_retrieval" else plan


def parse_plan(reply: str, shown: str = "") -> Plan:
    """Return the plan that a reply states; prose in front of its action is the reason.

    shown: what the model was shown. A question without any token counts only if it does not stand there: a model that
    quotes a document searches for nothing.
    Raises ParseError if it states none.
    """
    text = without_thinking(reply)
    plan = _in_json(text) if is_json(text) or "```" in text else None
    if plan is None and not is_json(text):
        plan = _in_tokens(text) or _bare_question(text, shown)
    if plan is None:
        raise ParseError(f"no action in the reply {reply.strip()[:200]!r}; expected {_FORM}")
    return plan


def _in_tokens(text: str) -> Plan | None:
    tokens = list(_TOKEN.finditer(text))
    ends = [*(token.start() for token in tokens[1:]), len(text)]
    for token, end in zip(tokens, ends, strict=False):  # without a token there is still one end
        action = cast(Action, token.lastgroup)
        if action == "subq":
            subquery = _question(text[token.end() : end], opened=text[token.end() - 1] not in "]］】>")
            stated = bool(subquery) and (_begins(text, token.start()) or _leads_to(text, token.start(), subquery))
        else:
            subquery = ""
            stated = _begins(text, token.start()) and _stops(text, token)
        if stated:
            reason = text[: token.start()].strip(_WRAPPING + "\n")[:_LONGEST_REASON]
            return Plan(action, subquery, reason if any(map(str.isalpha, reason)) else "")
    return None


def _begins(text: str, offset: int) -> bool:
    """Return whether a line or a sentence begins at `offset`, apart from markup, numbers and labels."""
    if text[offset] not in "[［【<":
        return True  # a token without brackets is found nowhere else
    before = text[max(0, offset - _LOOK_BACK) : offset]  # a bounded look back keeps the parser linear
    return bool(_STARTS.search(before if offset <= _LOOK_BACK else f"x{before}"))


def _leads_to(text: str, offset: int, subquery: str) -> bool:
    """Return whether a sentence says, up to `offset`, that the question behind the token is the next one."""
    return subquery.endswith(("?", "？")) and bool(_LEADS.search(text[max(0, offset - _LOOK_BACK) : offset]))


def _stops(text: str, token: re.Match[str]) -> bool:
    """Return whether a token that would end the loop is meant: nothing around it denies or doubts it, or asks."""
    before = text[max(0, token.start() - _LOOK_BACK) : token.start()]
    bare = token[0].strip()[-1:] not in "]］】>"
    if _BROKEN_LINE.search(before) and (bare or _DENIES.search(before.rstrip())):
        return False  # the sentence began on the line before
    if _DENIES.search(before.rstrip(_MARKUP)) and not before.rstrip(" \t*_`'\"“(").endswith((".", "!", "?", "\n")):
        return False
    after = text[token.end() : token.end() + _AFTER]
    line = after.partition("\n")[0].strip(_MARKUP)
    return not (
        _ASKED.match(after)
        or _CLAUSE.match(line)
        or _MISSING.search(line)
        or _SECOND_THOUGHTS.match(after.lstrip(_MARKUP))
    )


def _question(text: str, *, opened: bool = False) -> str:
    """Return the first line with words in it, without quotes and markup; "" for one that repeats the instructions.

    opened: whether the question stands inside the brackets of its token.
    """
    for line in text.splitlines():
        bare = _LEFT_OVER.sub("", " ".join(line.split())).strip(_WRAPPING)
        if bare.startswith("(") and bare.endswith(")"):
            bare = bare[1:-1].strip(_WRAPPING)
        if opened and bare.endswith(("]", "］", "】")):
            bare = bare[:-1].strip(_WRAPPING)
        if any(char.isalnum() for char in bare):
            return "" if _PLACE_HOLDER.fullmatch(bare) else bare
    return ""


def _bare_question(text: str, shown: str) -> Plan | None:
    """Return the search for a question that a reply without any token ends with, if it can only be one to search for.

    It is the reply's one question, asks for something by name, and neither the user nor the model itself.
    """
    if text.count("?") != 1 or _TOKEN.search(text):
        return None
    line = text.rstrip(_WRAPPING + "\n").rpartition("\n")[2]
    question = line.strip(_WRAPPING).removesuffix("?")
    if line.endswith("?") and not _ASKS.match(question):  # "The next question is: Where ...", but "Who directed A: B?"
        question = next((part for part in re.split(r": |\bis (?=[A-Z])", question)[1:] if _ASKS.match(part)), "")
    question = question.strip(_WRAPPING)
    named = any(word[0].isupper() or word[0].isdigit() for word in question.split()[1:])
    if not line.endswith("?") or not named or not _ASKS.match(question) or _NO_SEARCH.search(question):
        return None
    return None if question in shown else Plan("subq", f"{question}?")


def _in_json(text: str) -> Plan | None:
    for _, found in json_objects(text):
        search = next((_text(found[key]) for key in _SEARCH_KEYS if _text(found.get(key))), "")
        word = next((_text(found[key]) for key in _ACTION_KEYS if _text(found.get(key))), "")
        action = re.sub(r"[^A-Z]", "", word.upper())
        flagged = {_FLAGS[key]: found[key] for key in _FLAGS if isinstance(found.get(key), bool)}
        reason = next((_text(found[key]) for key in ("reason", "thought", "reasoning") if _text(found.get(key))), "")
        reason = reason[:_LONGEST_REASON]
        stops = [_STOPS[action]] if action in _STOPS else [stop for stop, flag in flagged.items() if flag]
        if stops:
            return None if search else Plan(stops[0], reason=reason)  # not one that stops and searches
        if action in _SEARCHES or not word:
            by_name = next((_text(found[key]) for key in _TEXT_KEYS if action and _text(found.get(key))), "")
            if subquery := _question(search or by_name):
                return Plan("subq", subquery, reason)
        elif plan := _in_tokens(word):
            return plan
    return None


def _text(value: Value) -> str:
    """Return a text, or the first of several; "" for anything else."""
    first = value[0] if isinstance(value, list) and value else value
    return first.strip() if isinstance(first, str) else ""
