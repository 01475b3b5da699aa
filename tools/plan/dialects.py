"""Describes dialects of planners that others trained: how each is prompted, shown its results, and read.

Each dialect is a row of the table below; `tools.plan.dialogue_planner` drives the models of all of them with the
same loop. The prompts are those that the models were trained with (prompts/plan-*.txt); if a format was not part of
any training, as with ReAct, the words are ours. Formats and training prompts come from

    search-r1     PeterGriffinJin/Search-R1, Apache-2.0
    autorefine    syr-cn/AutoRefine, Apache-2.0
    r1-searcher   RUCAIBox/R1-Searcher, MIT
    corag         microsoft/LMOps, corag, MIT
    react         Yao et al., 2023, and the form that LangChain made of it
    think-on-graph  Sun et al., 2024: steps from entity to entity in the knowledge graph, in ReAct's form
    tool-json     calls of tools as models of the Qwen and Hermes families write them
    ras           this project's own (tools.plan.grammar)
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from itertools import chain
from typing import Literal

from ras_agent.config.registry import find_a, names
from ras_agent.contracts.errors import ParseError
from ras_agent.contracts.marks import (
    ACTION,
    ACTION_INPUT,
    ALL_TAGS,
    ANSWER,
    ANSWER_TAGS,
    DOCUMENT_TOKENS,
    DOCUMENTS_TAGS,
    FLAGS,
    FOUND,
    INFORMATION_TAGS,
    INTERMEDIATE_ANSWER,
    INTERMEDIATE_QUERY,
    OBSERVATION,
    QUERY_TOKENS,
    SEARCH_TAGS,
    SUBQ,
    THINKING_TAGS,
    THOUGHT,
    TOOL_CALL_TAGS,
    TOOL_RESPONSE_TAGS,
    Tags,
)
from ras_agent.contracts.records import Plan
from ras_agent.text.lines import first_line
from ras_agent.text.loose_json import json_objects
from ras_agent.tools.chat.thoughts import spoken_span
from ras_agent.tools.chat.tool_calls import named_call
from ras_agent.tools.plan.grammar import EXAMPLE_QUERY, FORM, parse_plan

Rendering = Literal["continued", "turns", "rewritten"]
"""How a dialogue is written as a prompt.

"continued": one assistant turn that continues after each result, as in training. "turns": an assistant turn for each
search and a user turn for its result. "rewritten": a new prompt each time, which lists all searches and results.
"""

_LONGEST_REASON = 500
_LONGEST_QUERY = 1000
_LONGEST_LINE = 2000  # characters of an action's line; keeps the parser linear


@dataclass(frozen=True, slots=True)
class Reading:
    """Holds the plan that a reply states, and where it stands. Only the first `end` characters of the reply count."""

    plan: Plan
    start: int
    """The offset of the action in the reply."""
    end: int
    """The offset after the action."""
    closing: str = ""
    """The closing tag that a stop text has cut off, which is added to the dialogue; "" if it was not cut off."""


@dataclass(frozen=True, slots=True)
class Dialect:
    """Describes the form in which one family of models plans."""

    name: str
    prompt: str
    """The name of the prompt's file."""
    read: Callable[[str, bool, str], Reading | None]
    """Finds the plan in a reply, as `read(reply, cut, shown)`.

    `cut` is whether the reply ended at its token limit, so that an unfinished action does not count; `shown` is the
    text that the model was shown last.
    """
    write: Callable[[str], str]
    """Writes a search as the model would, for a hop that another planner planned."""
    form: str
    """The form of a reply, described in words."""
    stop: tuple[str, ...] = ()
    """Texts that end a reply."""
    rendering: Rendering = "turns"
    """How the dialogue is written as a prompt."""
    opening: str = ""
    """The beginning of the assistant's turn."""
    around: tuple[str, str] = ("", "")
    """The texts before and after the result of a search."""
    passage: str = ""
    """A format string for a passage, with number, title and text; "" to show facts instead."""
    nothing: str = "(nothing)"
    """The text for a search that found nothing."""
    retry: str = ""
    """The text that the assistant's turn continues with after a reply without an action; "" to ask in a user's turn
    instead.
    """
    digest: str = ""
    """The name of a prompt with which the model reads the passages; its reply is then shown in their place. "" to show
    passages.
    """
    best_last: bool = False
    """Whether the best passage is shown last."""
    recognised_by_reply: bool = True
    """Whether a search in this form, in a reply to another prompt, shows that the model was trained in the dialect.

    It is False if models of other families write such replies too.
    """
    models: str = ""
    """A regular expression for the names of models that use the dialect."""

    @property
    def example(self) -> str:
        """Return an example of a search, for a model that wrote an unreadable reply."""
        return self.write(EXAMPLE_QUERY)


