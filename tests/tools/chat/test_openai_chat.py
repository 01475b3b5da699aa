"""The model behind OpenAI's protocol, over real HTTP: LangChain's callbacks, streams, tools, usage, cancellation."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import AsyncIterator, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from typing import Any

import pytest
from aiohttp import web
from langchain_core.caches import InMemoryCache
from langchain_core.callbacks import AsyncCallbackHandler, BaseCallbackHandler
from langchain_core.messages import AIMessage, HumanMessage, SystemMessage, ToolMessage
from langchain_core.rate_limiters import InMemoryRateLimiter
from langgraph.graph import END, START, MessagesState, StateGraph
from pydantic import BaseModel, SecretStr

from ras_agent.contracts.errors import BudgetExceeded, ParseError
from ras_agent.contracts.records import Passage
from ras_agent.prompts import Turn
from ras_agent.question_graph import QuestionGraph
from ras_agent.running.budget import Ledger, Limits, metered
from ras_agent.tools.answer.llm import LLMAnswerer
from ras_agent.tools.chat import http
from ras_agent.tools.chat.call import Request
from ras_agent.tools.chat.client import ChatSettings, as_chat
from ras_agent.tools.chat.http import BrokenReply, ErrorStatus, run
from ras_agent.tools.chat.openai_chat import OpenAIChat
from ras_agent.tools.plan.grammar import PATTERN
from ras_agent.tools.plan.llm import LLMPlanner
from ras_agent.tools.plan.tool_planner import LLMToolPlanner
from ras_agent.tools.structure.llm import LLMExtractor
from tests.vllm_protocol import WITH_CHATS, misfits

USAGE = {
    "prompt_tokens": 7,
    "completion_tokens": 3,
    "total_tokens": 10,
    "prompt_tokens_details": {"cached_tokens": 2},
    "completion_tokens_details": {"reasoning_tokens": 1},
}
TOKENS = {
    "input_tokens": 7,
    "output_tokens": 3,
    "total_tokens": 10,
    "input_token_details": {"cache_read": 2},
    "output_token_details": {"reasoning": 1},
}
Answer = Callable[[dict[str, Any]], dict[str, Any] | list[dict[str, Any]] | None]


class Served:
    """A server in this process. `reply`: returns a reply, a list of streamed events, or None for silence."""

    def __init__(self) -> None:
        self.reply: Answer = lambda request: said("Bell.")
        self.requests: list[dict[str, Any]] = []
        self.headers: list[dict[str, str]] = []
        self.paths: list[str] = []
        self.peers: set[Any] = set()
        self.asked, self.left = threading.Event(), threading.Event()
        self.url = ""
        self.meta: dict[str, int] = {}
        # of the model, in the server's list; "" for a server without one
        self.owner = ""

    async def list(self, request: web.Request) -> web.Response:
        if not self.owner:
            raise web.HTTPNotFound
        return web.json_response(
            {"data": [{"id": "m", "owned_by": self.owner, "meta": self.meta}]}
        )

    def model(self, **options: Any) -> OpenAIChat:
        return OpenAIChat(
            model="m", base_url=self.url, api_key=SecretStr("key"), **options
        )

    async def answer(self, request: web.Request) -> web.StreamResponse:
        body = await request.json()
        self.requests.append(body)
        self.paths.append(request.path)
        self.headers.append(dict(request.headers))
        self.peers.add(
            request.transport and request.transport.get_extra_info("peername")
        )
        reply = self.reply(body)
        try:
            if isinstance(reply, dict):
                return web.json_response(reply, status=reply.pop("status", 200))
            response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
            await response.prepare(request)
            for event in reply or ():
                await response.write(f"data: {json.dumps(event)}\n\n".encode())
            self.asked.set()
            # goes on for as long as somebody listens
            if reply is None or not reply[-1].get("usage"):
                await asyncio.sleep(60)
            await response.write(b"data: [DONE]\n\n")
            return response
        except asyncio.CancelledError:
            self.left.set()
            raise


@asynccontextmanager
async def serving(server: Served) -> AsyncIterator[None]:
    app = web.Application()
    app.router.add_post("/v1/chat/completions", server.answer)
    app.router.add_post("/plain/chat/completions", server.answer)
    app.router.add_get("/v1/models", server.list)
    runner = web.AppRunner(app, handler_cancellation=True, shutdown_timeout=0.1)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    host, port = runner.addresses[0][:2]
    server.url = f"http://{host}:{port}/v1"
    try:
        yield
    finally:
        await runner.cleanup()


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    server, ready, over = Served(), threading.Event(), threading.Event()

    async def serve() -> None:
        async with serving(server):
            ready.set()
            await asyncio.to_thread(over.wait)

    thread = threading.Thread(target=asyncio.run, args=(serve(),))
    thread.start()
    ready.wait()
    yield server
    over.set()
    thread.join()


def said(text: str, **more: Any) -> dict[str, Any]:
    choice = {
        "index": 0,
        "message": {"role": "assistant", "content": text, **more},
        "finish_reason": "stop",
    }
    return {"id": "c1", "model": "m-1", "choices": [choice], "usage": USAGE}


def pieces(*deltas: dict[str, Any], last: bool = True) -> list[dict[str, Any]]:
    events = [
        {
            "model": "m-1",
            "choices": [{"index": 0, "delta": delta, "finish_reason": None}],
        }
        for delta in deltas
    ]
    if last:
        events.append(
            {
                "model": "m-1",
                "choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}],
            }
        )
        events.append({"model": "m-1", "choices": [], "usage": USAGE})
    return events


def streams(request: dict[str, Any]) -> Any:
    words = ({"content": "Alexander"}, {"content": " Graham"}, {"content": " Bell"})
    return pieces(*words) if request.get("stream") else said("Alexander Graham Bell")


async def _invoke(model: Any, turns: Any, **config: Any) -> AIMessage:
    return await asyncio.to_thread(model.invoke, turns, config)


async def _ainvoke(model: Any, turns: Any, **config: Any) -> AIMessage:
    return await model.ainvoke(turns, config)


async def _stream(model: Any, turns: Any, **config: Any) -> AIMessage:
    def joined() -> AIMessage:
        first, *others = model.stream(turns, config)
        return first + others

    return await asyncio.to_thread(joined)


async def _astream(model: Any, turns: Any, **config: Any) -> AIMessage:
    first, *others = [piece async for piece in model.astream(turns, config)]
    return first + others


@pytest.fixture(
    params=[_invoke, _ainvoke, _stream, _astream],
    ids=lambda way: way.__name__.strip("_"),
)
def ask(request: pytest.FixtureRequest) -> Any:
    return request.param


class Heard(BaseCallbackHandler):
    """Notes LangChain's reports of a call."""

    def __init__(self) -> None:
        self.heard: list[Any] = []

    def on_chat_model_start(self, serialized: Any, messages: Any, **about: Any) -> None:
        named = about["metadata"]
        self.heard.append(
            ("start", messages[0][0].text, named["ls_provider"], named["ls_model_name"])
        )

    def on_llm_new_token(self, token: Any, **about: Any) -> None:
        self.heard.append(("token", token))

    def on_llm_end(self, response: Any, **about: Any) -> None:
        self.heard.append(
            (
                "end",
                response.generations[0][0].text,
                response.generations[0][0].message.usage_metadata,
            )
        )

    def on_llm_error(self, error: BaseException, **about: Any) -> None:
        self.heard.append(("error", type(error).__name__))


