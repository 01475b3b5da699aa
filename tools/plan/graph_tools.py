"""The four tools of a search over the question's graph: the description that a model sees, and the result as text.

A planner that calls tools (ras_agent.tools.plan.tool_planner) and the environment that such planners are trained in
(ras_agent.gym) offer the same tools, so both describe and render them here.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from ras_agent.prompts import as_line, fact_block, passage_block
from ras_agent.question_graph import QuestionGraph
from ras_agent.records import JSON, Passage, Step
from ras_agent.text.canonical import canonical_key

_Method = TypeVar("_Method", bound=Callable[..., Any])
MOST_LOOKS = 4
"""How often a model may look at neighbours and passages before it has to decide."""
_NOTHING = "(nothing)"


@dataclass(frozen=True, slots=True)
class Tool:
    """A tool as it is described to a model.

    argument: the one that every call has. more: (name, meaning) of arguments that a call may leave out.
    """

    name: str
    about: str
    argument: str
    meaning: str
    more: tuple[tuple[str, str], ...] = ()

    def schema(self, *, everything: bool = False) -> JSON:
        """Return the tool in the form of OpenAI's chat API: with its one needed argument, or with all of them."""
        arguments = self.arguments if everything else self.arguments[:1]
        properties = {}
        for name, meaning in arguments:
            properties[name] = {"type": "string", "description": meaning}
        return {
            "type": "function",
            "function": {
                "name": self.name,
                "description": self.about,
                "parameters": {
                    "type": "object",
                    "properties": properties,
                    "required": [self.argument],
                },
            },
        }

    @property
    def arguments(self) -> tuple[tuple[str, str], ...]:
        """Return (name, meaning) of each argument, the needed one first."""
        needed = (self.argument, self.meaning)
        return (needed, *self.more)


SEARCH = Tool(
    "search",
    "Search the texts; their facts join the graph of the question.",
    "query",
    "What to search for.",
)
NEIGHBOURS = Tool(
    "neighbours",
    "List the facts of the graph about an entity.",
    "entity",
    "The entity's name.",
)
READ = Tool(
    "read",
    "Show a passage that a search has found, whole.",
    "passage",
    "The passage's title or number.",
)
FINISH = Tool(
    "finish",
    "End the research: the evidence settles the whole question.",
    "reason",
    "Why it is enough.",
    (
        (
            "answer",
            "The answer in a few words, with the numbers of the passages that state it, as in 'Leith [2]'. Somebody "
            "else writes it where it is left out.",
        ),
    ),
)

TOOLS = (SEARCH, NEIGHBOURS, READ, FINISH)


# names by which models call the argument of a tool instead of its own
_OTHER_KEYS = (
    "q",
    "question",
    "text",
    "input",
    "search_query",
    "keywords",
    "title",
    "number",
    "name",
    "value",
    "",
)


def argument_of(tool: Tool, arguments: Mapping[str, object]) -> str:
    """Return the argument of a call as one line of text; "" without one.

    A number is its text, several texts are one. Under another key it is read where the key is a usual one, or where
    the call has no other text.
    """
    for key in (tool.argument, *_OTHER_KEYS):
        if arguments.get(key) is not None:
            return argument_text(arguments[key])
    texts = [value for value in arguments.values() if isinstance(value, str)]
    if len(texts) != 1:
        return ""
    return argument_text(texts[0])


def argument_text(value: object) -> str:
    """Return the argument of a call as one line of text; "" for anything but a text, a number or a list of them."""
    if isinstance(value, list):
        return "; ".join(filter(None, map(argument_text, value)))
    if isinstance(value, str):
        return " ".join(value.split())
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return str(value)
    return ""


def documented(tool: Tool) -> Callable[[_Method], _Method]:
    """Return a decorator that gives a method the tool's description as its docstring, in Google's form.

    Trainers make the schema that a model is shown of the method's signature and this docstring.
    """
    lines = [tool.about, "", "Args:"]
    for name, meaning in tool.arguments:
        lines.append(f"    {name}: {meaning}")
    lines += ["", "Returns:", "    What the model is shown."]

    def decorate(method: _Method) -> _Method:
        method.__doc__ = "\n".join(lines)
        return method

    return decorate


def search_result(step: Step, graph: QuestionGraph, passages: Sequence[Passage]) -> str:
    """Render a search's result: titles with their numbers in `passages`, from 1, and the facts new to the graph."""
    if not step.hits:
        return _NOTHING
    ids = [passage.id for passage in passages]
    lines = ["Passages:"]
    for hit in step.hits:
        number = ids.index(hit.passage.id) + 1
        lines.append(f"[{number}] {as_line(hit.passage.title or hit.passage.id)}")
    new = graph.with_ids(step.new_triple_ids)
    lines += ["New facts:", fact_block(new) or _NOTHING]
    return "\n".join(lines)


def neighbours_result(entity: str, graph: QuestionGraph) -> str:
    """Render the facts of the graph that name the entity."""
    facts = graph.touching(canonical_key(entity))
    return (
        fact_block(facts)
        or "(no fact names this entity: take a name from the facts, or search)"
    )


def read_result(name: str, passages: Sequence[Passage]) -> str:
    """Render the passage of `passages` with that number, title or id."""
    bare = name.strip("[](){}#. ")
    number = re.sub(r"\A(?:passage|no)\b\.?\s*", "", bare, flags=re.IGNORECASE).strip(
        "[]()#. "
    )
    key = canonical_key(name)
    for place, passage in enumerate(passages, start=1):
        names = (canonical_key(passage.title), canonical_key(passage.id))
        if number == str(place) or key in names:
            return passage_block([passage], place)
    return "(no such passage was found: take a title or number from a search's result)"
