"""Rollouts: the policy at a gateway plans, the other roles are fixed, and the reward is printed or posted."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import pairwise
from typing import Any

import pytest
from typer.testing import CliRunner

from ras_agent import Settings
from ras_agent.app.cli.program import build_program
from ras_agent.contracts.errors import (
    ModelCallError,
    ModelRefused,
    SettingsError,
    UnknownName,
)
from ras_agent.eval.question import Question
from ras_agent.gym import Policy, Rewards, aroll_out, roll_out, rollout_agent
from ras_agent.gym.rollout import read_answers, read_rewards
from tests.messages import says

ASKED = "Which river flows through the birthplace of Alexander Graham Bell?"
QUESTION = Question(
    "q",
    ASKED,
    ("Water of Leith",),
    ("Alexander Graham Bell", "Water of Leith"),
    by_title=True,
)
TEXTS = [
    {
        "id": "1",
        "title": "Alexander Graham Bell",
        "text": "Alexander Graham Bell was born in Edinburgh.",
    },
    {
        "id": "2",
        "title": "Water of Leith",
        "text": "The Water of Leith flows through Edinburgh.",
    },
]
TURNS = [
    "<search> Bell born in",
    "<search> river flows through Edinburgh",
    "<answer> Thames",
]
POSTED: list[tuple[str, str, Any]] = []


class Gateway(BaseHTTPRequestHandler):
    """The part of a gateway that takes events."""

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        POSTED.append((self.path, self.headers["Authorization"], body))
        data = json.dumps({**body, "rollout_id": "r1"}).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, format: str, *args: Any) -> None:
        """Say nothing."""


@pytest.fixture
def event_url() -> Iterator[str]:
    """Where a gateway takes events; they are in POSTED."""
    POSTED.clear()
    with ThreadingHTTPServer(("127.0.0.1", 0), Gateway) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_address[1]}/api/rollouts/r1/attempt/0/events"
        server.shutdown()


@pytest.fixture
def no_variables(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    """An environment in which no trainer has said anything."""
    for name in (
        "AGL_OPENAI_BASE_URL",
        "AGL_KEY",
        "AGL_EVENT_URL",
        "OPENAI_BASE_URL",
        "OPENAI_API_BASE",
        "QUESTION",
    ):
        monkeypatch.delenv(name, raising=False)
    for name in ("OPENAI_API_KEY", "VLLM_API_KEY"):
        monkeypatch.delenv(name, raising=False)
    return monkeypatch


def _play(
    scripted_llm: Any,
    *turns: str,
    rewards: Rewards | None = None,
    own: bool = False,
    **settings: Any,
) -> Any:
    scripted_llm.script(*({"reply": turn} for turn in turns or TURNS))
    settings = {"dialect": "search-r1"} | settings
    agent = rollout_agent(Policy(scripted_llm.base_url), Settings(**settings), TEXTS)
    return roll_out(agent, QUESTION, rewards or Rewards(), own_answer=own)


def test_the_policy_plans_and_nobody_else_asks_it(scripted_llm: Any) -> None:
    result = _play(scripted_llm)
    assert [step["subquery"] for step in result.output["steps"]] == [
        "Bell born in",
        "river flows through Edinburgh",
    ]
    assert {call["role"] for call in result.output["usage"]["calls"]} == {"planner"}
    assert len(scripted_llm.requests()) == 3
    assert result.parts["f1"] == 1.0  # the answerer's answer
    assert result.parts["gold"] == 1.0


def test_each_request_of_a_rollout_begins_with_the_whole_of_the_one_before(
    scripted_llm: Any,
) -> None:
    for name, turns in (
        ("search-r1", TURNS),
        ("ras", ["[SUBQ] Bell born?", "[SUBQ] Edinburgh river?", "[SUFFICIENT]"]),
    ):
        before = len(scripted_llm.requests())
        _play(scripted_llm, *turns, dialect=name)
        prompts = [request["messages"] for request in scripted_llm.requests()[before:]]
        assert len(prompts) == 3
        assert all(after[: len(first)] == first for first, after in pairwise(prompts))


def test_a_policy_that_calls_tools_plans_in_react(scripted_llm: Any) -> None:
    scripted_llm.script(
        {"calls": [["search", {"query": "Bell born in"}]]},
        {"calls": [["search", {"query": "river Edinburgh"}]]},
        {"calls": [["finish", {"reason": "known"}]]},
    )
    agent = rollout_agent(Policy(scripted_llm.base_url), Settings(loop="react"), TEXTS)
    assert roll_out(agent, QUESTION, Rewards()).parts == {
        "f1": 1.0,
        "gold": 1.0,
        "form": 1.0,
    }
    prompts = [request["messages"] for request in scripted_llm.requests()]
    assert all(after[: len(first)] == first for first, after in pairwise(prompts))


def test_stop_strings_stay_in_the_replies_unless_the_server_refuses_that(
    scripted_llm: Any,
) -> None:
    _play(scripted_llm)
    assert {
        request["include_stop_str_in_output"] for request in scripted_llm.requests()
    } == {True}
    refusal = {
        "status": 400,
        "reply": "Unrecognized request argument supplied: include_stop_str_in_output; unknown",
    }
    scripted_llm.script(refusal)
    assert _play(scripted_llm).parts["f1"] == 1.0
    assert [
        "include_stop_str_in_output" in request
        for request in scripted_llm.requests()[3:]
    ] == [*(True, False, False, False)]


def test_equal_rollouts_of_a_group_ask_each_for_itself(scripted_llm: Any) -> None:
    _play(scripted_llm)
    _play(scripted_llm)
    assert len(scripted_llm.requests()) == 6
    assert {request["temperature"] for request in scripted_llm.requests()} == {1.0}


@pytest.mark.parametrize(
    "settings",
    [{"cache": "replies.sqlite"}, {"cache": "replies.sqlite", "replay": True}],
)
def test_a_cache_is_refused(scripted_llm: Any, settings: dict[str, Any]) -> None:
    with pytest.raises(SettingsError, match=says("cache", "group", "leave")):
        rollout_agent(Policy(scripted_llm.base_url), Settings(**settings), TEXTS)


@pytest.mark.parametrize("role", ["extractor", "answerer", "rewriter", "llm"])
def test_a_role_that_asks_the_policy_is_refused(scripted_llm: Any, role: str) -> None:
    with pytest.raises(SettingsError, match=says("is the policy", "another model")):
        rollout_agent(
            Policy(scripted_llm.base_url), Settings(**{role: scripted_llm.spec}), TEXTS
        )


@pytest.mark.parametrize("role", ["extractor", "answerer", "rewriter", "llm"])
def test_a_role_that_asks_the_policy_by_a_variable_is_refused(
    role: str, no_variables: pytest.MonkeyPatch
) -> None:
    no_variables.setenv("OPENAI_BASE_URL", "http://localhost:8000/v1/")
    with pytest.raises(
        SettingsError,
        match=says(f"the {role} is the policy", "http://localhost:8000/v1/"),
    ):
        rollout_agent(
            Policy("http://127.0.0.1:8000/v1"),
            Settings(**{role: "openai:gpt-4o-mini"}),
            TEXTS,
        )


def test_a_role_that_is_given_as_a_chat_model_is_refused_at_the_policy_too(
    scripted_llm: Any,
) -> None:
    policy = Policy(scripted_llm.base_url)
    with pytest.raises(SettingsError, match=says("the answerer is the policy")):
        rollout_agent(policy, Settings(), TEXTS, answerer=policy.chat_model(Settings()))


def test_a_role_at_another_port_or_path_is_no_policy() -> None:
    for spec in ("vllm:http://h:8000/v1#m", "vllm:http://h:80/judge/v1#m"):
        assert (
            rollout_agent(Policy("http://h:80/v1"), Settings(answerer=spec), TEXTS)
            is not None
        )


@pytest.mark.parametrize("graph", ["single-shot", "ircot"])
def test_a_graph_that_asks_no_planner_is_refused(graph: str) -> None:
    with pytest.raises(SettingsError, match=says(graph, "no planner", "--loop ras")):
        rollout_agent(Policy("http://h/v1"), Settings(loop=graph), TEXTS)


@pytest.mark.parametrize(
    ("model", "settings"), [("auto", {"dialect": "corag"}), ("CoRAG-Llama3.1-8B", {})]
)
def test_a_dialect_that_writes_its_prompt_anew_is_refused(
    model: str, settings: dict[str, Any]
) -> None:
    with pytest.raises(
        SettingsError, match=says("corag", "grow", "--dialect search-r1")
    ):
        rollout_agent(Policy("http://h/v1", model), Settings(**settings), TEXTS)


@pytest.mark.parametrize(
    ("searches", "turns"), [(0.4, TURNS), (0.2, [TURNS[0], TURNS[2]])]
)
def test_searches_are_told_as_a_share_of_those_that_the_limits_allow(
    scripted_llm: Any, searches: float, turns: list[str]
) -> None:
    assert _play(scripted_llm, *turns, rewards=read_rewards(["searches=-1"])).parts == {
        "searches": searches
    }


def test_what_the_policy_answers_itself_is_scored_where_that_is_wanted(
    scripted_llm: Any,
) -> None:
    result = _play(scripted_llm, own=True)
    assert (result.answer, result.parts["f1"]) == ("Thames", 0.0)


def test_replies_that_had_to_be_asked_again_lower_the_form(scripted_llm: Any) -> None:
    rewards = read_rewards(["form=1"])
    assert _play(scripted_llm, rewards=rewards).reward == 1.0
    assert _play(scripted_llm, "Hm.", *TURNS, rewards=rewards).reward == 0.75
    assert (
        _play(scripted_llm, "Hm.", "Well.", "Hm.", "Well.", rewards=rewards).reward
        == 0.0
    )


async def test_rollouts_run_in_coroutines_too(scripted_llm: Any) -> None:
    scripted_llm.script(*({"reply": turn} for turn in TURNS))
    agent = rollout_agent(
        Policy(scripted_llm.base_url), Settings(dialect="search-r1"), TEXTS
    )
    assert (await aroll_out(agent, QUESTION, Rewards())).parts["f1"] == 1.0


def test_a_policy_that_is_not_there_earns_no_reward() -> None:
    agent = rollout_agent(
        Policy("http://127.0.0.1:9/v1"), Settings(retries=0, patience=0), TEXTS
    )
    with pytest.raises(ModelRefused, match="no reward"):
        roll_out(agent, QUESTION, Rewards())


@pytest.mark.parametrize("status", [400, 429, 500, 503])
@pytest.mark.parametrize("hops", [0, 1])
def test_a_policy_whose_server_fails_earns_no_reward(
    scripted_llm: Any, status: int, hops: int
) -> None:
    failure = {"status": status, "reply": "the engine is down", "repeat": True}
    scripted_llm.script(*({"reply": turn} for turn in TURNS[:hops]), failure)
    agent = rollout_agent(
        Policy(scripted_llm.base_url),
        Settings(dialect="search-r1", retries=0, patience=0),
        TEXTS,
    )
    with pytest.raises((ModelCallError, ModelRefused), match="no reward"):
        roll_out(agent, QUESTION, Rewards())


def test_the_environment_names_the_policy() -> None:
    assert Policy.of_environment(
        {"AGL_OPENAI_BASE_URL": "http://g/v1", "AGL_KEY": "k"}
    ) == Policy("http://g/v1", "auto", "k")
    harness = {
        "OPENAI_BASE_URL": "http://h/v1",
        "OPENAI_API_KEY": "s",
        "OPENAI_MODEL": "m",
    }
    assert Policy.of_environment(harness) == Policy("http://h/v1", "m", "s")
    with pytest.raises(
        SettingsError, match=says("no policy", "AGL_OPENAI_BASE_URL", "--policy")
    ):
        Policy.of_environment({})


def test_a_policy_is_named_by_its_address() -> None:
    assert Policy.at("http://g/v1#m", "k") == Policy("http://g/v1", "m", "k")
    assert Policy.at("vllm:http://g/v1") == Policy("http://g/v1", "auto")
    with pytest.raises(SettingsError, match="http://host:port/v1#model"):
        Policy.at("offline")


def test_rewards_are_weighted_metrics_by_name() -> None:
    assert read_rewards([]).weights() == {"f1": 1.0, "form": 0.1}
    assert read_rewards(["em", "gold=0.5", "recall@5=2"]).weights() == {
        "em": 1.0,
        "gold": 0.5,
        "recall@5": 2.0,
    }
    with pytest.raises(SettingsError, match="NAME=WEIGHT"):
        read_rewards(["f1=much"])
    with pytest.raises(UnknownName, match="f2"):
        read_rewards(["f2=1"])


@pytest.mark.parametrize(
    ("text", "answers"),
    [
        ('["a", "b"]', ("a", "b")),
        ('"a"', ("a",)),
        ("1837", ("1837",)),
        ("Water of Leith", ("Water of Leith",)),
        ("", ()),
    ],
)
def test_gold_answers_are_read_from_a_variable(
    text: str, answers: tuple[str, ...]
) -> None:
    assert read_answers(text) == answers


def test_the_command_takes_what_agent_lightning_sets_and_posts_the_reward(
    scripted_llm: Any, event_url: str, no_variables: pytest.MonkeyPatch
) -> None:
    scripted_llm.script(*({"reply": turn} for turn in TURNS))
    variables = {
        "QUESTION": ASKED,
        "GOLDEN_ANSWERS": '["Water of Leith"]',
        "AGL_OPENAI_BASE_URL": scripted_llm.base_url,
        "AGL_KEY": "secret-key",
        "AGL_EVENT_URL": event_url,
    }
    command = [
        "rollout",
        "--sample",
        "--dialect",
        "search-r1",
        "--reward",
        "em=1",
        "--own-answer",
    ]
    done = CliRunner().invoke(build_program(), command, env=variables)
    assert done.exit_code == 0, done.output
    printed = json.loads(done.stdout)
    assert (printed["reward"], printed["answer"], printed["calls"]) == (
        0.0,
        "Thames",
        3,
    )
    ((path, authorization, body),) = POSTED
    assert (path, authorization) == (
        "/api/rollouts/r1/attempt/0/events",
        "Bearer secret-key",
    )
    assert body == {
        "event_type": "reward",
        "data": {"value": 0.0, "source": "agent", "reason": "sufficient"},
    }
    assert {request["model"] for request in scripted_llm.requests()} == {"auto"}


def test_the_command_takes_a_policy_by_its_address(
    scripted_llm: Any, no_variables: pytest.MonkeyPatch
) -> None:
    scripted_llm.script(*({"reply": turn} for turn in TURNS))
    command = [
        "rollout",
        ASKED,
        "--answer",
        "Water of Leith",
        "--policy",
        f"{scripted_llm.base_url}#Search-R1",
    ]
    done = CliRunner().invoke(build_program(), [*command, "--sample"])
    assert done.exit_code == 0, done.output
    assert json.loads(done.stdout)["searches"] == [
        "Bell born in",
        "river flows through Edinburgh",
    ]


def test_the_command_fails_and_posts_nothing_where_the_server_of_the_policy_fails(
    scripted_llm: Any, event_url: str, no_variables: pytest.MonkeyPatch
) -> None:
    scripted_llm.script(
        {"reply": TURNS[0]},
        {"status": 500, "reply": "the engine is down", "repeat": True},
    )
    command = [
        "rollout",
        ASKED,
        "--answer",
        "Water of Leith",
        "--policy",
        scripted_llm.base_url,
        "--sample",
    ]
    done = CliRunner().invoke(
        build_program(),
        [
            *command,
            "--dialect",
            "search-r1",
            "--retries",
            "0",
            "--event-url",
            event_url,
        ],
    )
    assert (done.exit_code, done.stdout, POSTED) == (1, "", [])
    assert "no reward: the policy failed at hop 2" in done.stderr


@pytest.mark.parametrize(
    ("variables", "key"),
    [
        ({"OPENAI_API_KEY": "of-openai"}, ""),
        ({"OPENAI_API_KEY": "of-openai", "VLLM_API_KEY": "of-vllm"}, "of-vllm"),
        ({"AGL_KEY": "of-gateway", "VLLM_API_KEY": "of-vllm"}, "of-gateway"),
    ],
)
def test_no_key_of_openai_goes_to_an_address_that_the_command_names(
    no_variables: pytest.MonkeyPatch, variables: dict[str, str], key: str
) -> None:
    asked: list[Any] = []
    no_variables.setattr(
        "ras_agent.gym.rollout.rollout_agent", lambda policy, *_: asked.append(policy)
    )
    CliRunner().invoke(
        build_program(),
        ["rollout", ASKED, "--policy", "http://h/v1", "--sample"],
        env=dict(variables),
    )
    assert asked == [Policy("http://h/v1", "auto", key)]


@pytest.mark.parametrize(
    ("arguments", "remedy"),
    [
        (
            ["--reward", "f1=1", "--reward", "gold=0.5", "--answer", "Leith"],
            "--supporting TITLE",
        ),
        (["--reward", "recall@5", "--answer", "Leith"], "--supporting TITLE"),
        ([], "--answer"),
    ],
)
def test_a_reward_that_cannot_be_measured_is_an_error(
    scripted_llm: Any,
    no_variables: pytest.MonkeyPatch,
    arguments: list[str],
    remedy: str,
) -> None:
    command = [
        "rollout",
        ASKED,
        "--sample",
        "--policy",
        scripted_llm.base_url,
        *arguments,
    ]
    done = CliRunner().invoke(build_program(), command, env={"COLUMNS": "200"})
    assert (done.exit_code, scripted_llm.requests()) == (2, [])
    assert remedy in done.output


def test_the_command_says_what_is_missing(no_variables: pytest.MonkeyPatch) -> None:
    run = CliRunner().invoke
    assert "no policy" in run(build_program(), ["rollout", "Who?", "--sample"]).output
    assert (
        "--policy URL"
        in run(
            build_program(), ["rollout", "Who?", "--sample", "--planner", "offline"]
        ).output
    )
    assert run(build_program(), ["rollout", "--sample"]).exit_code == 2