class HeardAsync(Heard, AsyncCallbackHandler):
    async def on_chat_model_start(self, *told: Any, **about: Any) -> None:
        Heard.on_chat_model_start(self, *told, **about)

    async def on_llm_new_token(self, *told: Any, **about: Any) -> None:
        Heard.on_llm_new_token(self, *told, **about)

    async def on_llm_end(self, *told: Any, **about: Any) -> None:
        Heard.on_llm_end(self, *told, **about)

    async def on_llm_error(self, *told: Any, **about: Any) -> None:
        Heard.on_llm_error(self, *told, **about)


async def test_a_message_with_its_usage_and_metadata(server: Served, ask: Any) -> None:
    server.reply = streams
    message = await ask(
        server.model(temperature=0.2, max_tokens=9),
        [SystemMessage("Brief."), HumanMessage("Who?")],
    )
    assert (message.text, message.usage_metadata) == ("Alexander Graham Bell", TOKENS)
    assert (
        message.response_metadata["finish_reason"],
        message.response_metadata["model_name"],
    ) == ("stop", "m-1")
    (request,) = server.requests
    streamed = (
        {"stream": True, "stream_options": {"include_usage": True}}
        if "stream" in request
        else {}
    )
    assert request == {
        "model": "m",
        "messages": [
            {"role": "system", "content": "Brief."},
            {"role": "user", "content": "Who?"},
        ],
        "temperature": 0.2,
        "max_tokens": 9,
        **streamed,
    }
    assert server.headers[0]["Authorization"] == "Bearer key"


