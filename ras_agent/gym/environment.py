"""Runs an episode: a policy calls tools in place of the planner, and everything else is the agent's own loop.

A decision and a search run the bodies of the agents' nodes (ras_agent.graphs.decide, ras_agent.graphs.nodes).
So in training a policy meets the same hits, facts, graph and tool texts, and the same end of the loop, as in
`create_react_agent(planner=...)` (tests/gym/test_conformance.py plays both).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import Any, ClassVar, cast

from typing_extensions import Unpack

from ras_agent.contracts.records import JSON, Answer, Passage, Plan, Step
from ras_agent.eval.formats import read_question
from ras_agent.eval.formats.plain import plain_question
from ras_agent.eval.metrics import Outcome
from ras_agent.eval.question import Question
from ras_agent.eval.question_file import QuestionRecord
from ras_agent.graphs import decide, nodes
from ras_agent.graphs.node import Calls, NodeBody, RoleCall
from ras_agent.graphs.parts import AgentArguments, AgentParts
from ras_agent.graphs.records import Records
from ras_agent.graphs.resolve import resolve_parts
from ras_agent.graphs.state import Update
from ras_agent.gym.rewards import Episode, Rewards, ended_well, parts_of, support_gains
from ras_agent.prompts import as_data, load, task_block
from ras_agent.question_graph import QuestionGraph
from ras_agent.running.budget import Limits
from ras_agent.running.calling import call, run_steps
from ras_agent.text.tokens import estimate_tokens
from ras_agent.tools.answer.citations import NumberedEvidence, read_citations
from ras_agent.tools.plan.graph_tools import (
    FINISH,
    MOST_LOOKS,
    NEIGHBOURS,
    READ,
    RETRIEVER,
    SEARCH,
    TOOLS,
    Tool,
    argument_text,
    documented,
    neighbours_result,
    read_result,
    search_result,
)

DEFAULT_REWARDS = Rewards()
ENDED = "(the research has ended)"
"""The text that a policy is shown after the end of its episode."""
_ENDS = {
    "max_hops": "no search is left",
    "no_new_facts": "the last search brought no new facts",
    "repeated_subquery": "this was searched before",
    "planner_failed": "two calls in a row could not be followed",
}
"""The text that a policy is shown for each stop reason if it has not ended the loop itself."""
_NO_LOOK_LEFT = "(no look is left: search, or call finish)"
_ROWS_OWN = ("prompt", "completion", "environment")
"""Columns of a trainer's rows that are not about the question."""
_STEPS = 1_000_000  # stands for LangGraph's remaining steps, which play no role here


