"""Defines the state of a run: plain JSON under a few keys, with each passage's text only once, and LangChain
messages.

Keys whose lists grow have reducers, so a node returns only new items. An update of None empties such a key:
this is how `begin` prepares a thread for its next question.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, NotRequired

from langchain_core.messages import AnyMessage, MessageLikeRepresentation
from langgraph.channels import EphemeralValue
from langgraph.graph.message import add_messages
from langgraph.managed import RemainingSteps

# pydantic, which makes JSON schemas, accepts typing's own TypedDict only from Python 3.12
from typing_extensions import TypedDict

from ras_agent.contracts.records import JSON, Passage, Usage
from ras_agent.question_graph import QuestionGraph

Update = dict[str, Any]


def _extended(old: list[Any], new: Sequence[Any] | None) -> list[Any]:
    """Return `old` with `new` appended; [] if `new` is None."""
    if new is None:
        return []
    return [*old, *new]


def _first_wins(old: dict[str, Any], new: Mapping[str, Any] | None) -> dict[str, Any]:
    """Return `old` with the keys of `new` that it lacks, in the order of first retrieval; {} if `new` is None.

    Passages that were recalled from an earlier turn are replaced by retrieved ones.
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
    """Return `old` with the plans of `new`; a new plan replaces an old one for the same hop. [] if `new` is
    None.
    """
    if new is None:
        return []
    hops = {plan["hop"] for plan in new}
    return [*(plan for plan in old if plan["hop"] not in hops), *new]


class Inputs(TypedDict, total=False):
    """Describes the input of an agent: a question, or the messages of a conversation that ends with it.

    A passage is a `Passage`, its `to_dict()`, or just its text. Keys marked as ephemeral can be read only by
    the first node, which stores their values under `scope`.
    """

    question: str
    messages: Sequence[MessageLikeRepresentation]
    """LangChain messages, or their short forms: {"role": "user", "content": "..."}, ("user", "...")."""
    seed_passages: Annotated[Sequence[Passage | JSON | str] | None, EphemeralValue]
    """Passages for the first hop, instead of a search; after it the loop continues as usual."""
    static_passages: Annotated[Sequence[Passage | JSON | str] | None, EphemeralValue]
    """The only passages of the run, which then neither plans nor retrieves (see static_iterations)."""
    static_iterations: Annotated[int | None, EphemeralValue]
    """The number of hops over which static_passages are spread in order; by default 5, as in the RAS paper."""
    filter: Annotated[JSON | list[JSON] | None, EphemeralValue]
    """Restricts which passages may be found, such as {"team": "x"}; a list means any of its items (see
    ras_agent.config.filters). It can narrow the agent's own `Settings.filter` but not widen it. """
    as_of: Annotated[str | None, EphemeralValue]
    """A date, such as "2016-05-01". Passages with a later date, and facts that are known to hold only at other times,
    are left out; planner and answerer are shown the date."""