def dialect(name: str) -> Dialect:
    """Return the dialect with this name. Raises UnknownName, which lists the known dialects."""
    return find_a(Dialect, "dialect", name)


def dialect_of_model(name: str) -> Dialect | None:
    """Return the dialect in which a model with this name was trained; None if the name belongs to no known family.

    >>> dialect_of_model("vllm:http://host/v1#SearchR1-nq_hotpotqa_train-qwen2.5-7b-em-ppo").name
    'search-r1'
    """
    own_name = name.rpartition("#")[2]  # a server's address may contain any word
    for row in _dialects():
        if row.models and re.search(row.models, own_name, re.IGNORECASE):
            return row
    return None


def dialect_of_reply(reply: str, cut: bool) -> Dialect | None:
    """Return the dialect of the search in a reply to a prompt that asked for another form; None without such a search.

    Only a search counts, since any model may write an answer in tags.

    Args:
        cut: whether the reply ended at its token limit.
    """
    for row in _dialects():
        if not row.recognised_by_reply:
            continue
        reading = row.read(reply, cut, "")
        if reading is not None and reading.plan.action == "subq":
            return row
    return None


def _dialects() -> Iterator[Dialect]:
    return map(dialect, names("dialect"))


# ---- actions in tags


def read_tags(
    searches: Tags, answers: Tags, text: str, cut: bool, shown: str = ""
) -> Reading | None:
    """Return the first action in a reply: the text inside the innermost pair of tags, or after an opening tag.

    An opening tag without its partner counts, because a stop text may have cut off the closing tag, unless the
    reply is `cut`. A pair around an empty text or a placeholder is ignored as part of an explanation.

    Args:
        searches, answers: the tags around a search, and around an answer.
    """
    opened: re.Match[str] | None = None
    for tag in _tag_pattern(searches, answers).finditer(text):
        is_search = _is_search(tag)
        if _is_opening(tag):
            opened = tag
        elif opened is not None and is_search == _is_search(opened):
            start = opened.start()
            held = text[opened.end() : tag.start()]
            if plan := _action(is_search, held, text, start):
                return Reading(plan, start, tag.end())
            opened = None
    if opened is None or cut:
        return None
    start = opened.start()
    rest = text[opened.end() :]
    held = first_line(rest)
    is_search = _is_search(opened)
    plan = _action(is_search, held, text, start)
    if plan is None:
        return None
    end = opened.end() + rest.index(held) + len(held.rstrip())
    closing = answers.closing
    if is_search:
        closing = searches.closing
    return Reading(plan, start, end, closing)


def _is_opening(tag: re.Match[str]) -> bool:
    return tag.lastgroup in ("opening_search", "opening_answer")


def _is_search(tag: re.Match[str]) -> bool:
    return tag.lastgroup in ("opening_search", "closing_search")


@lru_cache(maxsize=16)
def _tag_pattern(searches: Tags, answers: Tags) -> re.Pattern[str]:
    (search, end_search), (answer, end_answer) = searches.live, answers.live
    return re.compile(
        f"(?P<opening_search>{search})|(?P<closing_search>{end_search})"
        f"|(?P<opening_answer>{answer})|(?P<closing_answer>{end_answer})",
        re.IGNORECASE,
    )


# an incomplete closing tag before the real one, as in `<search>x</search</search>`
_HALF_CLOSED = re.compile(r"</\w*\s*\Z")
# placeholders of a search or an answer, as when a model repeats its instructions
_NO_SEARCH = re.compile(
    r"\W*(?:(?:and|or|your|the|an?|search|only|question|query|queries|keywords?|tags?|here)\b\W*)*",
    re.IGNORECASE,
)
_NO_ANSWER = re.compile(
    r"\W*|\W*(?:and|or|(?:(?:your|the|final|short)\W+)*answer(?:\W+here)?)\W*",
    re.IGNORECASE,
)
_ANY_TAG = re.compile(
    "|".join(pattern for pair in ALL_TAGS for pattern in pair.live), re.IGNORECASE
)