class GraphSearch:
    """Plays one episode at a time. `reset` begins a new episode.

    Its public methods, except `reset` and `get_reward`, are the tools, with types and docstrings in Google's
    form. So the class fits TRL's `GRPOTrainer(environment_factory=...)`; `environment_factory` makes the
    factory. Equal calls after an equal `reset` return equal texts. An instance must be used by one thread only;
    instances share `parts`.

    The loop ends where an agent's run ends: with a repeated search, a search without new facts, the last search
    of max_hops, or two consecutive invalid calls, after which no other role plans (`fallback = stop`).
    `Limits(stop_on_repeat=False, stop_on_no_new_facts=False)` switches the first two off, for agents too. After
    the end, `finish` may still state the answer. A `finish` before any search is overruled, as in an agent: the
    question itself is searched.

    If a retriever, extractor or answerer fails, its error is raised. `get_reward` raises it again, because
    trainers show a tool's error to the policy and continue.
    """

    offered: ClassVar[tuple[Tool, ...]] = TOOLS
    """The tools of the policy. A class made by `environment_factory` also has the tools over an index's
    graph."""

    def __init__(
        self,
        parts: AgentParts | None = None,
        *,
        rewards: Rewards = DEFAULT_REWARDS,
        whole_graph: bool = False,
        **arguments: Unpack[AgentArguments],
    ) -> None:
        """Make an environment over an index.

        Args:
            parts: from `search_parts`, for environments that share them; by default they are made from `arguments`.
            rewards: weights of the reward's parts. The answerer is asked only if a part needs an answer and the policy
                has given no answer.
            whole_graph: whether a search shows all facts of the question's graph, not only the new ones.
            arguments: as for `create_ras_agent`: index, retriever, extractor, answerer, limits (max_hops searches of k
                passages each), settings; also task, an instruction that is shown above the question.

        Raises:
            RasError: children of it, for an index or a role that cannot be set up.
        """
        if parts is not None and (unused := arguments.keys() - {"task"}):
            raise TypeError(
                f"`parts` already holds {', '.join(sorted(unused))}: leave these arguments out, or leave `parts` out"
            )
        self._parts = parts = parts or search_parts(**arguments)
        self._rewards = rewards
        self._whole_graph = whole_graph
        self._task = arguments.get("task", "")
        self._prompt = load("react")
        self._records = Records()
        self._limits = parts.preset.limits(parts.limits)
        self._policy = _Policy()
        self._plan = decide.plan(
            self._policy,
            parts.pruner,
            from_memory=parts.preset.from_memory,
            planner_writes_first_query=True,
        )
        self._search = (
            nodes.retrieve(parts.retriever, parts.retrievers),
            nodes.structure(parts.extractor, parts.fallbacks.get("extractor")),
            nodes.merge(),
            _limits_end,
        )
        self._begin_episode(Question("", "(no question)", ()))
        self.done = True  # until the first reset

    # ---- the methods that a trainer calls

    def reset(self, question: str | Question = "", **row: Any) -> str:
        """Begin an episode, and return the first text for the policy: the question.

        Args:
            question: The text of the question, or a Question with its gold answers and passages.
            row: The columns of a data set in any format from which questions are read (ras_agent.eval.formats), such as
                ours: id, answers, supporting_titles or supporting_ids, hops, type. Keys with None are ignored, and so
                are the trainers' own keys (prompt, completion, environment).

        Raises:
            IngestError: For a row that is not a question.
            ValueError: For a blank question.
        """
        if not isinstance(question, Question):
            if question:
                row["question"] = question
            question = _question_of(row)
        self._begin_episode(question)
        return self._shown(self._first_turns()[-1]["content"])

    @documented(SEARCH)
    def search(self, query: str) -> str:
        return self._searched(SEARCH, query)

    @documented(NEIGHBOURS)
    def neighbours(self, entity: str) -> str:
        return self._look(
            entity, lambda name: neighbours_result(name, self._graph_shown())
        )

    @documented(READ)
    def read(self, passage: str) -> str:
        return self._look(passage, lambda name: read_result(name, self.passages))

    @documented(FINISH)
    def finish(self, reason: str, answer: str = "") -> str:
        reason = _as_text(reason)
        if not self.stop_reason:
            # only counts the call, which can always be followed
            self._refusal(FINISH.name)
            instead = self._decide(Plan("sufficient", reason=reason))
            if instead:
                return instead
        self._end(answer if isinstance(answer, str) else _as_text(answer))
        return ENDED

    def get_reward(self) -> float:
        """Return the weighted sum of the reward's parts. Raises the error that a tool has raised."""
        return self._rewards.total(self.reward_parts)

    # ---- further results

    done: bool
    """Whether the episode is over, so that further calls do not count."""
    question: Question

    @property
    def stop_reason(self) -> str:
        """Return why the loop has ended, as in an agent's output; "" while it runs."""
        return str(self._state["stop_reason"])

    @property
    def reward_parts(self) -> dict[str, float]:
        """Return the reward's parts that have a weight and can be measured for the question, by name.

        Raises the error that a tool has raised.
        """
        self._settle()
        return parts_of(self._episode(), self._rewards)

    @property
    def support_gains(self) -> tuple[float, ...]:
        """Return for each search the share of gold passages that it found first, as a reward for each hop."""
        return support_gains(self.question, self._hops())

    @property
    def searches_left(self) -> int:
        """Return how many searches the policy may still make."""
        if self.stop_reason:
            return 0
        return self._limits.max_hops - len(self._state["steps"])

    @property
    def graph(self) -> QuestionGraph:
        """Return the question's graph, for policies that read it as graph tokens rather than text."""
        return self._records.graph(self._state["graph"])

    @property
    def steps(self) -> tuple[Step, ...]:
        """Return the searches so far, each with its hits and facts."""
        return tuple(
            self._records.step(data, self._state["passages"])
            for data in self._state["steps"]
        )

    @property
    def passages(self) -> tuple[Passage, ...]:
        """Return the passages that the searches found, in the order of their numbers in the tools' texts."""
        return tuple(map(self._records.passage, self._state["passages"].values()))

    @property
    def outcome(self) -> Outcome:
        """Return the answer and its evidence in the form that metrics score. Before the end of the episode, it
        abstains.
        """
        self._settle()
        outcome = Outcome.from_output(self._state)
        if self._answered():
            return outcome
        return replace(outcome, abstained=True)

    @property
    def system_prompt(self) -> str:
        """Return the system prompt that the planner of an agent with these tools gets."""
        return self._first_turns()[0]["content"]

    # ---- the loop

    def _searched(self, tool: Tool, query: object, retriever: str = "") -> str:
        """Search with a tool, and return the text that the policy is shown."""
        text = _as_text(query)
        refusal = self._refusal(text)
        if refusal:
            return refusal
        chosen = tool.retriever_of({RETRIEVER: retriever})
        plan = Plan("subq", text, retriever=chosen)
        return self._decide(plan) or self._end_message()

    def _begin_episode(self, question: Question) -> None:
        self.question = question
        self.done = False
        self._calls = self._followed = self._unfollowed = self._looks = self._tokens = (
            self._invented
        ) = 0
        self._error: Exception | None = None
        self._state: JSON = {**question.inputs, "remaining_steps": _STEPS}
        self._run(nodes.begin())
        self._state |= {
            "steps": [],
            "plans": [],
            "passages": {},
            "failures": [],
            "reviews": [],
        }

    def _decide(self, plan: Plan | None) -> str:
        """Let the loop follow a decision of the policy. A plan of None stands for an unreadable decision.

        Return the text about the search that follows, or "" if there is none.
        """
        self._unfollowed = 0
        self._policy.decision = plan
        self._run(self._plan)
        if not self._state["subquery"]:
            return ""
        for body in self._search:
            self._run(body)
        self._looks = 0
        step = self.steps[-1]
        if self._whole_graph:
            step = replace(step, new_triple_ids=tuple(self.graph.by_id))
        shown = self._shown(search_result(step, self._graph_shown(), self.passages))
        if self.stop_reason:
            return f"{shown}\n{self._end_message()}"
        return shown

    def _end(self, answer: str) -> None:
        """End the episode with the policy's answer, or with the answerer's if a part of the reward needs an answer."""
        self.done = True
        preset = self._parts.preset
        if answer.strip():
            stated = _StatedAnswer(answer)
            self._run(
                nodes.answer(
                    stated,
                    on_conflict=preset.on_conflict,
                    functional=self._parts.functional,
                )
            )
            self._invented = stated.invented
        elif self._rewards.need_answer:
            self._run(
                nodes.answer(
                    self._parts.answerer,
                    None,
                    self._parts.pruner,
                    asks_anyway=preset.asks_anyway,
                    fallback=self._parts.fallbacks.get("answerer"),
                    on_conflict=preset.on_conflict,
                    functional=self._parts.functional,
                )
            )

    def _settle(self) -> None:
        """If the loop has ended without an answer from the policy, let the answerer write one, as in an agent's
        run.

        Raises the error that a tool has raised.
        """
        if self._error is not None:
            raise self._error
        if self.stop_reason and not self.done:
            self._end("")

    def _run(self, body: NodeBody) -> None:
        """Run a node's body and add its update to the state. Errors of roles are raised."""
        update = body(self._state, self._limits, self._records)
        if not isinstance(update, Mapping):
            update = run_steps(update, self._made)
        for key, value in update.items():
            if key in ("steps", "plans", "failures") and value is not None:
                value = [*self._state[key], *value]
            elif key == "passages" and value is not None:
                value = {**self._state[key], **value}
            self._state[key] = value

    def _made(self, calls: Calls) -> Any:
        """Return the reply to a call, or a list of replies to several calls."""
        if isinstance(calls, RoleCall):
            return self._reply_to(calls)
        return list(map(self._reply_to, calls))

    def _reply_to(self, role_call: RoleCall) -> object:
        try:
            return call(role_call.role, role_call.method, *role_call.args)
        except Exception as error:
            self._error = error
            raise

    def _look(self, name: object, result: Callable[[str], str]) -> str:
        name = _as_text(name)
        refusal = self._refusal(name, left=self._looks < MOST_LOOKS)
        if refusal:
            return refusal
        self._looks += 1
        return self._shown(result(name))

    def _refusal(self, argument: str, *, left: bool = True) -> str:
        """Count a call. Return a text for the policy if the call is invalid, else "".

        The second consecutive invalid call counts as a failed plan, as in an agent's run: the question itself
        is searched if there was no search, and otherwise the loop ends. Calls after the loop's end do not
        count.
        """
        if self.stop_reason:
            return self._end_message()
        self._calls += 1
        if left and argument.strip():
            self._followed += 1
            self._unfollowed = 0
            return ""
        self._unfollowed += 1
        if self._unfollowed > 1:
            return self._decide(None) or self._end_message()
        return self._shown(
            f"(the argument is empty: give it a text, got {argument!r:.80})"
            if left
            else _NO_LOOK_LEFT
        )

    def _end_message(self) -> str:
        """Return the text for a policy after its loop has ended."""
        if self.done:
            return ENDED
        why = _ENDS.get(self.stop_reason, self.stop_reason)
        return self._shown(
            f"(the research has ended: {why}. Call finish with the answer)"
        )

    def _graph_shown(self) -> QuestionGraph:
        """Return the part of the question's graph that the policy is shown: the whole graph, unless facts are
        pruned.
        """
        pruner = self._parts.pruner
        if pruner:
            return pruner.prune(self.question.question, self.graph, self.steps)
        return self.graph

    def _shown(self, text: str) -> str:
        self._tokens += estimate_tokens(text)
        return text

    def _first_turns(self) -> list[dict[str, str]]:
        turns = self._prompt.fill(
            task=task_block(self._task), question=as_data(self._state["question"])
        )
        return [{"role": turn.role, "content": turn.text} for turn in turns]

    def _answered(self) -> bool:
        return self.done and (self._rewards.need_answer or bool(self._state["answer"]))

    def _hops(self) -> Sequence[Sequence[Passage]]:
        return [[hit.passage for hit in step.hits] for step in self.steps]

    def _episode(self) -> Episode:
        return Episode(
            question=self.question,
            outcome=self.outcome,
            hops=self._hops(),
            invented=self._invented,
            calls=self._calls,
            followed=self._followed,
            finished=ended_well(self.stop_reason),
            shown=self._tokens,
            max_hops=self._limits.max_hops,
        )