async def test_callbacks_hear_what_a_call_does(server: Served, ask: Any) -> None:
    server.reply = streams
    heard = HeardAsync() if ask in (_ainvoke, _astream) else Heard()
    await ask(server.model(), [HumanMessage("Who?")], callbacks=[heard])
    tokens = [token for kind, token, *_ in heard.heard if kind == "token" and token]
    assert heard.heard[0] == ("start", "Who?", "openai", "m")
    assert heard.heard[-1] == ("end", "Alexander Graham Bell", TOKENS)
    assert tokens == (
        ["Alexander", " Graham", " Bell"] if ask in (_stream, _astream) else []
    )


async def test_callbacks_of_the_model_itself_hear_it_too(server: Served) -> None:
    heard = Heard()
    await server.model(callbacks=[heard]).ainvoke("Who?")
    assert [kind for kind, *_ in heard.heard] == ["start", "end"]


async def test_callbacks_hear_of_an_error(server: Served, ask: Any) -> None:
    server.reply = lambda request: {
        "status": 500,
        "error": {"message": "out of memory", "code": "oom"},
    }
    heard = Heard()
    with pytest.raises(
        ErrorStatus, match=r"^Error code: 500 - out of memory$"
    ) as caught:
        await ask(server.model(), [HumanMessage("Who?")], callbacks=[heard])
    assert (caught.value.status_code, caught.value.code) == (500, "oom")
    assert heard.heard[-1] == ("error", "ErrorStatus")


@pytest.mark.parametrize("asynchronous", [False, True])
async def test_langgraph_streams_the_tokens_of_a_node_that_only_invokes(
    server: Served, asynchronous: bool
) -> None:
    server.reply = streams
    model = server.model()

    def node(state: MessagesState) -> dict[str, Any]:
        return {"messages": [model.invoke(state["messages"])]}

    async def anode(state: MessagesState) -> dict[str, Any]:
        return {"messages": [await model.ainvoke(state["messages"])]}

    graph = StateGraph(MessagesState).add_node("ask", anode if asynchronous else node)
    compiled = graph.add_edge(START, "ask").add_edge("ask", END).compile()
    inputs: Any = {"messages": [("user", "Who?")]}
    streamed = (
        [piece async for piece in compiled.astream(inputs, stream_mode="messages")]
        if asynchronous
        else await asyncio.to_thread(
            lambda: list(compiled.stream(inputs, stream_mode="messages"))
        )
    )
    texts = [message.text for message, _ in streamed if message.text]
    assert texts == ["Alexander", " Graham", " Bell"]
    assert (
        next(
            message.usage_metadata for message, _ in streamed if message.usage_metadata
        )
        == TOKENS
    )


class Search(BaseModel):
    """Search for a query."""

    query: str


CALL = {
    "id": "id1",
    "type": "function",
    "function": {"name": "Search", "arguments": '{"query": "Bell"}'},
}


def calls(request: dict[str, Any]) -> Any:
    if not request.get("stream"):
        return said("", tool_calls=[CALL])
    begun = {
        "index": 0,
        "id": "id1",
        "function": {"name": "Search", "arguments": '{"que'},
    }
    return pieces(
        {"tool_calls": [begun]},
        {"tool_calls": [{"index": 0, "function": {"arguments": 'ry": "Bell"}'}}]},
    )


