"""The parts of a request that servers refuse, in the words of some forty of them: it is left out, and that is remembered."""

import json
from typing import Any

import pytest
from langchain_openai import ChatOpenAI
from pydantic import SecretStr

from ras_agent.contracts.errors import ModelCallError, RasError
from ras_agent.prompts import Turn
from ras_agent.tools.chat.call import Request
from ras_agent.tools.chat.client import ChatSettings, as_chat
from ras_agent.tools.chat.http import ErrorStatus
from ras_agent.tools.chat.refusals import accepted_turns, longest_allowed, refused_part
from ras_agent.tools.chat.retry import RetryPolicy
from tests.messages import says

TURNS = (Turn("system", "Be brief."), Turn("user", "Who invented the telephone?"))
ONCE = ChatSettings(temperature=0.0, retry=RetryPolicy(attempts=1))

# status, words, the part that is left out
SYSTEM = [
    (400, "System role not supported"),
    (500, "Jinja Exception: System role not supported"),
    (500, "Internal Server Error"),
    (400, "Conversation roles must alternate user/assistant/user/assistant/..."),
    (
        400,
        "After the optional system message, conversation roles must alternate user and assistant roles",
    ),
    (
        400,
        "Unsupported value: 'messages[0].role' does not support 'system' with this model.",
    ),
    (400, "Developer instruction is not enabled for models/gemma-3-27b-it"),
    (
        400,
        "This model doesn't support system messages. Try again without system messages",
    ),
    (400, "role 'system' is not supported on this model"),
    (400, "'system' is not one of ['user', 'assistant'] - 'messages.0.role'"),
    (422, "messages.0.role: Input should be 'user' or 'assistant'"),
    (
        400,
        'messages: Unexpected role "system". The Messages API accepts a top-level `system` parameter',
    ),
    (400, "模型不支持的 message role: system"),
    (400, "the role of message with even index in the messages must be assistant"),
    (500, "Only user and assistant roles are supported!"),
]
TEMPERATURE = [
    (422, "Input validation error: `temperature` must be strictly positive"),
    (400, "`temperature` (=0) has to be a strictly positive float"),
    (400, "temperature must be in (0.0, 2.0]"),
    (422, "body.temperature: Input should be greater than 0"),
    (400, "temperature is not supported with this model"),
    (422, "Unsupported parameter: 'temperature' is not supported with this model."),
    (
        400,
        "Unsupported value: 'temperature' does not support 0 with this model. Only the default (1) is supported.",
    ),
    (422, "Invalid params: temperature must be in range (0, +inf)"),
    (400, "`temperature` is deprecated for this model."),
    (
        500,
        "litellm.APIConnectionError: OciException - Argument not supported on this model: temperature",
    ),
]
STOP = [
    (400, "Unsupported parameter: 'stop' is not supported with this model."),
    (400, "Argument not supported on this model: stop"),
    (400, "Model grok-4.5 does not support parameter stop."),
    (400, "stop_sequences: Extra inputs are not permitted"),
]
STREAM_OPTIONS = [
    (400, "Unrecognized request argument supplied: stream_options"),
    (422, "Extra inputs are not permitted: stream_options"),
    (400, "Unknown parameter: 'stream_options.include_usage'"),
]
STREAM = [
    (
        400,
        "Unsupported value: 'stream' does not support true with this model. Only the default (false) is supported.",
    ),
    (400, "Your organization must be verified to stream this model."),
    (500, "Cannot use tools with stream"),
    (501, "streaming is not supported by this model"),
]
WHOLE = [
    (
        400,
        "This model only support stream mode, please enable the stream parameter to access the model. ",
    ),
    (400, "parameter.enable_thinking must be set to false for non-streaming calls"),
    (400, "Stream must be set to true"),
    (422, "Non-streaming requests are not supported"),
]


def refuse(scripted_llm: Any, status: int, words: str) -> None:
    """Let the server refuse one request, and reply to the next ones."""
    error = json.dumps({"error": {"message": words, "type": "invalid_request_error"}})
    scripted_llm.script(
        {"status": status, "body": error}, {"reply": "Bell", "repeat": True}
    )


async def ask_twice(scripted_llm: Any, request: Request) -> list[dict[str, Any]]:
    """Ask, then ask again as another role; return the requests."""
    assert (await as_chat(scripted_llm.spec, ONCE).acomplete(request)).text == "Bell"
    assert as_chat(scripted_llm.spec, ONCE).complete(request).text == "Bell"
    first, *others = scripted_llm.requests()
    assert len(others) == 2
    assert others[0] == others[1]
    return [first, others[0]]