def _as_text(value: object) -> str:
    """Return a call's argument as one line of text. A model may write a number, a list, or null."""
    if isinstance(value, bool):
        return str(value)
    return argument_text(value)


def _limits_end(state: Any, limits: Limits, records: Records) -> Update:
    """End the loop if an agent's loop would end before its planner is asked again."""
    return decide.decide_without_planner(state, limits) or {}


def _question_of(row: JSON) -> Question:
    """Return the question of a trainer's row. Any part of it may be missing, even the answers."""
    given = QuestionRecord(row, "row", 0)
    known = {}
    for name, value in given.data.items():
        if name not in _ROWS_OWN and value is not None:
            known[name] = value
    if found := read_question(replace(given, data=known)):
        return found
    known.setdefault("id", "")
    known.setdefault("question", "")
    if "answer" not in known:
        known.setdefault("answers", ())
    return plain_question(replace(given, data=known))


def environment_class(tools: Sequence[Tool]) -> type[GraphSearch]:
    """Return a subclass of GraphSearch with these tools as methods. Their docstrings are the descriptions that
    a planner is shown.
    """
    if tuple(tools) == TOOLS:
        return GraphSearch
    methods: dict[str, object] = {"offered": tuple(tools)}
    for tool in TOOLS:
        methods[tool.name] = None  # hides a tool that is not offered
    for tool in tools:
        if tool.searches:
            methods[tool.name] = _search_with(tool)
        else:
            methods[tool.name] = getattr(GraphSearch, tool.name)
    return type("GraphSearch", (GraphSearch,), methods)