async def test_tools_are_called_and_their_transcript_is_sent_back(
    server: Served, ask: Any
) -> None:
    server.reply = calls
    model: Any = server.model().bind_tools([Search], tool_choice="any")
    message = await ask(model, [HumanMessage("Who?")])
    assert [
        (call["name"], call["args"], call["id"]) for call in message.tool_calls
    ] == [("Search", {"query": "Bell"}, "id1")]
    await ask(
        model, [HumanMessage("Who?"), message, ToolMessage("Bell.", tool_call_id="id1")]
    )
    first, second = server.requests
    assert first["tool_choice"] == "required"
    assert first["tools"][0]["function"]["name"] == "Search"
    assert [turn["role"] for turn in second["messages"]] == [
        "user",
        "assistant",
        "tool",
    ]
    assert json.loads(
        second["messages"][1]["tool_calls"][0]["function"]["arguments"]
    ) == {"query": "Bell"}
    assert second["messages"][2]["tool_call_id"] == "id1"


@pytest.mark.parametrize("arguments", ["1969786", '["Bell"]', '{"query": "Be'])
async def test_arguments_that_are_no_object_make_an_invalid_call(
    server: Served, arguments: str
) -> None:
    broken = {**CALL, "function": {"name": "Search", "arguments": arguments}}
    server.reply = lambda request: said("", tool_calls=[broken])
    message = await server.model().bind_tools([Search]).ainvoke("Who?")
    assert message.tool_calls == []
    assert [call["args"] for call in message.invalid_tool_calls] == [arguments]


@pytest.mark.parametrize(
    ("choice", "sent"),
    [
        ("auto", "auto"),
        (True, "required"),
        ("Search", {"type": "function", "function": {"name": "Search"}}),
    ],
)
async def test_the_choice_of_a_tool(server: Served, choice: Any, sent: Any) -> None:
    await server.model().bind_tools([Search], tool_choice=choice).ainvoke("Who?")
    assert server.requests[0]["tool_choice"] == sent


async def test_structured_output(server: Served) -> None:
    server.reply = calls
    found = await server.model().with_structured_output(Search).ainvoke("Who?")
    assert found == Search(query="Bell")


async def test_log_probabilities(server: Served, ask: Any) -> None:
    logprobs = {"content": [{"token": "Bell", "logprob": -0.1, "top_logprobs": []}]}

    def reply(request: dict[str, Any]) -> Any:
        if not request.get("stream"):
            whole = said("Bell")
            whole["choices"][0]["logprobs"] = logprobs
            return whole
        first, *others = pieces({"content": "Bell"})
        first["choices"][0]["logprobs"] = logprobs
        return [first, *others]

    server.reply = reply
    message = await ask(
        server.model().bind(logprobs=True, top_logprobs=2), [HumanMessage("Who?")]
    )
    assert message.response_metadata["logprobs"] == logprobs
    assert (server.requests[0]["logprobs"], server.requests[0]["top_logprobs"]) == (
        True,
        2,
    )


@pytest.mark.parametrize("choice", [{"message": None}, 7, {"message": {"content": 5}}])
async def test_a_reply_of_another_form_is_a_broken_one(
    server: Served, ask: Any, choice: Any
) -> None:
    server.reply = lambda request: {"choices": [choice]}
    with pytest.raises(BrokenReply, match="the reply does not have the form of OpenAI"):
        await ask(server.model(), [HumanMessage("Who?")])


