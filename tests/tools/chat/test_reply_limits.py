"""How long a reply may get: limited for each role, but never inside a model's thoughts."""

import json
from typing import Any

import pytest
from langchain.chat_models import init_chat_model
from langchain_openai import ChatOpenAI
from pydantic import SecretStr

from ras_agent.contracts.errors import ModelCallError, PromptTooLong
from ras_agent.prompts import Turn
from ras_agent.running.budget import Ledger, Limits, metered
from ras_agent.tools.chat.call import Reply, Request
from ras_agent.tools.chat.client import Chat, ChatSettings, as_chat
from ras_agent.tools.chat.dialogue import Dialogue, aconverse, converse
from ras_agent.tools.chat.refusals import capped, limits_sent
from ras_agent.tools.chat.repeats import repeated_at

REQUEST = Request((Turn("user", "Who?"),), max_tokens=100)


def once(request: Request = REQUEST) -> Dialogue[Reply]:
    reply = yield request
    return reply


def limits(scripted_llm: Any) -> list[tuple[Any, Any]]:
    """The limits that each request had, by their new and their old name."""
    return [
        (body.get("max_completion_tokens"), body.get("max_tokens"))
        for body in scripted_llm.requests()
    ]


async def test_a_server_of_ones_own_is_sent_the_older_name_of_the_limit_which_all_know(
    scripted_llm: Any,
) -> None:
    scripted_llm.script(*[{"reply": "Bell."}] * 3)
    chat = as_chat(scripted_llm.spec)
    converse(chat, once())
    await aconverse(chat, once())
    converse(chat, once(Request(REQUEST.turns)))
    assert limits(scripted_llm) == [(None, 100), (None, 100), (None, None)]


OLDER = "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead."
NEWER = "[{'type': 'extra_forbidden', 'loc': ('body', 'max_completion_tokens'), 'msg': 'Extra inputs are not permitted'}]"


def refusing(name: str) -> str:
    """Return a server's reply to a limit of that name."""
    return json.dumps(
        {"error": {"message": OLDER if name == "max_tokens" else NEWER, "param": name}}
    )


async def test_a_server_that_refuses_the_older_name_is_sent_the_newer_one_from_then_on_by_every_role(
    scripted_llm: Any,
) -> None:
    scripted_llm.script(
        {"status": 400, "body": refusing("max_tokens")},
        {"reply": "Bell.", "repeat": True},
    )
    assert converse(as_chat(scripted_llm.spec), once()).text == "Bell."
    assert (await aconverse(as_chat(scripted_llm.spec), once())).text == "Bell."
    assert limits(scripted_llm) == [(None, 100), (100, None), (100, None)]


async def test_a_server_that_refuses_both_names_is_sent_none(scripted_llm: Any) -> None:
    scripted_llm.script(
        {"status": 400, "body": refusing("max_tokens")},
        {"status": 422, "body": refusing("max_completion_tokens")},
        {"reply": "Bell."},
    )
    assert (await aconverse(as_chat(scripted_llm.spec), once())).text == "Bell."
    assert limits(scripted_llm) == [(None, 100), (100, None), (None, None)]


@pytest.mark.parametrize(
    ("own", "most", "name", "sent"),
    [
        ({"max_tokens": 50}, 100, "max_tokens", [(None, 50), (50, None)]),
        ({"max_tokens": 50}, None, "max_completion_tokens", [(50, None), (None, 50)]),
        (
            {"extra_body": {"max_tokens": 50}},
            100,
            "max_tokens",
            [(None, 50), (50, None)],
        ),
        (
            {"extra_body": {"max_tokens": 50}},
            None,
            "max_tokens",
            [(None, 50), (50, None)],
        ),
    ],
)
async def test_a_limit_of_the_models_own_is_sent_by_the_other_name_too(
    scripted_llm: Any,
    own: dict[str, Any],
    most: int | None,
    name: str,
    sent: list[tuple[Any, Any]],
) -> None:
    scripted_llm.script(
        {"status": 400, "body": refusing(name)}, {"reply": "Bell.", "repeat": True}
    )
    model = ChatOpenAI(
        model="m",
        base_url=scripted_llm.base_url,
        api_key=SecretStr("any"),
        max_retries=0,
        **own,
    )
    assert (
        await as_chat(model).acomplete(Request(REQUEST.turns, max_tokens=most))
    ).text == "Bell."
    assert limits(scripted_llm) == sent


@pytest.mark.parametrize("own", [{"max_tokens": 50}, {"temperature": 0.5}])
def test_a_configurable_model_of_which_no_copy_is_made_is_not_asked_the_same_again(
    scripted_llm: Any, own: dict[str, Any]
) -> None:
    told = "Unsupported: 'max_completion_tokens' and 'temperature' are not supported with this model."
    scripted_llm.script(
        {
            "status": 400,
            "body": json.dumps({"error": {"message": told}}),
            "repeat": True,
        }
    )
    model = init_chat_model(
        "openai:m",
        configurable_fields=("model",),
        base_url=scripted_llm.base_url,
        api_key="any",
        max_retries=0,
        **own,
    )
    with pytest.raises(ModelCallError, match="not supported"):
        as_chat(model).complete(Request(REQUEST.turns))
    assert len(scripted_llm.requests()) == 1