def _search_with(tool: Tool) -> Callable[..., str]:
    """Return a method that searches with a tool. Trainers read the names of its arguments and its docstring."""

    def search(self: GraphSearch, query: str) -> str:
        return self._searched(tool, query)

    def by_choice(self: GraphSearch, query: str, retriever: str = "") -> str:
        return self._searched(tool, query, retriever)

    def around(self: GraphSearch, entity: str) -> str:
        return self._searched(tool, entity)

    def between(self: GraphSearch, entities: str) -> str:
        return self._searched(tool, entities)

    by_argument = {"query": search, "entity": around, "entities": between}
    method: Callable[..., str] = by_argument[tool.argument]
    if tool.choices:
        method = by_choice
    method.__name__ = tool.name
    return documented(tool)(method)


class _Policy:
    """Plays the planner on behalf of a policy: it returns the plan that stands for the last tool call."""

    decision: Plan | None = None

    def plan(self, question: str, graph: QuestionGraph, steps: Sequence[Step]) -> Plan:
        # the loop takes None for a failed plan
        return cast("Plan", self.decision)


class _StatedAnswer:
    """Plays the answerer by repeating the policy's answer. It cites the passages whose numbers are in it."""

    def __init__(self, text: str) -> None:
        self._text = text
        self.invented = 0

    def answer(
        self,
        question: str,
        graph: QuestionGraph,
        passages: Sequence[Passage],
        steps: Sequence[Step],
    ) -> Answer:
        evidence = NumberedEvidence(tuple(passages))
        cited = read_citations(self._text, evidence.passage_ids())
        self.invented = len(cited.invented)
        text = cited.bare.strip()
        return Answer(
            text, evidence.citations(cited.numbers, text, question), abstained=not text
        )