def _action(is_search: bool, held: str, reply: str, start: int) -> Plan | None:
    """Return the search or answer that tags contain; None for a placeholder, text with other tags, or a long search.

    Args:
        start: the offset of the action in the reply; the text before it is the plan's reason.
    """
    text = _plain(_HALF_CLOSED.sub("", held))
    place_holder = _NO_SEARCH if is_search else _NO_ANSWER
    if place_holder.fullmatch(text) or _ANY_TAG.search(text):
        return None
    thoughts = _THINKING.sub("", reply[:start]).strip()
    reason = thoughts[:_LONGEST_REASON]
    if not is_search:
        return Plan("sufficient", reason=reason, answer=text)
    if len(text) > _LONGEST_QUERY:
        return None
    return Plan("subq", text, reason)


def _plain(text: str) -> str:
    """Return a text as one line, without quotes around the whole."""
    line = " ".join(text.split())
    quoted = re.fullmatch(r'"\s*+([^"]*)"', line)
    if quoted is None:
        return line
    return quoted[1].rstrip()


_THINKING = re.compile(rf"</?(?:{'|'.join(THINKING_TAGS)})>", re.IGNORECASE)


# ---- actions in other forms

# matches a line without its markup; possessive quantifiers keep two parts from matching the same text
_CALL = re.compile(r"(?P<name>[A-Za-z_ ]++)[ \t]*+[\[(](?P<argument>.*)[\])]\Z")
_MARKUP = " \t*_`"
_SEARCHES = re.compile(r"search|retriev|look ?up|quer|wiki", re.IGNORECASE)
_FINISHES = re.compile(r"finish|answer|submit|final|done", re.IGNORECASE)
_STEPS = re.compile(
    "|".join(
        f"(?P<{name}>{mark.live})"
        for name, mark in (
            ("input", ACTION_INPUT),
            ("action", ACTION),
            ("answer", ANSWER),
            ("observation", OBSERVATION),
            ("thought", THOUGHT),
        )
    ),
    FLAGS,
)


def read_react(
    text: str, cut: bool, shown: str = "", retrievers: Collection[str] = ()
) -> Reading | None:
    """Return the first action of a ReAct reply.

        Action: Search[a query]        Action: search              Final Answer: an answer
        Action 2: Finish[an answer]    Action Input: a query

    Args:
        retrievers: names of retrievers, in lower case, that are actions too: "Action: neighbours[an entity]".
    """
    steps = list(_STEPS.finditer(text))
    tool = ""
    begins = 0
    for place, step in enumerate(steps):
        is_last = step is steps[-1]
        if step.lastgroup == "observation" or (is_last and cut):
            return None  # what follows an invented observation does not count
        end = len(text) if is_last else steps[place + 1].start()
        held = text[step.end() : end]
        line = first_line(held)
        if step.lastgroup != "input":
            begins = step.start()
        if step.lastgroup == "thought" or not line:
            continue
        argument = held
        if step.lastgroup == "action":
            tool, argument = _tool_and_argument(line)
        elif step.lastgroup == "input":
            argument = _argument(held) or line
        else:
            tool = "answer"
        retriever = tool.lower() if tool.lower() in retrievers else ""
        is_search = bool(retriever) or _is_search_tool(tool)
        if not argument or not (is_search or _FINISHES.search(tool)):
            continue
        if plan := _action(is_search, argument, text, step.start()):
            plan = replace(plan, retriever=retriever)
            return Reading(plan, begins, step.end() + len(held.rstrip()))
    return None


def _tool_and_argument(line: str) -> tuple[str, str]:
    """Split an action such as "Search[a query]" into tool and argument; without brackets the argument is ""."""
    bare = line.lstrip(_MARKUP).rstrip(f"{_MARKUP}.")
    call = _CALL.match(bare[:_LONGEST_LINE])
    if call:
        return call["name"].rstrip(), call["argument"]
    tool = _plain(line).strip(" *_`.")
    return tool, ""


def _is_search_tool(name: str) -> bool:
    if _FINISHES.fullmatch(name.strip()):
        return False
    return _SEARCHES.search(name) is not None


