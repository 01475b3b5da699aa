"""The replies that the model of tests/engines/model has learnt by heart: to the prompts of the roles about four
questions of the sample.

The replies are written here, by whom the question is and how far it has got; the prompts are made by the package, by
running its agents with these replies. So a lesson changes when a prompt does.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Sequence
from typing import Any

from langchain_core.language_models.chat_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage, convert_to_openai_messages
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.runnables import Runnable
from pydantic import Field

from ras_agent import Settings, create_ras_agent, create_react_agent
from ras_agent.app.sample import sample_passages
from ras_agent.graphs.agent import Agent

SEARCHES: dict[str, tuple[str, ...]] = {
    "In which city was the inventor of dynamite born?": (
        "Where was Alfred Nobel born?",
    ),
    "In which town was the sculptor who designed the Statue of Liberty born?": (
        "In which town was Frédéric Auguste Bartholdi born?",
    ),
    "In what year was the creator of Git born?": ("When was Linus Torvalds born?",),
    "Which river flows through the city where the inventor of the telephone was born?": (
        "Where was Alexander Graham Bell born?",
        "Which river flows through Edinburgh?",
    ),
}
"""What is searched for each question, after the question itself, before its facts are enough."""

ANSWERS = {
    "In which city was the inventor of dynamite born?": (
        "Stockholm",
        "was born in | O> Stockholm",
    ),
    "In which town was the sculptor who designed the Statue of Liberty born?": (
        "Colmar",
        "was born in | O> Colmar",
    ),
    "In what year was the creator of Git born?": (
        "1969",
        "was born on | O> 28 December 1969",
    ),
    "Which river flows through the city where the inventor of the telephone was born?": (
        "Water of Leith",
        "flows through | O> Edinburgh",
    ),
}
"""The answer of each question, and what stands in the line of the fact that it cites."""

CALLED = "In what year was the creator of Git born?"
"""The question that is also asked of the agent whose planner calls tools."""

FACTS: dict[str, tuple[tuple[str, str, str], ...]] = {
    "Alfred Nobel": (
        ("Alfred Nobel", "was born in", "Stockholm"),
        ("Alfred Nobel", "invented", "dynamite"),
    ),
    "Dynamite": (
        ("Dynamite", "was invented by", "Alfred Nobel"),
        ("Dynamite", "was patented in", "1867"),
    ),
    "Statue of Liberty": (
        ("Statue of Liberty", "was designed by", "Frédéric Auguste Bartholdi"),
    ),
    "Frédéric Auguste Bartholdi": (
        ("Frédéric Auguste Bartholdi", "was born in", "Colmar"),
        ("Frédéric Auguste Bartholdi", "made", "Lion of Belfort"),
    ),
    "Gustave Eiffel": (("Gustave Eiffel", "was born in", "Dijon"),),
    "Git": (("Git", "was created by", "Linus Torvalds"),),
    "Linus Torvalds": (
        ("Linus Torvalds", "was born in", "Helsinki"),
        ("Linus Torvalds", "was born on", "28 December 1969"),
    ),
    "Linux": (("Linux", "has a kernel by", "Linus Torvalds"),),
    "Telephone": (("Telephone", "was patented by", "Alexander Graham Bell"),),
    "Alexander Graham Bell": (("Alexander Graham Bell", "was born in", "Edinburgh"),),
    "Water of Leith": (
        ("Water of Leith", "flows through", "Edinburgh"),
        ("Water of Leith", "enters", "Firth of Forth"),
    ),
}
"""The facts that are read in a passage, by its title; in those of other titles none is."""


class Teacher(BaseChatModel):
    """Chat model that gives the replies above, and keeps its requests.

    lessons: the messages of each prompt, as a server gets them, with the reply as the model writes it.
    """

    lessons: list[dict[str, Any]] = Field(default_factory=list)
    tools: tuple[Any, ...] = ()

    @property
    def _llm_type(self) -> str:
        return "teacher"

    def bind_tools(
        self, tools: Sequence[Any], **options: Any
    ) -> Runnable[Any, AIMessage]:
        """Return the teacher that calls tools; it keeps its lessons with this one's."""
        return self.model_copy(update={"tools": tuple(tools)})

    def _generate(
        self, messages: list[BaseMessage], *args: Any, **kwargs: Any
    ) -> ChatResult:
        system, user = str(messages[0].content), str(messages[1].content)
        question = next((one for one in SEARCHES if one in user), "")
        if self.tools:
            reply = _call(question, sum(message.type == "tool" for message in messages))
        elif system.startswith("You read passages"):
            reply = AIMessage(_facts(user))
        elif system.startswith("You steer"):
            reply = AIMessage(_plan(question, user.count("[SUBQ]")))
        else:
            reply = AIMessage(_answer(question, user))
        self.lessons.append(
            {"messages": convert_to_openai_messages(messages), "reply": written(reply)}
        )
        return ChatResult(generations=[ChatGeneration(message=reply)])