def search_parts(**arguments: Unpack[AgentArguments]) -> AgentParts:
    """Return the parts of an environment: those of a ReAct agent, opened once, with the policy as planner.

    `arguments` are those of `create_react_agent`.
    """
    with_policy: AgentArguments = {**arguments, "planner": _Policy()}
    return resolve_parts("react", **with_policy)


@dataclass(frozen=True)
class EnvironmentFactory:
    """Makes environments over the same index and roles, which are opened only once.

    A pickled factory holds only the arguments, so that another process opens its own index and roles.
    """

    arguments: AgentArguments
    rewards: Rewards = DEFAULT_REWARDS
    whole_graph: bool = False

    def __call__(self) -> GraphSearch:
        """Return a new environment."""
        task = self.arguments.get("task", "")
        made = environment_class(self._parts.tools)
        return made(
            self._parts, rewards=self.rewards, whole_graph=self.whole_graph, task=task
        )

    @cached_property
    def _parts(self) -> AgentParts:
        return search_parts(**self.arguments)

    def __getstate__(self) -> JSON:
        return {item.name: getattr(self, item.name) for item in fields(self)}

    def __setstate__(self, state: JSON) -> None:
        self.__dict__.update(state)


def environment_factory(
    *,
    rewards: Rewards = DEFAULT_REWARDS,
    whole_graph: bool = False,
    **arguments: Unpack[AgentArguments],
) -> EnvironmentFactory:
    """Return a factory of environments over the same index and roles, which are opened only once.

    Args:
        rewards: The weights of the reward's parts.
        whole_graph: Whether a search shows all facts of the question graph, not only the new ones.
        arguments: As for `create_react_agent`. The environment has `tools` as methods, by default all that the index
            can serve.

    Raises:
        RasError: If the index or a role cannot be set up.
    """
    factory = EnvironmentFactory(arguments, rewards, whole_graph)
    factory()
    return factory
