"""Small scripted roles; none of them has state, so one set may serve many runs at once."""

from collections.abc import Callable
from types import SimpleNamespace

import pytest

from ras_agent import create_ras_agent
from ras_agent.contracts.records import (
    Answer,
    Call,
    Citation,
    Extraction,
    Hit,
    Passage,
    Plan,
    Source,
    Triple,
)
from ras_agent.running.budget import current_ledger


class ScriptedPlanner:
    """Plan number n for a run that has n steps; strings are sub-queries, exceptions are raised."""

    def __init__(self, *script):
        self.script = script

    def plan(self, question, graph, steps):
        now = self.script[min(len(steps), len(self.script) - 1)]
        if isinstance(now, Exception):
            raise now
        return Plan("subq", now) if isinstance(now, str) else now


class EchoRetriever:
    """Two passages on whatever is asked, each with one fact, unless the script knows better."""

    def __init__(self, script=None):
        self.script = script or {}

    def retrieve(self, query, k=5):
        found = self.script.get(query, [f"{query} A", f"{query} B"])
        if isinstance(found, Exception):
            raise found
        return [
            Hit(Passage(name, f"{name} is a thing.", name), 2.0 - rank)
            for rank, name in enumerate(found)
        ]


class SentenceExtractor:
    """One fact a passage, "<id> is a thing", unless the script holds an Extraction or exception for the sub-query."""

    def __init__(self, script=None):
        self.script = script or {}

    def extract(self, passages, subquery=""):
        now = self.script.get(subquery)
        if isinstance(now, Exception):
            raise now
        return now or Extraction(
            tuple(
                Triple(
                    p.id,
                    "is",
                    "a thing",
                    (Source(p.id, 0, len(p.text), extractor="test"),),
                )
                for p in passages
            )
        )


class CountingAnswerer:
    """Says how much it was given and cites the first fact."""

    def answer(self, question, graph, passages, steps):
        citations = tuple(
            Citation(1, fact.sources[0].passage_id, triple_ids=(fact.id,))
            for fact in graph.facts[:1]
        )
        return Answer(
            f"{len(graph)} facts, {len(passages)} passages", citations, confidence=0.5
        )


class Metered:
    """A role behind a model: each call of a method is admitted, costs 100 tokens, and is recorded."""

    def __init__(self, role):
        self._role = role

    def __getattr__(self, name):
        method = getattr(self._role, name)

        def call(*args):
            ledger = current_ledger()
            ledger.admit()
            ledger.record(
                Call(
                    ledger.role,
                    ledger.hop,
                    "test-model",
                    input_tokens=90,
                    output_tokens=10,
                )
            )
            return method(*args)

        return call

    # isinstance(role, Protocol) looks for the methods on the object without __getattr__ on Python 3.12 and later
    def plan(self, *args):
        return self.__getattr__("plan")(*args)

    def extract(self, *args):
        return self.__getattr__("extract")(*args)

    def answer(self, *args):
        return self.__getattr__("answer")(*args)

    def next_sentence(self, *args):
        return self.__getattr__("next_sentence")(*args)


def untimed(out):
    """An output without its durations."""
    return {
        **out,
        "steps": [{**step, "seconds": 0} for step in out["steps"]],
        "seconds": 0,
    }


def of_role(out, role):
    """The failures of one role; the answers here are counts, which no sentence bears."""
    return [failure for failure in out["failures"] if failure["role"] == role]


SUFFICIENT = Plan("sufficient", reason="enough")


@pytest.fixture
def fakes():
    return SimpleNamespace(
        ScriptedPlanner=ScriptedPlanner,
        EchoRetriever=EchoRetriever,
        SentenceExtractor=SentenceExtractor,
        CountingAnswerer=CountingAnswerer,
        Metered=Metered,
        SUFFICIENT=SUFFICIENT,
        untimed=untimed,
        of_role=of_role,
    )


@pytest.fixture
def ras() -> Callable:
    """ras(*script, **overrides): a RAS agent whose planner follows the script."""

    def build(*script, **overrides):
        roles = {
            "planner": ScriptedPlanner(*script),
            "retriever": EchoRetriever(),
            "extractor": SentenceExtractor(),
            "answerer": CountingAnswerer(),
        }
        return create_ras_agent(**{**roles, **overrides})

    return build
