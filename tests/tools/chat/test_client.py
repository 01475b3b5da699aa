"""A model call: entered in the ledger, answered from the cache, with its usage and with failures that say where."""

import asyncio
import json
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from ras_agent.contracts.errors import BudgetExceeded, ModelCallError, ModelRefused
from ras_agent.contracts.records import Call
from ras_agent.prompts import Turn
from ras_agent.running.budget import Ledger, Limits, metered
from ras_agent.tools.chat.call import Reply, Request
from ras_agent.tools.chat.client import Chat, ChatSettings, as_chat
from ras_agent.tools.chat.limits import Limiter
from ras_agent.tools.chat.retry import RetryPolicy
from tests.messages import says

REQUEST = Request((Turn("system", "Be brief."), Turn("user", "Who?")))


def test_turns_become_messages_and_the_reply_is_its_text(scripted_model: Any) -> None:
    model = scripted_model("Bell.")
    assert as_chat(model).complete(REQUEST).text == "Bell."
    assert model.prompts == ["system: Be brief.\nhuman: Who?"]


def test_a_call_is_recorded_with_role_hop_model_and_tokens(scripted_model: Any) -> None:
    with metered(Ledger("planner", hop=2)) as ledger:
        as_chat(scripted_model("Alexander Graham Bell.")).complete(REQUEST)
    (call,) = ledger.calls
    assert replace(call, seconds=0.0) == Call(
        "planner", 2, "scripted", input_tokens=5, output_tokens=3
    )
    assert call.seconds > 0


def test_outside_a_run_nothing_is_limited(scripted_model: Any) -> None:
    chat = as_chat(scripted_model("a", "b"))
    assert [chat.complete(REQUEST).text for _ in range(2)] == ["a", "b"]


def test_a_call_that_the_budget_forbids_is_not_made(scripted_model: Any) -> None:
    model = scripted_model("a", "b")
    with metered(Ledger("planner", limits=Limits(max_llm_calls=2))):
        as_chat(model).complete(REQUEST)
        with pytest.raises(BudgetExceeded):
            as_chat(model).complete(REQUEST)
    assert len(model.prompts) == 1


def test_a_failed_call_is_given_back_to_the_ledger(scripted_model: Any) -> None:
    chat = as_chat(scripted_model(KeyError("broken"), "b"))
    with metered(Ledger("planner", limits=Limits(max_llm_calls=2))) as ledger:
        with pytest.raises(ModelCallError):
            chat.complete(REQUEST)
        assert chat.complete(REQUEST).text == "b"
    assert len(ledger.calls) == 1


class _StatusError(Exception):
    """Error status, shaped like those of the providers' clients."""

    def __init__(self, status: int) -> None:
        super().__init__(f"status {status}")
        self.status_code = status


def test_a_transient_failure_is_tried_again_and_counts_once(
    scripted_model: Any, settings: ChatSettings, passing_time: Any
) -> None:
    with metered(Ledger("planner")) as ledger:
        reply = as_chat(
            scripted_model(TimeoutError(), ConnectionError(), "at last"), settings
        ).complete(REQUEST)
    assert reply.text == "at last"
    assert passing_time.waits == [0.5, 1.0]
    assert len(ledger.calls) == 1


def test_a_server_that_goes_away_fails_one_whole_call_and_refuses_the_next(
    scripted_model: Any, settings: ChatSettings, passing_time: Any
) -> None:
    settings = replace(settings, retry=RetryPolicy(3, jitter=lambda: 1.0, patience=0.0))
    chat = as_chat(
        scripted_model(
            "a", *[ConnectionRefusedError()] * 5, "b", ConnectionRefusedError(), "c"
        ),
        settings,
    )
    assert chat.complete(REQUEST).text == "a"
    with pytest.raises(
        ModelCallError,
        match=says("3 tries", "nothing listens", "ScriptedModel#scripted"),
    ):
        chat.complete(REQUEST)
    with pytest.raises(ModelRefused, match="failed after 2 tries"):
        chat.complete(REQUEST)
    assert [chat.complete(REQUEST).text for _ in range(2)] == ["b", "c"]
    assert passing_time.waits == [0.5, 1.0, 0.5, 0.5]