def _plan(question: str, count: int) -> str:
    searches = (question, *SEARCHES[question])
    return f"[SUBQ] {searches[count]}" if count < len(searches) else "[SUFFICIENT]"


def _call(question: str, count: int) -> AIMessage:
    searches = (question, *SEARCHES[question])
    name, args = (
        ("search", {"query": searches[count]})
        if count < len(searches)
        else ("finish", {"reason": "known"})
    )
    return AIMessage(
        "", tool_calls=[{"name": name, "args": args, "id": f"call_{count + 1}"}]
    )


def _facts(user: str) -> str:
    titles = re.findall(r"(?m)^\[\d+\] (.+)$", user)
    lines = [
        f"(S> {s} | P> {p} | O> {o})"
        for title in titles
        for s, p, o in FACTS.get(title, ())
    ]
    return "\n".join(lines) or "[NONE]"


def _answer(question: str, user: str) -> str:
    answer, fact = ANSWERS[question]
    number = re.findall(rf"(?m)^\[(\d+)\] .*{re.escape(fact)}", user)[0]
    return f"Answer: {answer} [{number}]"


def written(message: AIMessage) -> str:
    """Return a reply as the model writes it: a call of a tool as Hermes' models do."""
    calls = [
        json.dumps({"name": call["name"], "arguments": call["args"]})
        for call in message.tool_calls
    ]
    return "\n".join(f"<tool_call>\n{call}\n</tool_call>" for call in calls) or str(
        message.content
    )


def agents(model: object, **settings: Any) -> dict[str, Agent]:
    """Return an agent of each graph that was taught, over the sample, whose roles are all on a model."""
    made = {"ras": create_ras_agent, "react": create_react_agent}
    # 0 for the answerer, too: an engine's own temperature draws another word once in some hundred answers
    options: dict[str, Any] = {
        "index": sample_passages(),
        "settings": Settings(k=2, temperature=0.0, **settings),
    }
    roles: dict[str, Any] = dict.fromkeys(("planner", "extractor", "answerer"), model)
    return {name: create(**options, **roles) for name, create in made.items()}


def asked() -> list[tuple[str, str]]:
    """Return the request: the graph's name and the question."""
    return [*(("ras", question) for question in SEARCHES), ("react", CALLED)]


def lessons() -> list[dict[str, Any]]:
    """Return the lessons, each prompt once, in the order in which they are first asked."""
    teacher = Teacher()
    taught = agents(teacher)
    for graph, question in asked():
        taught[graph].invoke({"question": question})
    return list({json.dumps(one["messages"]): one for one in teacher.lessons}.values())


def fingerprint(of: list[dict[str, Any]]) -> str:
    """Return a hash of lessons, by which a model is known to have learnt these."""
    return hashlib.sha256(
        json.dumps(of, ensure_ascii=False, sort_keys=True).encode()
    ).hexdigest()
