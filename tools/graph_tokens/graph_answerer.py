"""Answers by a model of `ras_agent.train.graphqa`, which reads the question's graph as in that model's training."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from pathlib import Path

from ras_agent.contracts.errors import needs_extra
from ras_agent.contracts.records import Answer, Failure, Passage, Step, Triple
from ras_agent.question_graph import QuestionGraph
from ras_agent.running.budget import current_ledger
from ras_agent.text.canonical import canonical_key
from ras_agent.tools.answer.citations import NumberedEvidence
from ras_agent.tools.answer.forms import answer_part
from ras_agent.tools.chat.call import Request
from ras_agent.tools.chat.client import Chat, ChatSettings
from ras_agent.tools.chat.dialogue import Dialogue, aconverse, converse
from ras_agent.tools.graph_tokens.chat import GraphLLMChat
from ras_agent.tools.graph_tokens.graph_reader import GraphInput, GraphReader
from ras_agent.tools.roles import RoleOptions
from ras_agent.tools.subgraph.graph import Graph

_NO_FACTS = "I don't know: no facts were read in what was found."
_NO_ANSWER = "I don't know."


class GraphQAAnswerer:
    """Shows a GraphReader the facts of a run, and returns its answer (G-Retriever, Align-GRAG).

    Steiner tree, aligner and prompt are those of the reader's training. The answer cites the passages with shown
    facts that share most words with answer and question. Without facts it abstains.
    """

    def __init__(
        self, reader: GraphReader, name: str, settings: ChatSettings | None = None
    ) -> None:
        """Take the reader, and its name in traces."""
        self._prompts = reader.prompts
        model = GraphLLMChat(reader.model, name)
        self._chat = Chat(model, name, settings)

    @property
    def name(self) -> str:
        """Return the model's name."""
        return self._chat.name

    def answer(
        self,
        question: str,
        graph: QuestionGraph,
        passages: Sequence[Passage],
        steps: Sequence[Step],
    ) -> Answer:
        """Return the answer. Raises ModelCallError if the call fails, and BudgetExceeded if the run's budget forbids
        it.
        """
        dialogue = self.dialogue(question, graph, passages)
        return converse(self._chat, dialogue)

    async def aanswer(
        self,
        question: str,
        graph: QuestionGraph,
        passages: Sequence[Passage],
        steps: Sequence[Step],
    ) -> Answer:
        """Return the same as `answer`, as a coroutine."""
        dialogue = self.dialogue(question, graph, passages)
        return await aconverse(self._chat, dialogue)

    def dialogue(
        self, question: str, graph: QuestionGraph, passages: Sequence[Passage]
    ) -> Dialogue[Answer]:
        """Return the conversation with the model about the part of the graph that it would have been shown in
        training.
        """
        if not graph.facts:
            return Answer(_NO_FACTS, abstained=True)
        view = self._prompts.view
        whole = Graph.from_triples(graph.facts)
        item = self._prompts.input(question, whole)
        shown = tuple(_shown_facts(graph.facts, item))
        reply = yield Request(
            item.turns,
            max_tokens=view.reply_tokens,
            graph=(shown,),
        )
        text = answer_part(reply.text, prose=False, listed=view.cite).strip()
        if not text:
            text = reply.text.strip()
        if not text:
            problem = "the model's reply was empty"
            failure = Failure("answerer", problem, current_ledger().hop)
            return Answer(
                _NO_ANSWER, abstained=True, failed=problem, failures=(failure,)
            )
        evidence = NumberedEvidence(facts=shown, unshown=tuple(passages))
        return Answer(text, evidence.supporting(text, question))


def graphqa_answerer(folder: str, options: RoleOptions) -> GraphQAAnswerer:
    """Build the answerer "graphqa:FOLDER", for a folder made by `ras_agent.train.graphqa.train`.

    Raises WeightsError for a folder without such a model, and MissingExtra without the packages of the extra `llm`.
    """
    reader = _load_once(Path(folder).expanduser())
    return GraphQAAnswerer(reader, f"graphqa:{folder}", options.chat)


@cache
def _load_once(folder: Path) -> GraphReader:
    with needs_extra("a model that reads graphs", "llm"):
        return GraphReader.load(folder)


def _shown_facts(facts: Sequence[Triple], item: GraphInput) -> list[Triple]:
    """Return the facts whose edges are in the part of the graph that the prompt shows."""
    shown = set()
    for source, relation, target in item.edges:
        texts = (item.nodes[source], relation, item.nodes[target])
        shown.add(tuple(map(canonical_key, texts)))
    kept = []
    for fact in facts:
        texts = (fact.subject, fact.predicate, fact.object)
        if tuple(map(canonical_key, texts)) in shown:
            kept.append(fact)
    return kept
