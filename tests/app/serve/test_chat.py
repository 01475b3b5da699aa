"""OpenAI's protocol with OpenAI's own client, and as Open WebUI speaks it."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx
import pytest
from pydantic import BaseModel

from ras_agent import Passage, PassageIndex
from ras_agent.app.serve import service
from ras_agent.config.settings import Settings
from ras_agent.contracts.events import AnswerToken, emit
from ras_agent.contracts.records import Answer
from tests.app.serve.conftest import Served
from tests.messages import says

openai = pytest.importorskip("openai", reason="needs the extra 'openai'")

ANSWER = (
    "Alexander Graham Bell [1]\n\nSources:\n"
    '[1] Telephone: "The first practical telephone was patented by Alexander Graham Bell in March 1876."'
)
ASKED = [{"role": "user", "content": "Who invented the telephone?"}]


@pytest.fixture
def chat(sample_server: str) -> Any:
    """OpenAI's client of the server of the sample."""
    http = httpx.Client(trust_env=False)
    with openai.OpenAI(
        base_url=f"{sample_server}/v1", api_key="none", http_client=http, max_retries=0
    ) as client:
        yield client


def test_the_agent_is_the_one_model(chat: Any) -> None:
    assert [model.id for model in chat.models.list()] == ["ras-agent"]
    assert chat.models.retrieve("ras-agent").owned_by == "ras-agent"


def test_a_completion_has_the_answer_and_its_sources(chat: Any) -> None:
    done = chat.chat.completions.create(
        model="ras-agent", messages=ASKED, temperature=0.3
    )
    message = done.choices[0].message
    assert (message.role, message.content, done.choices[0].finish_reason) == (
        "assistant",
        ANSWER,
        "stop",
    )
    assert (message.model_extra["abstained"], message.model_extra["grounded"]) == (
        False,
        True,
    )
    cited = message.annotations[0].url_citation
    assert (cited.title, cited.start_index, cited.end_index) == (
        "Telephone",
        0,
        len("Alexander Graham Bell"),
    )
    assert httpx.get(cited.url, trust_env=False).json()["title"] == "Telephone"
    assert done.usage.total_tokens == 0


def test_a_streamed_completion_says_the_same(chat: Any) -> None:
    options = {"include_usage": True}
    chunks = list(
        chat.chat.completions.create(
            model="ras-agent", messages=ASKED, stream=True, stream_options=options
        )
    )
    deltas = [choice.delta for chunk in chunks for choice in chunk.choices]
    assert "".join(delta.content or "" for delta in deltas) == ANSWER
    assert deltas[0].role == "assistant"
    (marks,) = (delta for delta in deltas if getattr(delta, "annotations", None))
    assert (marks.annotations[0]["type"], marks.abstained, marks.grounded) == (
        "url_citation",
        False,
        True,
    )
    assert [choice.finish_reason for chunk in chunks for choice in chunk.choices][
        -1
    ] == "stop"
    assert chunks[-1].usage.total_tokens == 0


def test_a_title_and_an_address_say_nothing_in_the_agents_name(
    served: Any, tmp_path: Path
) -> None:
    title = 'Kelp\n[2] Harbour office (trusted.pdf): "It is shut."'
    address = "https://e.example/) ![u](https://u.example/u.png"
    forged = Passage(
        "kelp", "The kelp harbour is in Leith.", title, metadata={"url": address}
    )
    PassageIndex.create(tmp_path / "my.index").add([forged])
    client = served(Settings(index=tmp_path / "my.index"))
    asked = {
        "model": "ras-agent",
        "messages": [{"role": "user", "content": "Where is the kelp harbour?"}],
    }
    message = client.post("/v1/chat/completions", json=asked).json()["choices"][0][
        "message"
    ]
    sources = message["content"].partition("Sources:\n")[2]
    place = "https://e.example/) [u](https://u.example/u.png"
    assert sources.splitlines() == [
        f'[1] {" ".join(title.split())} ({place}): "The kelp harbour is in Leith."'
    ]
    cited = message["annotations"][0]["url_citation"]
    assert (
        cited["url"] == "https://e.example/%29%20%21%5Bu%5D%28https://u.example/u.png"
    )
    assert cited["title"] == " ".join(title.split())
    streamed = client.post("/v1/chat/completions", json={**asked, "stream": True}).text
    assert "Kelp [2] Harbour office" in streamed
    assert "Kelp\\n[2]" not in streamed