@pytest.mark.parametrize(("status", "words"), SYSTEM)
async def test_the_systems_text_goes_to_the_head_of_the_users_first_turn(
    scripted_llm: Any, status: int, words: str
) -> None:
    refuse(scripted_llm, status, words)
    first, second = await ask_twice(scripted_llm, Request(TURNS))
    assert [message["role"] for message in first["messages"]] == ["system", "user"]
    assert second["messages"] == [
        {"role": "user", "content": "Be brief.\n\nWho invented the telephone?"}
    ]


@pytest.mark.parametrize(
    ("status", "words", "name"),
    [
        *((*told, "temperature") for told in TEMPERATURE),
        *((*told, "stop") for told in STOP),
        *((*told, "stream_options") for told in STREAM_OPTIONS),
        *((*told, "stream") for told in STREAM),
    ],
)
async def test_a_field_that_a_server_refuses_is_left_out(
    scripted_llm: Any, status: int, words: str, name: str
) -> None:
    refuse(scripted_llm, status, words)
    heard: list[str] = []
    first, second = await ask_twice(
        scripted_llm, Request(TURNS, heard.append, stop=("<passage>",))
    )
    gone = {name, "stream_options"} if name == "stream" else {name}
    assert second == {
        field: value for field, value in first.items() if field not in gone
    }
    assert heard[-1] == "Bell"


@pytest.mark.parametrize(
    ("part", "words"),
    [
        (
            "roles",
            "Invalid value: 'system'. Supported values are: 'user' and 'assistant'.",
        ),
        ("roles", "Expected user role at index 0, but got system"),
        ("roles", "system_instruction is not supported by this model"),
        ("roles", "不支持 system 角色"),
        ("roles", "A conversation must start with a user message."),
        ("prefill", "The final message must be from the user when thinking is enabled"),
        ("prefill", "Cannot have 2 or more assistant messages at the end of the list."),
        ("reasoning_effort", '"gemma3:1b" does not support thinking'),
        ("chat_template_kwargs", "enable_thinking is not supported by this model"),
        (
            "whole",
            "enable_thinking must be set to false for non-streaming calls",
        ),
        (
            "response_format",
            "response_mime_type is not supported with function calling",
        ),
        (
            "prefill",
            "This model does not support assistant message prefill. It must end with a user message.",
        ),
        (
            "prefill",
            "Expected last role User or Tool (or Assistant with prefix True) for serving but got assistant",
        ),
        (
            "whole",
            "Streaming is required for operations that may take longer than 10 minutes",
        ),
        ("whole", "Please use stream mode to call this model"),
        ("whole", "仅支持流式输出, stream 必须为 true"),
        ("stop", "`stop` supports up to 4 items, but received 7"),
        ("stop", "Invalid 'stop': array too long."),
        (
            "tool_choice",
            '"auto" tool choice requires --enable-auto-tool-choice and --tool-call-parser to be set',
        ),
        ("response_format", "This response_format type is unavailable now"),
        (
            "response_format",
            "Invalid schema for response_format 'reply': 'additionalProperties' is required",
        ),
        (
            "max_tokens",
            "Unsupported parameter: 'max_tokens' is not supported with this model.",
        ),
        ("", "The model is loading, please try again later"),
        ("", "messages: text content blocks must be non-empty"),
    ],
)
def test_a_part_is_known_by_the_words_of_other_servers(part: str, words: str) -> None:
    error = ErrorStatus(400, {}, json.dumps({"error": {"message": words}}))
    sent = {
        "prefill",
        "roles",
        "whole",
        "stop",
        "tool_choice",
        "response_format",
        "max_tokens",
        "temperature",
        "reasoning_effort",
        "chat_template_kwargs",
    }
    assert (refused_part(error, sent), longest_allowed(error, 2048)) == (part, None)


@pytest.mark.parametrize(("status", "words"), WHOLE)
async def test_a_server_that_only_streams_is_asked_for_a_stream_which_is_gathered(
    scripted_llm: Any, status: int, words: str
) -> None:
    refuse(scripted_llm, status, words)
    first, second = await ask_twice(scripted_llm, Request(TURNS))
    assert ("stream" in first, second["stream"]) == (False, True)


@pytest.mark.parametrize(
    ("status", "words", "longest"),
    [
        (400, "Range of max_tokens should be [1, 1024]", 1024),
        (
            400,
            "Invalid max_tokens value, the valid range of max_tokens is [1,1024]",
            1024,
        ),
        (400, "max_tokens (current value: 4096) must be between 0 and 4000 ", 4000),
        (
            400,
            "The parameter max_tokens is not valid: expected a value <= 2048, but got 4096 instead.",
            2048,
        ),
        (
            400,
            "max_tokens is too large: 4096. This model supports at most 2,048 completion tokens.",
            2048,
        ),
        (
            400,
            "maxOutputTokens value of 4096 but the supported range is from 1 (inclusive) to 2049 (exclusive)",
            2048,
        ),
        (400, "The maximum tokens you requested exceeds the model limit of 2048", 2048),
        (
            402,
            "This request requires more credits, or fewer max_tokens. You requested 4096, but can only afford 512",
            512,
        ),
    ],
)
async def test_a_limit_that_is_too_high_is_lowered(
    scripted_llm: Any, status: int, words: str, longest: int
) -> None:
    refuse(scripted_llm, status, words)
    first, second = await ask_twice(scripted_llm, Request(TURNS, max_tokens=4096))
    assert (first["max_tokens"], second["max_tokens"]) == (4096, longest)