@pytest.mark.parametrize(
    "gone", [ConnectionRefusedError(), _StatusError(502), _StatusError(503)]
)
def test_a_server_that_has_answered_before_is_waited_for_while_it_restarts(
    gone: Exception, scripted_model: Any, settings: ChatSettings, passing_time: Any
) -> None:
    chat = as_chat(scripted_model("a", *[gone] * 20, "b"), settings)
    assert chat.complete(REQUEST).text == "a"
    assert chat.complete(REQUEST).text == "b"
    assert passing_time.waits == [0.5, 1.0, 2.0, 4.0, *[5.0] * 16]


def test_a_server_that_does_not_come_back_is_waited_for_as_long_as_the_settings_say(
    scripted_model: Any, settings: ChatSettings, passing_time: Any
) -> None:
    settings = replace(
        settings, retry=RetryPolicy(3, jitter=lambda: 1.0, patience=20.0)
    )
    chat = as_chat(scripted_model("a", *[ConnectionRefusedError()] * 20), settings)
    assert chat.complete(REQUEST).text == "a"
    with pytest.raises(ModelCallError, match=says("nothing listens")):
        chat.complete(REQUEST)
    assert sum(passing_time.waits) == 0.5 + 1.0 + 2.0 + 4.0 + 3 * 5.0


def test_waiting_for_a_server_uses_up_no_tries(
    scripted_model: Any, settings: ChatSettings
) -> None:
    failures = [ConnectionResetError(), *[ConnectionRefusedError()] * 9, TimeoutError()]
    chat = as_chat(scripted_model("a", *failures, "b"), settings)
    assert [chat.complete(REQUEST).text for _ in range(2)] == ["a", "b"]


def test_a_reply_from_the_cache_does_not_show_that_the_server_is_there(
    scripted_model: Any, settings: ChatSettings, tmp_path: Path
) -> None:
    settings = replace(settings, cache=tmp_path / "replies.db")
    as_chat(scripted_model("a"), settings).complete(REQUEST)
    chat = as_chat(scripted_model(*[ConnectionRefusedError()] * 2), settings)
    assert chat.complete(REQUEST).replayed
    with pytest.raises(ModelRefused):
        chat.complete(Request((Turn("user", "Where?"),)))


async def test_coroutines_try_again_too(
    scripted_model: Any, settings: ChatSettings, passing_time: Any
) -> None:
    reply = await as_chat(
        scripted_model(TimeoutError(), "at last"), settings
    ).acomplete(REQUEST)
    assert reply.text == "at last"
    assert passing_time.waits == [0.5]


def test_exhausted_tries_name_model_endpoint_and_cause(
    scripted_model: Any, settings: ChatSettings
) -> None:
    told = says("scripted", "ScriptedModel#scripted", "3 tries", "TimeoutError: slow")
    with pytest.raises(ModelCallError, match=told) as caught:
        as_chat(scripted_model(*[TimeoutError("slow")] * 3), settings).complete(REQUEST)
    assert isinstance(caught.value.__cause__, TimeoutError)


def test_an_error_that_shows_a_credential_is_masked_and_not_chained(
    scripted_model: Any,
) -> None:
    with pytest.raises(ModelCallError) as caught:
        as_chat(scripted_model(ValueError("bad key sk-abcd1234efgh"))).complete(REQUEST)
    assert str(caught.value).endswith("ValueError: bad key ***")
    assert caught.value.__cause__ is None
    assert caught.value.__suppress_context__


def test_the_reply_so_far_is_passed_on_as_it_arrives() -> None:
    from langchain_core.language_models.fake_chat_models import FakeListChatModel

    streamed: list[str] = []
    reply = as_chat(FakeListChatModel(responses=["abc"])).complete(
        Request(REQUEST.turns, streamed.append)
    )
    assert streamed[:3] == ["a", "ab", "abc"]
    assert reply.text == "abc"


def test_a_cached_reply_needs_no_model_and_is_recorded_as_replayed(
    scripted_model: Any, tmp_path: Path
) -> None:
    settings = ChatSettings(cache=tmp_path / "replies.db")
    with metered(Ledger("planner", hop=1)) as first:
        Chat(scripted_model("Bell."), settings=settings).complete(REQUEST)
    streamed: list[str] = []
    with metered(Ledger("planner", hop=1)) as second:
        replayed = Chat(scripted_model(), settings=settings).complete(
            Request(REQUEST.turns, streamed.append)
        )
    assert (replayed.text, streamed) == ("Bell.", ["Bell."])
    assert second.calls == [replace(first.calls[0], replayed=True, seconds=0.0)]


