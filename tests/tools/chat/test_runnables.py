"""A runnable around a chat model is asked as the model itself is: by name, with its usage, its secrets masked."""

from typing import Any

import pytest
from langchain.chat_models import init_chat_model
from langchain_core.output_parsers import StrOutputParser
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.runnables import ConfigurableField, Runnable, RunnableLambda
from langchain_openai import ChatOpenAI

from ras_agent import create_ras_agent
from ras_agent.contracts.errors import ModelCallError
from ras_agent.contracts.records import Hit, Passage
from ras_agent.prompts import Turn
from ras_agent.question_graph import QuestionGraph
from ras_agent.running.budget import Ledger, metered
from ras_agent.tools.chat.call import Request
from ras_agent.tools.chat.client import Chat, ChatSettings, as_chat
from ras_agent.tools.chat.models import with_tools
from ras_agent.tools.chat.names import endpoint_of, model_name, sampling_parameters
from ras_agent.tools.chat.runnables import chat_models_in, is_chat_model, retries_itself
from ras_agent.tools.chat.secrets import without_secrets
from ras_agent.tools.roles import (
    resolve_answerer,
    resolve_extractor,
    resolve_planner,
    resolve_reasoner,
    role_name,
)
from tests.messages import says

REQUEST = Request((Turn("user", "Who?"),))
FIRST = ChatOpenAI(model="first", api_key="first-key-123", base_url="http://one/v1")  # type: ignore[arg-type]
SECOND = ChatOpenAI(
    model="second", api_key="second-key-456", base_url="http://two/v1", max_retries=0
)  # type: ignore[arg-type]

WRAPPED = {
    "fallbacks": FIRST.with_fallbacks([SECOND]),
    "bound": FIRST.bind(stop=["x"]),
    "retry": FIRST.with_retry(),
    "tagged": FIRST.with_config(tags=["mine"]),
    "chain": RunnableLambda(lambda messages: messages) | FIRST,
    "parsed": FIRST | StrOutputParser(),
    "nested": FIRST.bind(stop=["x"])
    .with_fallbacks([SECOND.with_retry()])
    .with_config(tags=["mine"]),
    "fields": FIRST.configurable_fields(temperature=ConfigurableField(id="t")),
    "alternatives": FIRST.configurable_alternatives(
        ConfigurableField(id="m"), second=SECOND
    ),
}


@pytest.mark.parametrize("wrapped", WRAPPED.values(), ids=WRAPPED)
def test_a_runnable_around_a_model_plays_every_role(wrapped: Any) -> None:
    for resolve in (
        resolve_planner,
        resolve_extractor,
        resolve_answerer,
        resolve_reasoner,
    ):
        assert role_name(resolve(wrapped)).startswith("first")
    assert endpoint_of(wrapped) == "http://one/v1#first"
    assert chat_models_in(wrapped)[0].model_name == "first"


@pytest.mark.parametrize(
    "other",
    [ChatPromptTemplate.from_messages([("user", "{x}")]), StrOutputParser(), "a", None],
)
def test_a_runnable_that_asks_no_model_is_none(other: object) -> None:
    assert not is_chat_model(other)


def test_a_planner_that_is_also_a_runnable_is_a_planner(scripted_model: Any) -> None:
    class Planner(RunnableLambda):  # type: ignore[type-arg]
        def plan(self, question: Any, graph: Any, steps: Any) -> None: ...

    own = Planner(lambda words: words)
    assert resolve_planner(own) is own


def test_another_librarys_runnable_that_binds_tools_plays_a_model(
    scripted_model: Any,
) -> None:
    class Recording(Runnable[Any, Any]):
        """Runnable around a model that records, such as ART's."""

        def __init__(self, model: Any, tools: Any = None) -> None:
            self.model, self.tools, self.inputs = model, tools, list[Any]()

        def invoke(self, input: Any, config: Any = None, **kwargs: Any) -> Any:
            self.inputs.append(input)
            return self.model.invoke(input, config)

        def bind_tools(self, tools: Any) -> Any:
            return Recording(self.model, tools)

    model = Recording(scripted_model("[SUBQ] Where was Bell born?"))
    assert is_chat_model(model)
    assert (
        resolve_planner(model).plan("Who?", QuestionGraph(), ()).subquery
        == "Where was Bell born?"
    )
    # it may look into messages
    assert [message.type for message in model.inputs[0]] == [
        "system",
        "human",
    ]
    assert with_tools(model, [{"name": "search"}]).tools == [{"name": "search"}]


def test_names_tell_fallbacks_and_what_is_bound() -> None:
    assert model_name(WRAPPED["nested"]) == "first, else second"
    assert model_name(FIRST.bind(model="third")) == "third"