def read_tool_calls(text: str, cut: bool, shown: str = "") -> Reading | None:
    """Return the first tool call that searches or finishes. An answer in its own tags finishes too.

    A call is JSON with a name and arguments between `<tool_call>` tags, of which the closing one may be cut off.
    Other searches, in the same call or in complete calls after it, become searches to make at the same time.
    """
    opening, closing = TOOL_CALL_TAGS.live
    calls = re.finditer(
        rf"{opening}(?P<json>.*?)(?P<end>{closing}|(?={opening})|\Z)",
        text,
        FLAGS | re.DOTALL,
    )
    reading: Reading | None = None
    for call in calls:
        if cut and not call["end"] and call.end() == len(text):
            break
        name, given = named_call(call["json"])
        is_search = bool(_SEARCHES.search(name))
        if not is_search and not _FINISHES.search(name):
            continue
        plan = _plan_of_call(is_search, given, text, call.start())
        if plan is None:
            continue
        if reading is not None:
            if not is_search or not call["end"]:
                break
            further = (*reading.plan.further, *plan.subqueries)
            joined = replace(reading.plan, further=further)
            reading = Reading(joined, reading.start, call.end())
        elif call["end"]:
            reading = Reading(plan, call.start(), call.end())
        else:
            end = call.start("json") + len(call["json"].rstrip())
            return Reading(plan, call.start(), end, f"\n{TOOL_CALL_TAGS.closing}")
        if not is_search:
            break
    if reading is not None:
        return reading
    reading = read_tags(TOOL_CALL_TAGS, ANSWER_TAGS, text, cut)
    if reading is None or reading.plan.action != "sufficient":
        return None
    return reading


def _plan_of_call(is_search: bool, given: object, text: str, start: int) -> Plan | None:
    """Return the plan that a call's arguments state, with all searches if they are a list; None without a valid one."""
    plans = []
    for argument in _given_texts(given):
        plan = _action(is_search, argument, text, start)
        if plan is not None:
            plans.append(plan)
    if not plans:
        return None
    if not is_search:
        return plans[0]
    further = tuple([plan.subquery for plan in plans[1:]])
    return replace(plans[0], further=further)


def _given_texts(given: object) -> list[str]:
    """Return the texts in the first argument of a call, which may be JSON inside a text."""
    if not isinstance(given, str):
        return _texts(given)
    items = [item for _, item in json_objects(given)]
    return _texts(items) or [given.strip()]


def _argument(text: str) -> str:
    """Return the first text in the JSON objects of a text; "" if there is none."""
    items = [item for _, item in json_objects(text)]
    texts = _texts(items)
    return next(iter(texts), "")


def _texts(value: object) -> list[str]:
    """Return the texts in a JSON value.

    In an object only the first key with a text counts, as in {"query_list": ["..."]}.
    """
    if isinstance(value, str):
        return [value.strip()] if value.strip() else []
    if isinstance(value, dict):
        return next(filter(None, map(_texts, value.values())), [])
    if not isinstance(value, list):
        return []
    return list(chain.from_iterable(map(_texts, value)))


_QUERY_LABEL = re.compile(INTERMEDIATE_QUERY.live, FLAGS)


def read_subquery(text: str, cut: bool, shown: str = "") -> Reading | None:
    """Return the search in a CoRAG reply: its first line, without the label that a model may copy from the prompt."""
    start, end = spoken_span(text)
    line = first_line(text[start:end])
    if label := _QUERY_LABEL.match(line):
        line = line[label.end() :]
    subquery = _plain(line)
    has_words = any(map(str.isalnum, subquery))
    if cut or not has_words or len(subquery) > _LONGEST_QUERY:
        return None
    plan = Plan("subq", subquery)
    return Reading(plan, start, end)


def read_own(text: str, cut: bool, shown: str = "") -> Reading | None:
    """Return the plan of a reply in this project's own grammar; None if it states no plan."""
    try:
        return Reading(parse_plan(text, shown), *spoken_span(text))
    except ParseError:
        return None


# ---- the table

_TAGGED_FORM = (
    f"either {SEARCH_TAGS.around(' a query ')} or {ANSWER_TAGS.around(' the answer ')}"
)
_TAGGED_RETRY = (
    "\nMy previous action is invalid. If I want to search, I should put the query between <search> and </search>. If I "
    "want to give the final answer, I should put the answer between <answer> and </answer>. Let me try again.\n"
)
_TITLED = 'Doc {number}(Title: "{title}") {text}\n'


def _pasted(tags: Tags) -> tuple[str, str]:
    return f"\n\n{tags.opening}", f"{tags.closing}\n\n"


