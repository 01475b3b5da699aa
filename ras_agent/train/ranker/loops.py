"""What the agent as users make it finds for training questions, over retrievers that find more than BM25 does.

Its planner and its answerer name a question's descriptions with a ranker. That is one that has not seen the question:
what a ranker names for questions it was trained on is right too often.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from ras_agent import create_ras_agent
from ras_agent.question_graph import QuestionGraph
from ras_agent.records import Answer, Passage
from ras_agent.tools.index.store import PassageIndex
from ras_agent.tools.kg.build import build_graph
from ras_agent.tools.offline.answerer.answer import OfflineAnswerer
from ras_agent.tools.offline.answerer.chain import ChainAnswerer
from ras_agent.tools.offline.answerer.rank import Ranker
from ras_agent.tools.offline.chain_planner import ChainPlanner
from ras_agent.tools.offline.planner import OfflinePlanner
from ras_agent.train.ranker.examples import Found, RankerQuestion

__all__ = ["found_over", "searchable"]


def searchable(folder: Path, passages: Sequence[Passage], embedder: object = "minilm") -> PassageIndex:
    """The passages' index with vectors and a knowledge graph, in `folder`; a call that was killed is taken up.

    embedder: as `PassageIndex.create` takes it. Raises what that, `open` and `build_graph` raise.
    """
    known = PassageIndex.exists(folder)
    index = PassageIndex.open(folder, embedder) if known else PassageIndex.create(folder, embedder)
    index.upsert(passages)
    build_graph(folder, embedder=embedder)
    return index


def found_over(
    index: PassageIndex, retriever: str, asked: Iterable[RankerQuestion], rankers: Sequence[Ranker]
) -> Iterator[Found]:
    """Run the RAS loop over `retriever`; the links of a question of group n are named by ranker n modulo their number.

    What is found is told as the ranker is asked for it: names stand in the question for its descriptions, and the
    passages are those that speak of the last of them.
    """
    search = index.retriever(retriever)
    for one in asked:
        namer = OfflineAnswerer(ranker=rankers[one.group % len(rankers)])
        last = _Last()
        planner, answerer = ChainPlanner(namer, OfflinePlanner()), ChainAnswerer(namer, last)
        create_ras_agent(planner=planner, answerer=answerer, retriever=search).invoke({"question": one.question})
        assert last.question, f"the agent did not answer {one.question!r}"
        yield Found(replace(one, question=last.question), last.graph, last.passages)


class _Last:
    """Keeps what the last answerer is given."""

    question = ""
    graph = QuestionGraph()
    passages: tuple[Passage, ...] = ()

    def answer(self, question: str, graph: QuestionGraph, passages: Sequence[Passage]) -> Answer:
        self.question, self.graph, self.passages = question, graph, tuple(passages)
        return Answer("recorded")