def test_the_keys_of_all_models_are_masked() -> None:
    told = "first-key-123, second-key-456, header-789"
    model = FIRST.bind(extra_headers={"x-api": "header-789"}).with_fallbacks([SECOND])
    assert without_secrets(told, model) == "***, ***, ***"


def test_a_dummy_key_is_not_looked_for_in_every_word(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "x")
    told = "the maximum context length does not exist"
    assert without_secrets(told, ChatOpenAI(model="m")) == told


def test_what_is_bound_is_part_of_a_cached_replys_key_and_no_key_of_the_user_is() -> (
    None
):
    cold, warm = (
        sampling_parameters(
            FIRST.bind(temperature=value, extra_headers={"x": "s3cret"})
        )
        for value in (0, 1)
    )
    assert cold != warm
    assert cold == sampling_parameters(
        FIRST.bind(temperature=0, extra_headers={"x": "s3cret"})
    )
    assert "s3cret" not in repr(cold)
    both = [
        sampling_parameters(FIRST.with_fallbacks([one]))
        for one in (SECOND, SECOND.bind(stop=["x"]))
    ]
    assert both[0] != both[1]
    assert sampling_parameters(FIRST.with_retry()) == sampling_parameters(FIRST)


@pytest.mark.parametrize("streamed", [False, True])
def test_the_call_is_recorded_with_the_model_that_answered(
    streamed: bool, scripted_llm: Any
) -> None:
    scripted_llm.script({"status": 500}, {"reply": "Bell."})
    first, second = (
        ChatOpenAI(
            model=name,
            base_url=scripted_llm.base_url,
            api_key="any",
            max_retries=0,
            stream_usage=True,
        )  # type: ignore[arg-type]
        for name in ("first", "second")
    )
    texts: list[str] = []
    with metered(Ledger("answerer")) as ledger:
        reply = as_chat(first.with_fallbacks([second])).complete(
            Request(REQUEST.turns, texts.append if streamed else None)
        )
    assert reply.text == "Bell."
    assert [(call.model, call.output_tokens > 0) for call in ledger.calls] == [
        ("second", True)
    ]


async def test_a_chain_that_ends_in_a_parser_streams_too(scripted_model: Any) -> None:
    texts: list[str] = []
    reply = await as_chat(scripted_model("Bell.") | StrOutputParser()).acomplete(
        Request(REQUEST.turns, texts.append)
    )
    assert (reply.text, texts[-1]) == ("Bell.", "Bell.")


def test_a_runnable_that_replies_with_something_else_is_an_error(
    scripted_model: Any,
) -> None:
    with pytest.raises(
        ModelCallError, match=says("instead of a message or a text", "int")
    ):
        as_chat(scripted_model("Bell.") | RunnableLambda(lambda message: 1)).complete(
            REQUEST
        )


def test_a_configurable_model_is_the_one_that_the_run_names(
    scripted_llm: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    class One:
        def retrieve(self, query: str, k: int = 5) -> list[Hit]:
            return [Hit(Passage("p1", "Bell was born in Edinburgh."), 1.0)]

    scripted_llm.script({"reply": "Answer: Edinburgh [1]", "repeat": True})
    monkeypatch.setenv("OPENAI_API_KEY", "any")
    monkeypatch.setenv("OPENAI_BASE_URL", scripted_llm.base_url)
    model = init_chat_model(
        "openai:usual", configurable_fields=("model",), max_retries=0
    )
    agent = create_ras_agent(planner="offline", answerer=model, retriever=One())
    question = {"question": "Where was Bell born?"}
    usual = agent.invoke(question)
    other = agent.invoke(question, {"configurable": {"model": "openai:other"}})
    assert [usual["answer"], other["answer"]] == ["Edinburgh", "Edinburgh"]
    assert [request["model"] for request in scripted_llm.requests()] == [
        "usual",
        "other",
    ]
    assert [out["usage"]["calls"][-1]["model"] for out in (usual, other)] == [
        "usual",
        "other",
    ]


# ---- a model's own retries


def test_a_model_with_retries_of_its_own_is_tried_once(
    scripted_llm: Any, settings: ChatSettings
) -> None:
    scripted_llm.script({"status": 500, "repeat": True})
    model = ChatOpenAI(
        model="m", base_url=scripted_llm.base_url, api_key="any", max_retries=0
    )  # type: ignore[arg-type]
    with pytest.raises(ModelCallError, match="failed after 1 try"):
        as_chat(model).complete(REQUEST)
    assert len(scripted_llm.requests()) == 1
    # the caller's own wish
    with pytest.raises(ModelCallError, match="failed after 3 tries"):
        as_chat(model, settings).complete(REQUEST)


def test_a_model_without_any_gets_ours(scripted_model: Any) -> None:
    assert not retries_itself(scripted_model())
    assert retries_itself(scripted_model().with_retry())
    assert Chat(scripted_model()).policy.attempts == 5
