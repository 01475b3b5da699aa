"""OpenAI's Responses protocol with OpenAI's own client."""

from __future__ import annotations

from typing import Any

import httpx
import pytest

openai = pytest.importorskip("openai", reason="needs the extra 'openai'")

QUESTION = "Who invented the telephone?"


@pytest.fixture
def client(sample_server: str) -> Any:
    """OpenAI's client of the server of the sample."""
    http = httpx.Client(trust_env=False)
    with openai.OpenAI(
        base_url=f"{sample_server}/v1", api_key="none", http_client=http, max_retries=0
    ) as client:
        yield client


@pytest.mark.parametrize(
    "asked",
    [
        QUESTION,
        [{"role": "user", "content": QUESTION}],
        [
            {
                "type": "message",
                "role": "user",
                "content": [{"type": "input_text", "text": QUESTION}],
            }
        ],
    ],
)
def test_a_response_has_the_answer_and_its_citations(client: Any, asked: Any) -> None:
    response = client.responses.create(
        model="ras-agent", input=asked, instructions="Be brief."
    )
    assert (response.status, response.output_text.partition("\n")[0]) == (
        "completed",
        "Alexander Graham Bell [1]",
    )
    (cited,) = response.output[0].content[0].annotations
    assert (cited.type, cited.title) == ("url_citation", "Telephone")
    assert response.usage.total_tokens == 0


def test_a_stream_has_the_events_from_which_the_client_makes_the_response(
    client: Any,
) -> None:
    with client.responses.stream(model="ras-agent", input=QUESTION) as stream:
        events = list(stream)
        final = stream.get_final_response()
    assert [events[0].type, events[-1].type] == [
        "response.created",
        "response.completed",
    ]
    assert [event.sequence_number for event in events] == list(range(len(events)))
    written = "".join(
        event.delta for event in events if event.type == "response.output_text.delta"
    )
    assert written == final.output_text
    assert written.startswith("Alexander Graham Bell [1]")


def test_a_response_goes_on_with_an_earlier_one(client: Any) -> None:
    first = client.responses.create(model="ras-agent", input=QUESTION)
    second = client.responses.create(
        model="ras-agent", input="Where was he born?", previous_response_id=first.id
    )
    assert second.output_text.startswith("Edinburgh [1]")
    assert second.previous_response_id == first.id


@pytest.mark.parametrize("name", ["resp_nothere_1", "chatcmpl-7", "resp_"])
def test_an_earlier_response_that_is_not_there_is_an_error(
    client: Any, name: str
) -> None:
    with pytest.raises(openai.NotFoundError):
        client.responses.create(
            model="ras-agent", input=QUESTION, previous_response_id=name
        )


def test_a_response_that_is_not_stored_cannot_be_gone_on_with(client: Any) -> None:
    first = client.responses.create(model="ras-agent", input=QUESTION, store=False)
    with pytest.raises(openai.NotFoundError):
        client.responses.create(
            model="ras-agent", input="Where was he born?", previous_response_id=first.id
        )


def test_options_of_another_kind_are_refused(sample_server: str) -> None:
    asked = {"model": "ras-agent", "input": QUESTION}
    chat = {"model": "ras-agent", "messages": [{"role": "user", "content": QUESTION}]}
    for path, body in (
        ("responses", {**asked, "text": "plain"}),
        ("responses", {**asked, "text": {"format": "plain"}}),
        ("chat/completions", {**chat, "stop": 1}),
    ):
        told = httpx.post(f"{sample_server}/v1/{path}", json=body, trust_env=False)
        assert (told.status_code, told.json()["error"]["code"]) == (
            400,
            "invalid_request",
        )


@pytest.mark.parametrize(
    "form",
    [
        {
            "tools": [
                {"type": "function", "name": "f", "parameters": {}, "strict": False}
            ]
        },
        {"text": {"format": {"type": "json_object"}}},
    ],
)
def test_another_form_than_text_is_refused(client: Any, form: dict[str, Any]) -> None:
    with pytest.raises(openai.BadRequestError, match="leave"):
        client.responses.create(model="ras-agent", input=QUESTION, **form)


@pytest.mark.parametrize(
    "options",
    [
        {"stream": None},
        {"sources": None},
        {"max_tokens": -1},
        {"max_completion_tokens": 0},
        {"stop": ""},
        {"stop": [""]},
        {"stop": None},
    ],
)
def test_null_and_no_limit_are_options_that_were_left_out(
    sample_server: str, options: dict[str, Any]
) -> None:
    asked = {
        "model": "ras-agent",
        "messages": [{"role": "Human", "content": [QUESTION]}],
        **options,
    }
    reply = httpx.post(
        f"{sample_server}/v1/chat/completions", json=asked, trust_env=False
    )
    assert reply.json()["choices"][0]["message"]["content"].startswith(
        "Alexander Graham Bell [1]"
    )
