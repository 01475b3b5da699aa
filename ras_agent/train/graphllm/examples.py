"""Makes training examples of a GraphLLM from samples: the prompts of planner and answerer, and the replies to learn."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from ras_agent.contracts.errors import ParseError
from ras_agent.contracts.graph_batch import GraphFeatures
from ras_agent.contracts.marks import NUMBER
from ras_agent.contracts.records import EvidenceLayout, Step, Triple, passages_found
from ras_agent.eval.metrics.answers import exact_match
from ras_agent.prompts import Turn, fact_line
from ras_agent.question_graph import QuestionGraph
from ras_agent.text.overlap import holds, support
from ras_agent.tools.answer.citations import read_citations
from ras_agent.tools.answer.forms import answer_part
from ras_agent.tools.answer.llm import LLMAnswerer
from ras_agent.tools.chat.call import Request
from ras_agent.tools.chat.client import Chat, ChatSettings
from ras_agent.tools.chat.dialogue import Dialogue
from ras_agent.tools.graph_tokens.fact_orders import FactPruner
from ras_agent.tools.graph_tokens.features import Fact, GraphVectors
from ras_agent.tools.plan.grammar import parse_plan
from ras_agent.tools.plan.llm import LLMPlanner
from ras_agent.train.subq import SubqSample

PROMPTS = Path(__file__).parent / "prompts"
"""The prompts for trained models, which are shorter than those for models that were not trained on them."""

INSTRUCTIONS = {"short": PROMPTS, "paper": PROMPTS / "paper"}
"""The folders of prompts: the short ones, and those that reproduce the content of RAS's instructions (Fig. 15 and
16)."""

_NUMBERED = re.compile(rf"^({NUMBER.live}) (.*)$", re.MULTILINE)
_MOST_CITED = 2


class GraphLLMExample(Protocol):
    """Holds a prompt, the graph that is read with it, and the reply to learn."""

    @property
    def turns(self) -> tuple[Turn, ...]:
        """Return the prompt."""
        ...

    @property
    def reply(self) -> str:
        """Return the reply to learn."""
        ...

    def features(self, vectors: GraphVectors) -> GraphFeatures:
        """Return the graph as arrays for a graph encoder. `vectors` embeds the texts of nodes and edges."""
        ...

    def scores(self, reply: str) -> Mapping[str, float]:
        """Return the scores of a model's reply by name, each from 0 to 1."""
        ...


@dataclass(frozen=True, slots=True)
class RoleExample:
    """Holds an example of a planner's or an answerer's prompt."""

    sample: SubqSample
    turns: tuple[Turn, ...]
    graph: tuple[tuple[Fact, ...], ...]
    """The facts of each search."""
    reply: str
    """For an answerer, the answer with the numbers of the facts that contain it."""

    def features(self, vectors: GraphVectors) -> GraphFeatures:
        """Return the graph as arrays for a graph encoder, with a sub-graph for each search."""
        return vectors.of_steps(self.graph)

    def scores(self, reply: str) -> Mapping[str, float]:
        """Return the scores of a reply, which is parsed as planner and answerer do."""
        if self.sample.kind == "answer":
            answer = read_citations(answer_part(reply, prose=False), {}).bare
            return {"answers": exact_match(answer, self.sample.answers)}
        try:
            action: str = parse_plan(reply).action
        except ParseError:
            action = ""
        return {
            "actions": float(action == self.sample.label),
            "plans": float(reply.strip() == self.reply),
        }


class ExampleMaker:
    """Makes training examples from samples. The roles' own code renders and cuts the prompts, as in the loop.

    Args:
        window: The maximum number of tokens of a prompt with its reply.
        layout: How the graph is shown as text.
        prompts: The folder of the prompts.
        citations: Whether answers cite the facts of the last search that contain them.
        pruner: Chooses the facts that are shown, as in the loop; None to show all.
    """

    def __init__(
        self,
        window: int,
        layout: EvidenceLayout = "chain",
        prompts: Path = PROMPTS,
        *,
        citations: bool = True,
        pruner: FactPruner | None = None,
    ) -> None:
        from langchain_core.language_models.fake_chat_models import FakeListChatModel

        # a model that is never called: only the roles' first requests are used
        chat = Chat(
            FakeListChatModel(responses=[]),
            settings=ChatSettings(context_window=window),
        )
        self._planner = LLMPlanner(chat, layout=layout, prompts_dir=prompts)
        self._answerer = LLMAnswerer(chat, layout=layout, prompts_dir=prompts)
        self._cites = citations
        self._pruner = pruner
        self._examples: dict[str, RoleExample] = {}

    def asks(self, sample: SubqSample) -> bool:
        """Tell whether the role of a sample calls its model. An answerer without facts to show does not."""
        return (
            sample.kind == "plan"
            or not sample.steps
            or any(step.triples for step in sample.steps)
        )

    def example(self, sample: SubqSample) -> RoleExample:
        """Return the example of a sample, whose role must call its model (see `asks`). Examples are cached."""
        if sample.id not in self._examples:
            self._examples[sample.id] = self._make(sample)
        return self._examples[sample.id]

    def _make(self, sample: SubqSample) -> RoleExample:
        graph, steps = sample.as_run()
        if self._pruner is not None:
            graph = self._pruner.prune(sample.question, graph, steps)
        if sample.kind == "plan":
            request = _first(self._planner.dialogue(sample.question, graph, steps))
        else:
            passages = passages_found(steps)
            request = _first(
                self._answerer.dialogue(sample.question, graph, passages, steps)
            )
        reply = sample.target
        if sample.kind == "answer" and self._cites and steps:
            reply += _citations(
                reply, _facts(graph, steps[-1]), steps[-1].subquery, request.turns
            )
        graph_facts = tuple(
            tuple((fact.subject, fact.predicate, fact.object) for fact in facts)
            for facts in request.graph
        )
        return RoleExample(sample, request.turns, graph_facts, reply)


def _facts(graph: QuestionGraph, step: Step) -> list[Triple]:
    return [graph.by_id[name] for name in step.triple_ids if name in graph.by_id]


def _first(dialogue: Dialogue[Any]) -> Request:
    """Return the first request of a role's dialogue."""
    request = next(dialogue)
    dialogue.close()
    return request


def _citations(
    answer: str, facts: Sequence[Triple], subquery: str, turns: Sequence[Turn]
) -> str:
    """Return the numbers by which a prompt shows the facts that contain the answer, best first; "" if there are none.

    The subject or the object of such a fact contains the answer. Facts that share more words with the sub-query are
    better.
    """
    numbers = {
        line: number for turn in turns for number, line in _NUMBERED.findall(turn.text)
    }
    holding = []
    for fact in facts:
        in_ends = holds(fact.subject, answer) or holds(fact.object, answer)
        if in_ends and fact_line(fact) in numbers:
            holding.append(fact)
    holding.sort(
        key=lambda fact: (
            -support(
                f"{fact.subject} {fact.predicate} {fact.object}", (answer, subquery)
            )
        )
    )
    marks = "".join(numbers[fact_line(fact)] for fact in holding[:_MOST_CITED])
    if marks:
        return f" {marks}"
    return ""