class Outputs(TypedDict):
    """Describes the output of an agent, from which a trace is made. See ras_agent.contracts.records for the shapes of the
    `JSON` values.
    """

    question: str
    """The question that is answered, in words that need no earlier turn of a conversation."""
    asked: str
    """The question in the user's words, if it was a follow-up question that was rewritten; else "\""""
    answer: str
    citations: list[JSON]
    abstained: bool
    failed: str
    """Why no answer could be made (Answer.failed); "" if there is an answer, or if only evidence was missing."""
    suggestion: str
    """If the answer abstained, the answer that the citations suggest; else "\""""
    disputes: list[JSON]
    """Dispute.to_dict(): the points on which other documents contradict the answer."""
    grounded: bool
    """Whether a cited sentence supports the answer, or may support it; false without an answer and for one from the
    model's memory."""
    confidence: float | None
    agreement: float | None
    """The share of the samples that say the same as the answer; None if it was asked for once."""
    graph: JSON
    """QuestionGraph.to_dict()."""
    steps: Annotated[list[JSON], _extended]
    """Step.to_dict(), one for each hop."""
    plans: Annotated[list[JSON], _one_a_hop]
    """Plan.to_dict() with the `hop` that it was made for. `thought` is true for a sentence of a chain of thought; `by`
    names the person who changed the plan."""
    passages: Annotated[dict[str, JSON], _first_wins]
    """Passage.to_dict() by id, in the order of hops, then of ranks within the hop. `recalled` is true for a passage
    that a store kept from an earlier turn, until it is found again."""
    usage: JSON
    """Usage.to_dict()."""
    stop_reason: str
    failures: Annotated[list[JSON], _extended]
    """Failure.to_dict()."""
    reviews: Annotated[list[JSON], _extended]
    """ras_agent.running.review.Reviewed.to_dict(): each decision of a person, with the plan, fact or answer before the
    change."""
    seconds: float
    """Time spent inside nodes; pauses between them do not count."""
    messages: Annotated[list[AnyMessage], add_messages]
    """The conversation with its answer, an AIMessage with `citations` in its additional_kwargs. Empty if neither the
    input nor the thread has `messages`."""

    structured_response: NotRequired[JSON | None]
    """The answer for a program, under the key that LangChain's agents use: `answer`, `citations` with number, title,
    file, page and quote, `confidence`, `abstained`, `suggestion`, `disputes`, `grounded`. Only set if messages were
    given."""


class Question(TypedDict):
    """Describes the input of a brief agent, which has only the key `question`."""

    question: str


class Told(TypedDict):
    """Describes the output of a brief agent: only the answer and its evidence."""

    answer: str
    citations: list[JSON]
    abstained: bool


class Beginning(Inputs):
    """Describes the input of the first node: the caller's input, and the values that the thread remembers."""

    turns: list[JSON]
    remaining_steps: RemainingSteps


class Scope(TypedDict):
    """Holds which passages the question may be answered from."""

    filter: JSON | list[JSON] | None
    as_of: str
    """The date for which the question is answered; "" without a date."""
    given: list[list[JSON]]
    """Passages that replace retrieval, for the next hop, the hop after it, and so on."""
    static: bool
    """Whether the given passages are the only ones."""
    commit: str
    """The state of the index that the first search saw and that later searches see too; "" before the first search."""


class State(Outputs):
    """Holds the outputs so far, and the values that nodes pass to each other. `begin` sets every key."""

    turns: list[JSON]
    """Exchange.to_dict(): the last answered questions of the thread, the oldest first."""
    scope: Scope
    subquery: str
    """The next sub-query to search for; "" when the loop has ended."""
    further: list[str]
    """The sub-queries to search for at the same time; each is a separate hop, in this order."""
    hits: list[JSON]
    """The hits of this hop in the form of a Step; those of a search of `further` also have its `hop`."""
    triples: list[JSON]
    """Facts read in the passages of these hops."""
    read: list[str]
    """Ids of the passages that have been read, so that their facts are in the graph."""
    remaining_steps: RemainingSteps


class ReviewedState(State):
    """Holds the state of a graph in which a run waits for a person."""

    again: str
    """The node to which the person sent the run back; "" if the run continues. Each review writes it."""


class Reads(TypedDict):
    """Lists the keys of the state that every node reads; the class that annotates a node's argument adds its
    other keys.

    LangGraph reads and checks every listed key for every node, so short lists make the loop faster.
    """

    question: str
    asked: str
    steps: list[JSON]
    seconds: float
    reviews: list[JSON]


class CallReads(Reads):
    """Lists the keys of the state that every node with role calls reads: also the cost of earlier calls."""

    usage: JSON


def empty_state() -> Update:
    """Return an update that clears everything that an earlier question left in the thread's state."""
    return {
        # keys with a reducer, which None empties
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
        "agreement": None,
        "structured_response": None,
        "graph": QuestionGraph().to_dict(),
        "usage": Usage().to_dict(),
        "seconds": 0.0,
        # values that one node leaves for the next
        "further": [],
        "hits": [],
        "triples": [],
        "read": [],
    }