SEARCH_R1 = Dialect(
    "search-r1",
    prompt="plan-search-r1",
    read=partial(read_tags, SEARCH_TAGS, ANSWER_TAGS),
    write=lambda query: SEARCH_TAGS.around(f" {query} "),
    form=_TAGGED_FORM,
    stop=(SEARCH_TAGS.closing, ANSWER_TAGS.closing),
    rendering="continued",
    around=_pasted(INFORMATION_TAGS),
    passage=_TITLED,
    nothing="",
    retry=_TAGGED_RETRY,
    models=r"search[-_ ]?r1(?!.*tool)",
)
AUTOREFINE = replace(
    SEARCH_R1,
    name="autorefine",
    prompt="plan-autorefine",
    around=_pasted(DOCUMENTS_TAGS),
    models=r"auto[-_ ]?refine",
)
R1_SEARCHER = Dialect(
    "r1-searcher",
    prompt="plan-r1-searcher",
    read=partial(read_tags, QUERY_TOKENS, ANSWER_TAGS),
    write=lambda query: QUERY_TOKENS.around(f" {query} "),
    form=f"either {QUERY_TOKENS.around(' keywords ')} or {ANSWER_TAGS.around(' the answer ')}",
    stop=(QUERY_TOKENS.closing, ANSWER_TAGS.closing),
    rendering="continued",
    opening=" <think>",
    around=(f"\n\n{DOCUMENT_TOKENS.opening}\n", f"\n{DOCUMENT_TOKENS.closing}\n\n"),
    passage="({number})Title: {title} Text: {text}\n",
    nothing="None",
    models=r"r1[-_ ]?searcher|rag[-_]rl",
)
CORAG = Dialect(
    "corag",
    prompt="plan-corag",
    read=read_subquery,
    write=str,
    form="one simple question",
    rendering="rewritten",
    passage="{title}\n{text}\n\n",
    nothing="No relevant information found",
    digest="corag-answer",
    best_last=True,
    recognised_by_reply=False,
    models=r"co[-_]?rag\b|corag",
)
REACT = Dialect(
    "react",
    prompt="plan-react",
    read=read_react,
    write=lambda query: f"{ACTION} Search[{query}]",
    form=f"one line, either {ACTION} Search[a query] or {ACTION} Finish[the answer]",
    stop=(f"\n{OBSERVATION}",),
    around=(f"{OBSERVATION}\n", ""),
    passage="[{number}] {title}\n{text}\n",
    recognised_by_reply=False,
)
THINK_ON_GRAPH = Dialect(
    "think-on-graph",
    prompt="plan-think-on-graph",
    read=partial(read_react, retrievers=("neighbours", "paths")),
    write=lambda query: f"{ACTION} Search[{query}]",
    form=f"one line: {ACTION} neighbours[an entity], paths[two entities], Search[a query] or Finish[the answer]",
    stop=(f"\n{OBSERVATION}",),
    around=(f"{OBSERVATION}\n", ""),
    recognised_by_reply=False,
)
TOOL_JSON = Dialect(
    "tool-json",
    prompt="plan-tool-json",
    read=read_tool_calls,
    write=lambda query: TOOL_CALL_TAGS.around(f"\n{_search_call(query)}\n"),
    form=f"either a call of search between {TOOL_CALL_TAGS.opening} tags or {ANSWER_TAGS.around(' the answer ')}",
    stop=(TOOL_CALL_TAGS.closing,),
    around=(f"{TOOL_RESPONSE_TAGS.opening}\n", f"\n{TOOL_RESPONSE_TAGS.closing}"),
    passage=_TITLED,
)
OWN = Dialect(
    "ras",
    prompt="plan",
    read=read_own,
    write=lambda query: f"{SUBQ} {query}",
    form=FORM,
    around=(f"{FOUND}\n", ""),
    nothing="(nothing new)",
    recognised_by_reply=False,
)


def _search_call(query: str) -> str:
    arguments = {"query": query}
    call = {"name": "search", "arguments": arguments}
    return json.dumps(call, ensure_ascii=False)


def search_list(turns: Iterable[tuple[str, str]]) -> str:
    """Return searches and their answers as CoRAG's prompt lists them; "Nothing yet" without any.

    Args:
        turns: pairs of a search and the answer that the model read in its passages.
    """
    query = str(INTERMEDIATE_QUERY).removesuffix(":")
    answer = str(INTERMEDIATE_ANSWER).removesuffix(":")
    lines = []
    for number, (asked, read) in enumerate(turns, start=1):
        lines.append(f"{query} {number}: {asked}")
        lines.append(f"{answer} {number}: {read}")
    return "\n".join(lines) or "Nothing yet"
