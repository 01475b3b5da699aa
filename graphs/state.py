"""The state of a run: plain JSON under a few keys, each passage's text once; the conversation as LangChain messages.

Growing keys have reducers, so that a node returns only its additions. An update of None empties such a key: that is how
`begin` makes a thread ready for its next question.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, NotRequired

from langchain_core.messages import AnyMessage, MessageLikeRepresentation
from langgraph.channels import EphemeralValue
from langgraph.graph.message import add_messages
from langgraph.managed import RemainingSteps

# typing's own will do for pydantic, which makes JSON schemas, from Python 3.12
from typing_extensions import TypedDict

from ras_agent.question_graph import QuestionGraph
from ras_agent.records import JSON, Passage, Usage

Update = dict[str, Any]


def _extended(old: list[Any], new: Sequence[Any] | None) -> list[Any]:
    """Return `old` with `new` at its end."""
    if new is None:
        return []
    return [*old, *new]


def _first_wins(old: dict[str, Any], new: Mapping[str, Any] | None) -> dict[str, Any]:
    """Return `old` with the new keys of `new` at its end, so that keys are in the order of first retrieval.

    Passages of an earlier turn give way to new ones.
    """
    if new is None:
        return {}
    return {
        **old,
        **{
            key: value
            for key, value in new.items()
            if key not in old or old[key].get("recalled")
        },
    }


def _one_a_hop(old: list[JSON], new: Sequence[JSON] | None) -> list[JSON]:
    """Return `old` with the plans of `new` in place of those for the same hop, or at its end."""
    if new is None:
        return []
    hops = {plan["hop"] for plan in new}
    return [*(plan for plan in old if plan["hop"] not in hops), *new]


class Inputs(TypedDict, total=False):
    """Input of an agent: a question, or the messages of a conversation that ends with it.

    messages: LangChain messages, or their short forms: {"role": "user", "content": "..."}, ("user", "...").
    seed_passages: passages for the first hop, in place of its retrieval; after it the loop goes on as always.
    static_passages: the only passages; nothing is planned or retrieved (see static_iterations).
    static_iterations: hops over which static_passages are spread in order; 5 unless given, as in the RAS paper.
    filter: which passages may be found, {"team": "x"}, a list meaning any of its items (see ras_agent.filters). It
        narrows the agent's own `Settings.filter`, and cannot widen it.

    A passage is a `Passage`, its `to_dict()`, or just its text. Values that LangGraph calls ephemeral are there for the
    first node only, which leaves them under `scope`.
    """

    question: str
    messages: Sequence[MessageLikeRepresentation]
    seed_passages: Annotated[Sequence[Passage | JSON | str] | None, EphemeralValue]
    static_passages: Annotated[Sequence[Passage | JSON | str] | None, EphemeralValue]
    static_iterations: Annotated[int | None, EphemeralValue]
    filter: Annotated[JSON | list[JSON] | None, EphemeralValue]


class Outputs(TypedDict):
    """Output of an agent, of which a trace is made. See ras_agent.records for the shapes behind `JSON`."""

    question: str
    """the question that is answered, in words that need no earlier turn of a conversation"""
    asked: str
    """the question in the user's words, where it was a follow-up and has been rewritten; else empty"""
    answer: str
    citations: list[JSON]
    abstained: bool
    failed: str
    """why no answer could be made (Answer.failed); empty if one was made, also if the evidence holds none"""
    suggestion: str
    """of an answer that abstained: the answer that its citations suggest without being sure; else empty"""
    disputes: list[JSON]
    """Dispute.to_dict(): what other documents say than the answer"""
    grounded: bool
    """whether a cited sentence bears the answer, or may; false for one from the model's memory, and without one"""
    confidence: float | None
    graph: JSON
    """QuestionGraph.to_dict()"""
    steps: Annotated[list[JSON], _extended]
    """Step.to_dict(), one for each hop"""
    plans: Annotated[list[JSON], _one_a_hop]
    """Plan.to_dict() with the `hop` that it was made for; `thought` is true for a sentence of a chain of thought, `by`
    names the person who changed it"""
    passages: Annotated[dict[str, JSON], _first_wins]
    """Passage.to_dict() by id, in the order of hops, then of ranks within the hop; `recalled` is true for one that a
    store kept from an earlier turn, until it is found again"""
    usage: JSON
    """Usage.to_dict()"""
    stop_reason: str
    failures: Annotated[list[JSON], _extended]
    """Failure.to_dict()"""
    reviews: Annotated[list[JSON], _extended]
    """ras_agent.review.Reviewed.to_dict(): each decision of a person, and what it changed as it was before"""
    seconds: float
    """time spent inside nodes; a pause between them does not count"""
    messages: Annotated[list[AnyMessage], add_messages]
    """the conversation with its answer, an AIMessage whose additional_kwargs have `citations`; empty without `messages`
    in the input or on the thread"""

    structured_response: NotRequired[JSON | None]
    """the answer for a program, under the key that agents of LangChain have for it: `answer`, `citations` with number,
    title, file, page and quote, `confidence`, `abstained`, `suggestion`, `grounded`; where messages came in"""