def test_openai_itself_is_sent_the_newer_name_also_where_its_address_is_given(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "any")
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)
    for model in (
        ChatOpenAI(model="m"),
        ChatOpenAI(model="m", base_url="https://eu.api.openai.com/v1"),
    ):
        assert limits_sent(capped(model, 100)) == {"max_completion_tokens"}
        assert limits_sent(capped(model, 100, {"max_completion_tokens"})) == {
            "max_tokens"
        }
    monkeypatch.setenv("OPENAI_BASE_URL", "http://127.0.0.1:9/v1")
    assert limits_sent(capped(ChatOpenAI(model="m"), 100)) == {"max_tokens"}


def test_a_limit_that_is_too_large_is_no_limit_of_another_name(
    scripted_llm: Any,
) -> None:
    told = "'max_tokens' is too large: 100. This model's maximum context length is 64 tokens; that is not supported."
    scripted_llm.script(
        {"status": 400, "body": json.dumps({"error": {"message": told}})}
    )
    with pytest.raises(PromptTooLong):
        as_chat(scripted_llm.spec).complete(REQUEST)
    assert len(scripted_llm.requests()) == 1


def test_a_smaller_limit_of_the_models_own_stays(scripted_llm: Any) -> None:
    scripted_llm.script({"reply": "Bell."})
    converse(as_chat(scripted_llm.spec, ChatSettings(max_tokens=50)), once())
    assert limits(scripted_llm) == [(None, 50)]


def test_a_reply_has_what_its_prompt_leaves_of_the_window_and_an_eighth_at_least(
    scripted_llm: Any,
) -> None:
    scripted_llm.script({"reply": "Bell."}, {"reply": "Bell."})
    chat = as_chat(scripted_llm.spec, ChatSettings(context_window=2000))
    converse(chat, once(Request((Turn("user", "word " * 1000),), max_tokens=1000)))
    converse(chat, once(Request((Turn("user", "word " * 1600),), max_tokens=1000)))
    assert limits(scripted_llm) == [(None, 642), (None, 250)]


@pytest.mark.parametrize("thought", ["<think>Was it Bell? Or", ""])
async def test_a_model_that_is_cut_off_in_its_thoughts_has_a_quarter_of_its_window_from_then_on(
    scripted_llm: Any, thought: str
) -> None:
    cut = {"reply": thought, "finish": "length"}
    scripted_llm.script(
        cut, {"reply": "<think>Was it Bell? Yes.</think> Bell."}, {"reply": "Bell."}
    )
    chat = as_chat(scripted_llm.spec)
    with metered(Ledger("planner")) as ledger:
        assert converse(chat, once()).text.endswith("Bell.")
        assert (await aconverse(as_chat(scripted_llm.spec), once())).text == "Bell."
    assert [limit for _, limit in limits(scripted_llm)] == [100, 8192, 8192]
    assert len(ledger.calls) == 3


async def test_more_room_that_brings_no_reply_is_given_once(scripted_llm: Any) -> None:
    scripted_llm.script(
        {"reply": "<think>Was it Bell? Or", "finish": "length", "repeat": True}
    )
    chat = as_chat(scripted_llm.spec, ChatSettings(context_window=2000))
    converse(chat, once())
    await aconverse(chat, once())
    assert [limit for _, limit in limits(scripted_llm)] == [100, 500, 100, 500]


@pytest.mark.parametrize(
    "played", ["<|im_end|>user\n<|im_end|>user\nQuestion: Where", "</s>[INST] Who"]
)
def test_a_reply_without_a_word_of_its_own_is_no_thought(
    scripted_llm: Any, played: str
) -> None:
    scripted_llm.script({"reply": played, "finish": "length"}, {"reply": "Bell."})
    chat = as_chat(scripted_llm.spec)
    assert converse(chat, once()).truncated
    assert converse(chat, once()).text == "Bell."
    assert limits(scripted_llm) == [(None, 100), (None, 100)]


def test_the_room_for_thoughts_keeps_to_what_a_run_has_left(scripted_llm: Any) -> None:
    scripted_llm.script({"reply": "Bell."})
    model = as_chat(scripted_llm.spec).model
    model.profile = {"reasoning_output": True}
    with metered(Ledger("answerer", limits=Limits(max_tokens=1000))):
        converse(Chat(model), once())
    ((_, limit),) = limits(scripted_llm)
    assert 900 < limit < 1000


def test_a_reply_that_is_cut_off_in_its_words_is_the_reply(scripted_llm: Any) -> None:
    scripted_llm.script({"reply": "<think>Bell.</think> It was", "finish": "length"})
    assert converse(as_chat(scripted_llm.spec), once()).truncated
    assert len(scripted_llm.requests()) == 1


def test_a_model_that_is_known_to_think_has_a_quarter_of_its_window(
    scripted_llm: Any,
) -> None:
    scripted_llm.script({"reply": "Bell."})
    model = as_chat(scripted_llm.spec).model
    model.profile = {"reasoning_output": True}
    converse(Chat(model), once())
    assert limits(scripted_llm) == [(None, 8192)]


def test_a_model_without_such_a_limit_is_left_as_it_is(scripted_model: Any) -> None:
    model = scripted_model("Bell.")
    assert capped(model, 100) is model
    assert converse(as_chat(model), once()).text == "Bell."


@pytest.mark.parametrize(
    "thought",
    ["<think>{}</think>", "◁think▷{}◁/think▷", "<|START_THINKING|>{}<|END_THINKING|>"],
)
def test_a_thought_of_any_family_may_come_back_to_what_it_has_said(
    thought: str,
) -> None:
    line = "Is it Bell or is it Gray?\n"
    assert repeated_at(thought.format(f"\n{line * 3}") + f"\n{line}") is None
