"""Describes tools that search the question's graph and the corpus, and writes their results as text.

The same tools are offered by the planner that calls tools (ras_agent.tools.plan.tool_planner), by the environment
in which such planners are trained (ras_agent.gym), and by the server of the Model Context Protocol.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any, TypeVar

from ras_agent.contracts.records import JSON, Passage, Step
from ras_agent.prompts import as_line, fact_block, passage_block
from ras_agent.question_graph import QuestionGraph
from ras_agent.text.canonical import canonical_key

_Method = TypeVar("_Method", bound=Callable[..., Any])
MOST_LOOKS = 4
"""How often a model may look at neighbours or passages before it has to search or finish."""
RETRIEVER = "retriever"
"""The name of a search's argument that chooses the retriever."""
_NOTHING = "(nothing)"


@dataclass(frozen=True, slots=True)
class Tool:
    """Describes a tool to a model."""

    name: str
    about: str
    """The description of the tool's effect."""
    argument: str
    """The name of the required argument."""
    meaning: str
    """The description of the required argument."""
    more: tuple[tuple[str, str], ...] = ()
    """(name, description) of each optional argument."""
    retriever: str = ""
    """The name of the retriever that the tool searches with; "" for the agent's own."""
    choices: tuple[str, ...] = ()
    """The retrievers that a call may choose by the argument `retriever`."""

    def schema(self, *, everything: bool = False) -> JSON:
        """Return the tool in the form of OpenAI's chat API.

        Args:
            everything: whether optional arguments are included; planners use only the required one.
        """
        arguments = self.arguments if everything else self.arguments[:1]
        properties: JSON = {}
        for name, meaning in arguments:
            properties[name] = {"type": "string", "description": meaning}
        if self.choices:
            properties[RETRIEVER] = {
                "type": "string",
                "enum": list(self.choices),
                "description": about_choices(self.choices),
            }
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
        """Return (name, meaning) of each argument, the required one first."""
        needed = (self.argument, self.meaning)
        return (needed, *self.more)

    @property
    def searches(self) -> bool:
        """Return whether a call is a search. Its facts then join the question's graph."""
        return self.name == "search" or bool(self.retriever)

    def retriever_of(self, arguments: Mapping[str, object]) -> str:
        """Return the retriever that a call chooses; without a valid choice the tool's own, "" for the agent's."""
        chosen = arguments.get(RETRIEVER)
        if isinstance(chosen, str) and chosen.strip().lower() in self.choices:
            return chosen.strip().lower()
        return self.retriever


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
OF_CORPUS = (
    Tool(
        "neighbours",
        "Find the facts of the documents' graph about an entity; they join the graph of the question.",
        "entity",
        "The entity's name.",
        retriever="neighbours",
    ),
    Tool(
        "paths",
        "Find chains of facts between entities in the documents' graph; they join the graph of the question.",
        "entities",
        "The names of one or two entities, as in 'Alexander Graham Bell; Edinburgh'.",
        retriever="paths",
    ),
)
"""Tools that walk the knowledge graph of the index, if it has one; `neighbours` then counts as a search."""


MEANINGS: Mapping[str, str] = MappingProxyType(
    {
        "bm25": "by words",
        "dense": "by meaning",
        "ppr": "from the query's names along the facts of the graph",
        "gfm": "by a graph network that reads the query",
        "paths": "by chains of facts from the query's names",
        "pcst": "by a connected part of the graph",
        "kg-mix": "by the graph and by meaning together",
    }
)
"""How each retriever that a model may choose searches, in the words shown to the model."""


def tools_over(retrievers: Collection[str]) -> tuple[Tool, ...]:
    """Return the tools for an index with these retrievers, including those of its graph if it has one.

    >>> [tool.name for tool in tools_over(["bm25", "ppr", "paths", "neighbours"])]
    ['search', 'neighbours', 'read', 'finish', 'paths']
    """
    tools = {tool.name: tool for tool in TOOLS}
    choices = tuple(name for name in MEANINGS if name in retrievers)
    if len(choices) > 1:
        tools[SEARCH.name] = replace(SEARCH, choices=choices)
    for tool in OF_CORPUS:
        if tool.retriever in retrievers:
            tools[tool.name] = tool
    return tuple(tools.values())


def about_choices(names: Iterable[str]) -> str:
    """Return the description of the argument `retriever` for these retrievers."""
    ways = [f"{name} {MEANINGS[name]}" for name in names]
    return f"How to search: {', '.join(ways)}. Leave it out for the usual way."


def tool_of_retriever(name: str, about: str = "") -> Tool:
    """Return a tool that searches with one retriever and has its name.

    Args:
        about: the tool's description; by default made from the retriever's name.
    """
    if not about:
        way = MEANINGS.get(name, f"with {name}")
        about = f"Search the texts {way}; their facts join the graph of the question."
    return replace(SEARCH, name=name, about=about, retriever=name)


# names that models use for a tool's argument instead of its real name
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
    """Return the required argument of a call as one line of text; "" if it is missing.

    Numbers become text, and lists of texts are joined. The argument may stand under another usual key, or under any
    key if it is the call's only text.
    """
    for key in (tool.argument, *_OTHER_KEYS):
        if arguments.get(key) is not None:
            return argument_text(arguments[key])
    texts = []
    for key, value in arguments.items():
        if isinstance(value, str) and key != RETRIEVER:
            texts.append(value)
    if len(texts) != 1:
        return ""
    return argument_text(texts[0])


def argument_text(value: object) -> str:
    """Return an argument's value as one line of text; "" unless it is a text, a number or a list of these."""
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
    """Return a decorator that sets a method's docstring to the tool's description, in Google's style.

    Trainers build the schema that a model is shown from the method's signature and this docstring.
    """
    lines = [tool.about, "", "Args:"]
    for name, meaning in tool.arguments:
        lines.append(f"    {name}: {meaning}")
    if tool.choices:
        lines.append(f"    {RETRIEVER}: {about_choices(tool.choices)}")
    lines += ["", "Returns:", "    What the model is shown."]

    def decorate(method: _Method) -> _Method:
        method.__doc__ = "\n".join(lines)
        return method

    return decorate


def search_result(step: Step, graph: QuestionGraph, passages: Sequence[Passage]) -> str:
    """Return a search's result as text: the titles of the passages, numbered, and the facts that are new to the graph.

    Args:
        passages: all passages of the run; the number of a passage is its position there, from 1.
    """
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
    """Return the facts of the question's graph that name the entity, as text."""
    facts = graph.touching(canonical_key(entity))
    return (
        fact_block(facts)
        or "(no fact names this entity: take a name from the facts, or search)"
    )


def read_result(name: str, passages: Sequence[Passage]) -> str:
    """Return a passage as text, found among `passages` by its number (from 1), title or id."""
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