async def test_a_stream_that_stays_open_after_its_last_piece_is_whole(
    server: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(http, "_AFTER_THE_END", 0.01)
    server.reply = lambda request: pieces({"content": "Bell."})[:-1]
    reply = await as_chat(server.model()).acomplete(
        Request((Turn("user", "Who?"),), lambda text: None)
    )
    assert (reply.text, reply.shortfall) == ("Bell.", "")


@pytest.mark.parametrize(
    "on_text", [None, lambda text: None], ids=["whole", "streamed"]
)
async def test_a_cancelled_task_closes_its_request(
    server: Served, on_text: Any
) -> None:
    server.reply = lambda request: (
        pieces({"content": "Alex"}, last=False) if on_text else None
    )
    chat = as_chat(server.model())
    task = asyncio.create_task(
        chat.acomplete(Request((Turn("user", "Who?"),), on_text))
    )
    await asyncio.to_thread(server.asked.wait)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert await asyncio.to_thread(server.left.wait, 10)


@pytest.mark.parametrize(
    "on_text", [None, lambda text: None], ids=["whole", "streamed"]
)
def test_a_synchronous_call_whose_run_is_over_closes_its_request(
    server: Served, on_text: Any
) -> None:
    server.reply = lambda request: (
        pieces({"content": "Alex"}, last=False) if on_text else None
    )
    chat = as_chat(server.model(), ChatSettings(timeout=60))
    with (
        metered(Ledger("planner", limits=Limits(max_seconds=0.5))),
        pytest.raises(BudgetExceeded),
    ):
        chat.complete(Request((Turn("user", "Who?"),), on_text))
    assert server.left.wait(10)


def test_a_stream_that_is_not_read_to_its_end_is_closed(server: Served) -> None:
    server.reply = lambda request: pieces({"content": "Alex"}, last=False)
    streamed = server.model().stream("Who?")
    assert next(streamed).text == "Alex"
    streamed.close()  # type: ignore[attr-defined]
    assert server.left.wait(10)


def test_threads_share_one_event_loop_and_its_connections(server: Served) -> None:
    model = server.model()
    with ThreadPoolExecutor(8) as pool:
        texts = {message.text for message in pool.map(model.invoke, ["Who?"] * 64)}
    assert (texts, len(server.requests)) == ({"Bell."}, 64)
    assert len(server.peers) <= 8
    names = [thread.name for thread in threading.enumerate()]
    assert names.count("ras-agent-calls") == 1


async def test_a_call_that_would_wait_for_itself_is_an_error(server: Served) -> None:
    async def inside() -> None:
        server.model().invoke("Who?")

    with pytest.raises(RuntimeError, match="in a callback of another call"):
        await asyncio.to_thread(run, inside())


def test_each_event_loop_closes_its_own_connections(server: Served) -> None:
    async def twice() -> int:
        await asyncio.gather(*(server.model().ainvoke("Who?") for _ in range(3)))
        return len(http._sessions)

    before = len(http._sessions)
    assert [asyncio.run(twice()) for _ in range(3)] == [before + 1] * 3
    assert len(http._sessions) == before


async def test_a_cache_and_a_rate_limiter_of_langchains_are_kept_to(
    server: Served,
) -> None:
    cached = server.model(cache=InMemoryCache())
    assert [(await cached.ainvoke("Who?")).text for _ in range(2)] == ["Bell.", "Bell."]
    assert len(server.requests) == 1

    class Counted(InMemoryRateLimiter):
        waits = 0

        async def aacquire(self, *, blocking: bool = True) -> bool:
            Counted.waits += 1
            return True

    await server.model(rate_limiter=Counted()).ainvoke("Who?")
    assert Counted.waits == 1


async def test_a_users_name_in_the_address_is_sent_in_place_of_the_key(
    server: Served,
) -> None:
    server.url = server.url.replace("http://", "http://me:word@")
    await server.model().ainvoke("Who?")
    assert server.headers[0]["Authorization"] == "Basic bWU6d29yZA=="


@pytest.mark.parametrize(
    "end",
    [
        "/v1",
        "/v1/",
        "",
        "/",
        "/v1/chat/completions",
        "/chat/completions",
        "/v1/models",
        "/v1/chat",
        "/v1?version=2",
        "/?version=2",
    ],
)
async def test_an_address_is_known_however_much_of_its_path_stands_in_it(
    server: Served, end: str
) -> None:
    server.url = server.url.removesuffix("/v1") + end
    for _ in range(2):
        assert (await server.model().ainvoke("Who?")).text == "Bell."
    assert len(server.requests) == 2


async def test_a_server_without_a_version_in_its_path_is_asked_there(
    server: Served,
) -> None:
    server.url = server.url.removesuffix("/v1") + "/plain"
    model = server.model()
    assert [(await model.ainvoke("Who?")).text for _ in range(2)] == ["Bell.", "Bell."]
    assert set(server.paths) == {"/plain/chat/completions"}


@pytest.mark.parametrize("owner", ["", "vllm", "llamacpp"])
@pytest.mark.parametrize("calls_tools", [False, True])
def test_a_plan_that_is_asked_for_again_has_its_form_from_a_server_that_sees_to_it(
    server: Served, owner: str, calls_tools: bool
) -> None:
    server.owner = owner
    server.reply = lambda request: said(
        "[SUFFICIENT]" if len(server.requests) > 1 else "Well."
    )
    planner = (LLMToolPlanner if calls_tools else LLMPlanner)(f"vllm:{server.url}#m")
    assert planner.plan("Who?", QuestionGraph(), ()).action == "sufficient"
    first, again = server.requests
    assert again.get("structured_outputs") == (
        {"regex": PATTERN} if owner == "vllm" else None
    )
    assert again.get("grammar", "").startswith('root ::= "[" "S"') == (
        owner == "llamacpp"
    )
    assert ("response_format" in again) == (not owner and not calls_tools)
    assert again.get("tool_choice") == (
        "required" if calls_tools and not owner else None
    )
    assert ("tools" in again) == (calls_tools and not owner)
    assert (
        not {"structured_outputs", "grammar", "response_format", "tool_choice"}
        & first.keys()
    )


def test_what_is_asked_of_vllm_is_what_its_own_classes_take(server: Served) -> None:
    server.owner = "vllm"
    server.reply = lambda request: said(
        "[SUFFICIENT]" if "structured_outputs" in request else "Well."
    )
    spec = f"vllm:{server.url}#m"
    LLMPlanner(spec).plan("Who?", QuestionGraph(), ())
    LLMExtractor(spec).extract([Passage("1", "Leith lies in Fife.")])
    LLMAnswerer(spec, form="on").answer(
        "Where is Leith?", QuestionGraph(), [Passage("1", "Leith lies in Fife.")], ()
    )
    forms = [
        body["structured_outputs"]
        for body in server.requests
        if "structured_outputs" in body
    ]
    assert len({form["regex"] for form in forms}) == 3
    assert any(body.get("stream") for body in server.requests)
    for body in server.requests:
        assert misfits("ChatCompletionRequest", body, WITH_CHATS) == []
    assert misfits("ChatCompletionRequest", {"guided_regex": "a"}, WITH_CHATS) == [
        "guided_regex: unknown"
    ]


@pytest.mark.parametrize(
    ("parameters", "most"), [(134_515_008, 2000), (70_000_000_000, 16_384)]
)
def test_a_model_is_shown_as_much_evidence_as_fits_the_size_that_its_server_lists(
    server: Served, parameters: int, most: int
) -> None:
    server.owner, server.meta = "llamacpp", {"n_params": parameters}
    server.reply = lambda request: said("[SUFFICIENT]")
    chat = as_chat(f"vllm:{server.url}#m")
    LLMPlanner(chat).plan("Who?", QuestionGraph(), ())
    assert chat.sizes.evidence_tokens == most
    assert (
        as_chat(
            f"vllm:{server.url}#m", ChatSettings(evidence_tokens=700)
        ).sizes.evidence_tokens
        == 700
    )


def test_a_models_name_tells_its_size_and_nobody_is_asked() -> None:
    assert (
        as_chat(
            "vllm:http://127.0.0.1:9/v1#SmolLM2-135M-Instruct"
        ).sizes.evidence_tokens
        == 2000
    )
    assert (
        as_chat(
            "vllm:http://127.0.0.1:9/v1#Llama-3.1-70B",
            ChatSettings(context_window=20_000),
        ).sizes.evidence_tokens
        == 10_000
    )


def test_a_form_that_the_server_refuses_is_asked_for_once(server: Served) -> None:
    told = {"error": {"message": "response_format: type json_schema is not supported"}}
    server.reply = lambda request: (
        {"status": 400, **told} if "response_format" in request else said("Well.")
    )
    for _ in range(2):
        with pytest.raises(ParseError):
            LLMPlanner(f"vllm:{server.url}#m").plan("Who?", QuestionGraph(), ())
    assert ["response_format" in request for request in server.requests] == [
        False,
        True,
        False,
        False,
        False,
    ]