async def test_a_limit_that_is_missing_is_sent(scripted_llm: Any) -> None:
    refuse(scripted_llm, 422, "max_tokens: Field required")
    _, second = await ask_twice(scripted_llm, Request(TURNS))
    assert second["max_tokens"] == 8192


async def test_several_refusals_in_turn_are_all_kept_to(scripted_llm: Any) -> None:
    for words in (
        "temperature is not supported",
        "Unknown field: stop",
        "System role not supported",
    ):
        scripted_llm.script({"status": 400, "reply": words})
    scripted_llm.script({"reply": "Bell", "repeat": True})
    chat = as_chat(scripted_llm.spec, ONCE)
    assert chat.complete(Request(TURNS, stop=("<",))).text == "Bell"
    last = scripted_llm.requests()[-1]
    assert last.keys() == {"model", "messages"}
    assert len(last["messages"]) == 1


def test_what_is_bound_to_a_model_of_langchains_is_left_out_too(
    scripted_llm: Any,
) -> None:
    scripted_llm.script(
        {"status": 400, "reply": "response_format is not supported"},
        {"status": 400, "reply": "Unknown field tool_choice"},
        {"status": 400, "reply": "top_p must be greater than 0"},
        {"status": 422, "reply": "Extra inputs are not permitted: min_p"},
        {"reply": "Bell", "repeat": True},
    )
    key = SecretStr("any")
    model: Any = ChatOpenAI(
        model="m",
        base_url=scripted_llm.base_url,
        api_key=key,
        max_retries=0,
        top_p=0.0,
        extra_body={"min_p": 1, "x": 1},
    )
    bound = model.bind(response_format={"type": "json_object"}, tool_choice="auto")
    assert as_chat(bound).complete(Request(TURNS)).text == "Bell"
    last = scripted_llm.requests()[-1]
    assert last.keys() & {"response_format", "tool_choice", "top_p", "min_p", "x"} == {
        "x"
    }


def test_details_of_another_field_that_show_the_whole_request_refuse_nothing_of_it(
    scripted_llm: Any,
) -> None:
    detail = {
        "loc": ["body", "user"],
        "msg": "Input should be a number",
        "input": {"temperature": 0, "role": "system"},
    }
    scripted_llm.script({"status": 422, "body": json.dumps({"detail": [detail]})})
    with pytest.raises(ModelCallError, match=says("422", "Input should be a number")):
        as_chat(scripted_llm.spec, ONCE).complete(Request(TURNS))
    assert len(scripted_llm.requests()) == 1


@pytest.mark.parametrize(
    ("status", "words"),
    [
        (400, "messages: Field required"),
        (400, "temperature: Field required"),
        (401, "System role not supported"),
    ],
)
def test_another_error_is_raised_at_once(
    scripted_llm: Any, status: int, words: str
) -> None:
    refuse(scripted_llm, status, words)
    with pytest.raises(RasError, match=says(words)):
        as_chat(scripted_llm.spec, ONCE).complete(Request(TURNS))
    assert len(scripted_llm.requests()) == 1


def test_a_server_that_fails_without_a_word_for_another_reason_keeps_its_system_role(
    scripted_llm: Any,
) -> None:
    broken = {"status": 500, "reply": "Internal Server Error"}
    scripted_llm.script(broken, broken, {"reply": "Bell", "repeat": True})
    chat = as_chat(scripted_llm.spec, ONCE)
    with pytest.raises(ModelCallError):
        chat.complete(Request(TURNS))
    chat.complete(Request(TURNS))
    roles = [
        [message["role"] for message in request["messages"]]
        for request in scripted_llm.requests()
    ]
    assert roles == [["system", "user"], ["user"], ["system", "user"]]


def test_a_server_that_wants_turns_to_alternate_gets_turns_of_one_role_as_one() -> None:
    turns = (
        Turn("user", "a"),
        Turn("assistant", "b"),
        Turn("system", "c"),
        Turn("user", "d"),
    )
    assert accepted_turns(turns, {"roles"}) == (
        Turn("user", "a"),
        Turn("assistant", "b"),
        Turn("user", "c\n\nd"),
    )
    assert accepted_turns(turns, ()) == turns
    *_, said, last = accepted_turns((*turns, Turn("assistant", "e")), {"prefill"})
    assert (said, last.role) == (Turn("assistant", "e"), "user")