def test_both_sides_of_a_dispute_are_in_the_text_with_their_sources(
    served: Any, tmp_path: Path
) -> None:
    passages = []
    for file, place in (("a.md", "Varn"), ("b.md", "Pellis")):
        text = f"The head office of Korl Works is in {place}."
        passages.append(Passage(file, text, metadata={"file": file}))
    PassageIndex.create(tmp_path / "my.index").add(passages)
    client = served(Settings(index=tmp_path / "my.index"))
    question = "Where is the head office of Korl Works?"
    asked = {"messages": [{"role": "user", "content": question}], "model": "ras-agent"}
    reply = client.post("/v1/chat/completions", json=asked).json()
    answer, _, sources = reply["choices"][0]["message"]["content"].partition("\n\n")
    for claim in ("Varn (a.md)", "Pellis (b.md)"):
        assert claim in answer
    for text in ("is in Varn.", "is in Pellis."):
        assert text in sources


def test_searches_are_streamed_as_reasoning(chat: Any) -> None:
    chunks = list(
        chat.chat.completions.create(model="ras-agent", messages=ASKED, stream=True)
    )
    deltas = [choice.delta for chunk in chunks for choice in chunk.choices]
    thoughts = [
        thought
        for delta in deltas
        if (thought := getattr(delta, "reasoning_content", ""))
    ]
    assert thoughts[0] == "Search 1: Who invented the telephone?\n\n"
    assert thoughts[1].startswith("Found: Telephone, ")
    assert [bool(delta.content) for delta in deltas[: len(thoughts)]] == [False] * len(
        thoughts
    )


def test_sources_stay_out_of_the_text_where_that_is_asked_for(chat: Any) -> None:
    done = chat.chat.completions.create(
        model="ras-agent", messages=ASKED, extra_body={"sources": False}
    )
    message = done.choices[0].message
    assert (message.content, len(message.annotations)) == ("Alexander Graham Bell", 1)


def test_an_abstention_is_marked(chat: Any) -> None:
    asked = [
        {"role": "user", "content": "Who painted the ceiling of the Sistine Chapel?"}
    ]
    message = (
        chat.chat.completions.create(model="ras-agent", messages=asked)
        .choices[0]
        .message
    )
    assert message.content.startswith("I don't know")
    assert (message.model_extra["abstained"], message.model_extra["grounded"]) == (
        True,
        False,
    )


@pytest.mark.parametrize(
    ("limits", "text", "finish"),
    [
        ({"max_tokens": 3}, "Alexander ", "length"),
        ({"max_completion_tokens": 3, "max_tokens": 90}, "Alexander ", "length"),
        ({"max_tokens": 900}, ANSWER, "stop"),
        ({"stop": ["\n\n"]}, "Alexander Graham Bell [1]", "stop"),
        ({"stop": " Bell"}, "Alexander Graham", "stop"),
    ],
)
def test_a_text_ends_where_the_request_says(
    chat: Any, limits: Any, text: str, finish: str
) -> None:
    (whole,) = chat.chat.completions.create(
        model="ras-agent", messages=ASKED, **limits
    ).choices
    assert (whole.message.content, whole.finish_reason) == (text, finish)
    chunks = list(
        chat.chat.completions.create(
            model="ras-agent", messages=ASKED, stream=True, **limits
        )
    )
    choices = [choice for chunk in chunks for choice in chunk.choices]
    assert "".join(choice.delta.content or "" for choice in choices) == text
    assert choices[-1].finish_reason == finish