async def test_a_replayed_run_meets_its_limits_where_the_first_one_did(
    scripted_model: Any, tmp_path: Path
) -> None:
    settings = ChatSettings(cache=tmp_path / "replies.db")
    as_chat(scripted_model("Bell."), settings).complete(REQUEST)
    chat = as_chat(scripted_model(), settings)
    with metered(Ledger("planner", limits=Limits(max_llm_calls=2))):
        await chat.acomplete(REQUEST)
        with pytest.raises(BudgetExceeded):
            await chat.acomplete(REQUEST)


def test_a_failure_is_not_cached(scripted_model: Any, tmp_path: Path) -> None:
    chat = as_chat(
        scripted_model(KeyError("broken"), "Bell."),
        ChatSettings(cache=tmp_path / "replies.db"),
    )
    with pytest.raises(ModelCallError):
        chat.complete(REQUEST)
    assert chat.complete(REQUEST).text == "Bell."


async def test_equal_requests_at_the_same_time_are_one_call(
    scripted_model: Any, tmp_path: Path
) -> None:
    chat = as_chat(scripted_model("Bell."), ChatSettings(cache=tmp_path / "replies.db"))
    with metered(Ledger("planner", hop=1)) as ledger:
        replies = await asyncio.gather(*(chat.acomplete(REQUEST) for _ in range(4)))
    assert [reply.text for reply in replies] == ["Bell."] * 4
    assert sorted(call.replayed for call in ledger.calls) == [False, True, True, True]


def test_equal_requests_of_threads_at_the_same_time_are_one_call(
    scripted_model: Any, tmp_path: Path
) -> None:
    entered = threading.Barrier(2)

    def slow(prompt: str) -> str:
        entered.wait()
        return "Bell."

    model = scripted_model((str(REQUEST.turns[-1].text), slow))
    chat = as_chat(model, ChatSettings(cache=tmp_path / "replies.db"))
    with ThreadPoolExecutor(3) as pool:
        replies = [pool.submit(chat.complete, REQUEST) for _ in range(3)]
        entered.wait()  # the first is inside its call
        assert [reply.result().text for reply in replies] == ["Bell."] * 3
    assert len(model.prompts) == 1


async def test_a_call_that_fails_leaves_those_who_waited_for_it_to_ask_themselves(
    scripted_model: Any, tmp_path: Path
) -> None:
    chat = as_chat(
        scripted_model(KeyError("broken"), "Bell."),
        ChatSettings(cache=tmp_path / "replies.db"),
    )
    failed, *others = await asyncio.gather(
        *(chat.acomplete(REQUEST) for _ in range(3)), return_exceptions=True
    )
    assert isinstance(failed, ModelCallError)
    assert [reply.text for reply in others if isinstance(reply, Reply)] == [
        "Bell.",
        "Bell.",
    ]


def test_a_chat_is_taken_as_it_is(scripted_model: Any) -> None:
    chat = as_chat(scripted_model())
    assert as_chat(chat) is chat
    assert repr(chat) == "Chat('scripted')"


def test_what_is_no_model_is_a_type_error() -> None:
    with pytest.raises(
        TypeError,
        match=says("not a chat model", "LangChain chat model", "runnable", "string"),
    ):
        as_chat(42)


class Busy(Exception):
    """A rate limit whose endpoint asks for half a minute of quiet."""

    status_code = 429
    response = SimpleNamespace(headers={"retry-after": "30"})


def test_no_try_is_waited_for_that_would_come_after_the_runs_time(
    scripted_model: Any, settings: ChatSettings
) -> None:
    model = scripted_model(Busy(), "too late")
    with (
        metered(Ledger("planner", limits=Limits(max_seconds=20))),
        pytest.raises(ModelCallError, match="after 1 try"),
    ):
        Chat(model, settings=settings, limiter=Limiter(clock=settings.clock)).complete(
            REQUEST
        )
    assert len(model.prompts) == 1


@pytest.mark.parametrize(
    ("role", "seconds"), [("planner", 3600), ("planner", None), ("answerer", 3600)]
)
def test_a_try_in_time_and_the_answer_are_waited_for(
    role: str, seconds: float | None, scripted_model: Any, settings: ChatSettings
) -> None:
    with metered(Ledger(role, limits=Limits(max_seconds=seconds))):
        model = scripted_model(Busy(), "at last")
        chat = Chat(
            model,
            settings=replace(settings, timeout=60.0),
            limiter=Limiter(clock=settings.clock),
        )
        assert chat.complete(REQUEST).text == "at last"