class Question(TypedDict):
    """Input of a brief agent: one question."""

    question: str


class Told(TypedDict):
    """Output of a brief agent: the answer, and its evidence."""

    answer: str
    citations: list[JSON]
    abstained: bool


class Beginning(Inputs):
    """Input of the first node: the caller's input, and the values that the thread remembers."""

    turns: list[JSON]
    remaining_steps: RemainingSteps


class Scope(TypedDict):
    """Passages that a question may be answered from."""

    filter: JSON | list[JSON] | None
    given: list[list[JSON]]
    """passages that take the place of retrieval, for the next hop, the one after, ..."""
    static: bool
    """whether the given passages are all that there is"""
    commit: str
    """the state of the index that the first search saw, and the next ones see again; empty before"""


class State(Outputs):
    """The outputs so far, and the values that one node leaves for the next. `begin` sets every key."""

    turns: list[JSON]
    """Exchange.to_dict(): the thread's last answered questions, oldest first"""
    scope: Scope
    subquery: str
    """what to retrieve for next; empty when the loop has ended"""
    further: list[str]
    """what to retrieve for at the same time; each is a hop of its own, in this order"""
    hits: list[JSON]
    """this hop's hits, as a Step holds them; those of a search of `further` have its `hop`, too"""
    triples: list[JSON]
    """facts read in the passages of these hops"""
    read: list[str]
    """ids of passages whose facts are in the graph"""
    remaining_steps: RemainingSteps


class ReviewedState(State):
    """State of a graph in which a run waits for a person."""

    again: str
    """the node that the person sent the run back to; empty to go on. A review writes it before it is read"""


class Reads(TypedDict):
    """State that every node reads. The annotation of a node's body extends this by its further keys.

    LangGraph reads and checks each key for each node, so a node of the loop that names a few of them costs less.
    """

    question: str
    asked: str
    steps: list[JSON]
    seconds: float
    reviews: list[JSON]


class CallReads(Reads):
    """State that a node reads which calls a role: also the cost of the calls before it."""

    usage: JSON


def empty_state() -> Update:
    """Return an update that clears all that an earlier question left in the thread's state."""
    return {
        # keys with a reducer, which takes None for empty
        "steps": None,
        "plans": None,
        "passages": None,
        "failures": None,
        "reviews": None,
        # the answer
        "asked": "",
        "answer": "",
        "citations": [],
        "abstained": False,
        "failed": "",
        "suggestion": "",
        "disputes": [],
        "grounded": False,
        "confidence": None,
        "structured_response": None,
        "graph": QuestionGraph().to_dict(),
        "usage": Usage().to_dict(),
        "seconds": 0.0,
        # left by one node for the next
        "further": [],
        "hits": [],
        "triples": [],
        "read": [],
    }