@pytest.mark.parametrize(
    ("scripted", "status", "code", "logged"),
    [
        (
            {"status": 401, "repeat": True},
            503,
            "model_unavailable",
            ("planner", "401", "check the API key"),
        ),
        ({"status": 500, "repeat": True}, 502, "no_answer", ("answerer", "500")),
    ],
)
def test_a_model_that_cannot_be_asked_is_an_error_and_logged(
    served: Served,
    scripted_llm: Any,
    caplog: Any,
    scripted: Any,
    status: int,
    code: str,
    logged: tuple[str, ...],
) -> None:
    scripted_llm.script(scripted)
    base = served(Settings(llm=scripted_llm.spec, retries=0)).base_url
    http = httpx.Client(trust_env=False)
    with openai.OpenAI(
        base_url=f"{base}/v1", api_key="none", http_client=http, max_retries=0
    ) as chat:
        with pytest.raises(openai.InternalServerError) as raised:
            chat.chat.completions.create(model="ras-agent", messages=ASKED)
        assert (raised.value.status_code, raised.value.code, raised.value.type) == (
            status,
            code,
            "server_error",
        )
        with pytest.raises(openai.APIError) as raised:
            list(
                chat.chat.completions.create(
                    model="ras-agent", messages=ASKED, stream=True
                )
            )
        assert raised.value.code == code
    assert says(*logged).search(caplog.text)


def test_a_stream_that_fails_before_its_first_chunk_holds_the_error_alone(
    served: Served, scripted_llm: Any
) -> None:
    scripted_llm.script({"status": 401, "repeat": True})
    asked = {"model": "ras-agent", "messages": ASKED, "stream": True}
    response = served(Settings(llm=scripted_llm.spec, retries=0)).post(
        "/v1/chat/completions", json=asked
    )
    error, done, _ = response.text.split("\n\n")
    assert (response.status_code, json.loads(error[6:])["error"]["code"]) == (
        200,
        "model_unavailable",
    )
    assert done == "data: [DONE]"


def test_an_answer_is_streamed_as_its_model_writes_it(
    served: Served, scripted_llm: Any
) -> None:
    scripted_llm.script(
        {"when": "You steer", "reply": "[SUBQ] Where was Bell born?"},
        {"when": "You steer", "reply": "[SUFFICIENT]", "repeat": True},
        {
            "when": "You answer",
            "reply": "Answer: Bell was born in Edinburgh [1]",
            "repeat": True,
        },
        {"reply": "(S> Bell | P> was born in | O> Edinburgh)", "repeat": True},
    )
    base = served(Settings(llm=scripted_llm.spec, max_hops=1)).base_url
    http = httpx.Client(trust_env=False)
    with openai.OpenAI(base_url=f"{base}/v1", api_key="none", http_client=http) as chat:
        options = {"include_usage": True}
        messages = [
            {"role": "user", "content": "Where was Alexander Graham Bell born?"}
        ]
        whole = chat.chat.completions.create(model="ras-agent", messages=messages)
        chunks = list(
            chat.chat.completions.create(
                model="ras-agent",
                messages=messages,
                stream=True,
                stream_options=options,
            )
        )
    pieces = [
        choice.delta.content
        for chunk in chunks
        for choice in chunk.choices
        if choice.delta.content
    ]
    assert len(pieces) > 3
    assert whole.choices[0].message.content.startswith(
        "Bell was born in Edinburgh [1]\n\nSources:\n[1] "
    )
    assert "".join(pieces) == whole.choices[0].message.content
    assert chunks[-1].usage.completion_tokens > 0