@pytest.mark.parametrize("asynchronous", [False, True])
def test_a_model_that_refuses_a_temperature_is_asked_without_one(
    asynchronous: bool, scripted_llm: Any, tmp_path: Path
) -> None:
    told = {
        "error": {
            "message": "Unsupported value: 'temperature' does not support 0 with this model.",
            "code": "x",
        }
    }
    scripted_llm.script(
        {"status": 400, "body": json.dumps(told)}, {"reply": "Bell", "repeat": True}
    )
    settings = ChatSettings(
        temperature=0.0, cache=tmp_path / "replies.db", retry=RetryPolicy(attempts=1)
    )
    chat = as_chat(scripted_llm.spec, settings)
    for request in (REQUEST, Request((Turn("user", "Where?"),))):
        reply = (
            asyncio.run(chat.acomplete(request))
            if asynchronous
            else chat.complete(request)
        )
        assert reply.text == "Bell"
        # also by one who did not learn of it
        assert as_chat(scripted_llm.spec, settings).complete(request).replayed
    assert [request.get("temperature") for request in scripted_llm.requests()] == [
        0.0,
        None,
        None,
    ]


# ---- tokens


def test_tokens_that_no_server_reports_are_estimated(scripted_llm: Any) -> None:
    scripted_llm.script({"reply": "Alexander Graham Bell", "fields": {"usage": None}})
    with metered(Ledger("planner")) as ledger:
        as_chat(scripted_llm.spec).complete(REQUEST)
    (call,) = ledger.calls
    assert (call.estimated, call.input_tokens > 0, call.output_tokens > 0) == (
        True,
        True,
        True,
    )


def test_a_call_that_would_pass_max_tokens_is_not_made(scripted_llm: Any) -> None:
    scripted_llm.script({"reply": "Bell", "repeat": True})
    chat, request = as_chat(scripted_llm.spec), replace(REQUEST, max_tokens=500)
    with metered(Ledger("answerer", limits=Limits(max_tokens=200))):
        chat.complete(request)
    (asked,) = scripted_llm.requests()
    assert 100 < asked["max_tokens"] < 200  # the room behind the prompt
    with (
        metered(Ledger("answerer", limits=Limits(max_tokens=50))),
        pytest.raises(BudgetExceeded, match="max_tokens"),
    ):
        chat.complete(request)
    assert len(scripted_llm.requests()) == 1


@pytest.mark.parametrize(
    "refusal",
    [
        "'messages.1' : property 'reasoning_content' is unsupported",
        "Please remove the reasoning_content from your messages",
    ],
)
def test_a_server_that_refuses_earlier_thoughts_gets_none(
    scripted_llm: Any, refusal: str
) -> None:
    turns = (
        Turn("user", "Who?"),
        Turn("assistant", "Bell", thoughts="hm"),
        Turn("user", "Where?"),
    )
    scripted_llm.script(
        {"status": 400, "reply": refusal}, {"reply": "Edinburgh", "repeat": True}
    )
    chat = as_chat(scripted_llm.spec)
    assert [chat.complete(Request(turns)).text for _ in range(2)] == [
        "Edinburgh",
        "Edinburgh",
    ]
    sent = [
        request["messages"][1].get("reasoning_content")
        for request in scripted_llm.requests()
    ]
    assert sent == ["hm", None, None]


def test_a_server_that_misses_thoughts_still_gets_those_there_are(
    scripted_llm: Any,
) -> None:
    turns = (
        Turn("user", "Who?"),
        Turn("assistant", "Bell", thoughts="hm"),
        Turn("user", "Where?"),
    )
    scripted_llm.script(
        {"status": 400, "reply": "Missing reasoning_content in message 3"},
        {"reply": "Edinburgh"},
    )
    chat = as_chat(scripted_llm.spec)
    with pytest.raises(ModelCallError, match="Missing reasoning_content"):
        chat.complete(Request(turns))
    chat.complete(Request(turns))
    assert [
        request["messages"][1].get("reasoning_content")
        for request in scripted_llm.requests()
    ] == ["hm", "hm"]