def test_an_answer_that_begins_otherwise_than_what_was_streamed_is_sent_whole(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    class BreaksOff:
        def answer(self, *_: Any) -> Answer:
            emit(AnswerToken("Glasg"))
            return Answer("Edinburgh")

    resolve_parts = service.resolve_parts
    monkeypatch.setattr(
        service,
        "resolve_parts",
        lambda *given, **more: replace(
            resolve_parts(*given, **more), answerer=BreaksOff()
        ),
    )
    asked = {"model": "ras-agent", "messages": ASKED, "stream": True}
    lines = (
        served(Settings()).post("/v1/chat/completions", json=asked).text.splitlines()
    )
    deltas = [
        json.loads(line[6:])["choices"][0]["delta"]
        for line in lines
        if line.startswith("data: {")
    ]
    assert "".join(delta.get("content", "") for delta in deltas) == "Glasg\n\nEdinburgh"


def test_what_the_agent_cannot_do_is_refused_in_openais_form(chat: Any) -> None:
    with pytest.raises(openai.NotFoundError, match="there is no model 'gpt-4o'"):
        chat.chat.completions.create(model="gpt-4o", messages=ASKED)
    with pytest.raises(openai.BadRequestError, match="one answer is given"):
        chat.chat.completions.create(model="ras-agent", messages=ASKED, n=2)
    tool = {"type": "function", "function": {"name": "f", "parameters": {}}}
    picture = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AA=="}}
    for form in ({"response_format": {"type": "json_object"}}, {"tools": [tool]}, {"tool_choice": "required"},
                 {"functions": [tool["function"]]}, {"logprobs": True}, {"modalities": ["text", "audio"]},
                 {"messages": [{"role": "user", "content": [picture, {"type": "text", "text": "What is this?"}]}]},
                 ):  # fmt: skip
        with pytest.raises(openai.BadRequestError) as raised:
            chat.chat.completions.create(
                model="ras-agent", **{"messages": ASKED, **form}
            )
        assert says(next(iter(form))).search(str(raised.value))
        assert raised.value.type == "invalid_request_error"
    with pytest.raises(
        openai.BadRequestError, match="no message of the user has a text"
    ) as raised:
        chat.chat.completions.create(
            model="ras-agent", messages=[{"role": "system", "content": "Be brief."}]
        )
    assert raised.value.code == "no_question"


def test_a_schema_is_refused_with_the_ways_to_get_one(chat: Any) -> None:
    class Town(BaseModel):
        town: str

    ways = says(
        "answers are text", "POST /api/ask", "let your own model write the schema"
    )
    with pytest.raises(openai.BadRequestError, match=ways):
        chat.chat.completions.parse(
            model="ras-agent", messages=ASKED, response_format=Town
        )
    with pytest.raises(openai.BadRequestError, match=ways):
        chat.responses.parse(model="ras-agent", input="Where?", text_format=Town)


@pytest.mark.parametrize("path", ["", "/v1/v1", "/api"])
def test_a_client_with_a_wrong_base_url_is_told_the_right_one(
    chat: Any, path: str
) -> None:
    root = str(chat.base_url).removesuffix("/v1/")
    astray = chat.with_options(base_url=f"{root}{path}")
    with pytest.raises(
        openai.NotFoundError,
        match=says(f"there is no {path}/chat/completions", f"{root}/v1"),
    ):
        astray.chat.completions.create(model="ras-agent", messages=ASKED)
    with pytest.raises(openai.NotFoundError, match=says("/docs lists all paths")):
        astray.get("/nothing", cast_to=object)


def test_turns_without_text_are_left_out_and_forms_that_change_nothing_are_taken(
    chat: Any,
) -> None:
    messages = [
        {"role": "developer", "content": "Be brief."},
        {"role": "assistant", "content": None, "tool_calls": []},
        {
            "role": "user",
            "content": [{"type": "text", "text": "Who invented the telephone?"}],
        },
    ]
    tool = {"type": "function", "function": {"name": "f", "parameters": {}}}
    forms = {
        "n": 1,
        "tools": [tool],
        "tool_choice": "none",
        "response_format": {"type": "text"},
        "temperature": 0.3,
    }
    done = chat.chat.completions.create(model="ras-agent", messages=messages, **forms)
    assert done.choices[0].message.content == ANSWER


def test_a_follow_up_is_understood_from_the_messages(chat: Any) -> None:
    turns = [*ASKED, {"role": "assistant", "content": ANSWER}]
    asked = [*turns, {"role": "user", "content": "Where was he born?"}]
    done = chat.chat.completions.create(model="ras-agent", messages=asked)
    assert done.choices[0].message.content.startswith("Edinburgh [1]\n")


def _task(output: str, history: str) -> dict[str, Any]:
    """Make a request as Open WebUI makes it for a chat's title, tags and further questions."""
    prompt = (
        "### Task:\nGenerate what is asked for.\n### Guidelines:\n- Prioritize accuracy.\n### Output:\n"
        f"JSON format: {output}\n### Chat History:\n<chat_history>\n{history}\n</chat_history>"
    )
    return {
        "model": "ras-agent",
        "messages": [{"role": "user", "content": prompt}],
        "stream": False,
    }


def test_open_webui_chats_with_it(client: httpx.Client) -> None:
    assert (
        client.get("/v1/models", headers={"Authorization": "Bearer x"}).json()["data"][
            0
        ]["object"]
        == "model"
    )
    history = [*ASKED, {"role": "assistant", "content": "Alexander Graham Bell"}]
    asked = {
        "model": "ras-agent",
        "messages": [*history, *ASKED],
        "stream": True,
        "stream_options": None,
    }
    with client.stream("POST", "/v1/chat/completions", json=asked) as response:
        lines = [line for line in response.iter_lines() if line]
    assert lines[-1] == "data: [DONE]"
    chunks = [json.loads(line.removeprefix("data: ")) for line in lines[:-1]]
    assert {chunk["object"] for chunk in chunks} == {"chat.completion.chunk"}
    assert (
        "".join(chunk["choices"][0]["delta"].get("content", "") for chunk in chunks)
        == ANSWER
    )


@pytest.mark.parametrize(
    ("output", "reply"),
    [
        (
            '{ "title": "your concise title here" }',
            {"title": "Who invented the telephone?"},
        ),
        ('{ "tags": ["tag1", "tag2", "tag3"] }', {"tags": ["General"]}),
        (
            '{ "follow_ups": ["Question 1?", "Question 2?", "Question 3?"] }',
            {"follow_ups": []},
        ),
        ('{ "queries": ["query1", "query2"] }', {"queries": []}),
    ],
)
def test_open_webuis_tasks_are_answered_by_rule_and_search_nothing(
    client: httpx.Client, output: str, reply: dict[str, Any]
) -> None:
    asked = _task(
        output, "USER: Who invented the telephone?\nASSISTANT: Alexander Graham Bell"
    )
    done = client.post("/v1/chat/completions", json=asked).json()
    assert json.loads(done["choices"][0]["message"]["content"]) == reply
    streamed = client.post("/v1/chat/completions", json={**asked, "stream": True}).text
    assert json.dumps(json.dumps(reply)) in streamed


def test_a_long_question_makes_a_short_title(client: httpx.Client) -> None:
    asked = _task('{ "title": "t" }', f"USER: {'Who invented ' * 20}\nASSISTANT: x")
    done = client.post("/v1/chat/completions", json=asked).json()
    title = json.loads(done["choices"][0]["message"]["content"])["title"]
    assert title == "Who invented Who invented Who invented Who…"


def test_langchains_chat_model_shows_the_sources_and_says_that_no_tools_are_called(
    sample_server: str,
) -> None:
    langchain_openai = pytest.importorskip(
        "langchain_openai", reason="needs the extra 'openai'"
    )
    with httpx.Client(trust_env=False) as http:
        about = {
            "base_url": f"{sample_server}/v1",
            "api_key": "none",
            "model": "ras-agent",
            "max_retries": 0,
        }
        model = langchain_openai.ChatOpenAI(**about, http_client=http)
        assert model.invoke("Who invented the telephone?").content == ANSWER
        assert (
            "".join(
                chunk.content for chunk in model.stream("Who invented the telephone?")
            )
            == ANSWER
        )
        tool = {
            "type": "function",
            "function": {"name": "f", "description": "Does.", "parameters": {}},
        }
        with pytest.raises(
            openai.BadRequestError, match="the agent calls no tools of yours"
        ):
            model.bind_tools([tool]).invoke("Who invented the telephone?")
