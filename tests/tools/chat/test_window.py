"""A model's window: the share of a text, the numbers of models and servers, and the request after a refusal."""

import json
import re
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from uuid import uuid4

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ras_agent.contracts.errors import ModelCallError, PromptTooLong
from ras_agent.contracts.records import Passage
from ras_agent.prompts import Turn
from ras_agent.running.budget import Ledger, metered
from ras_agent.text.tokens import cut_to_tokens, estimate_tokens
from ras_agent.tools.chat.call import Reply, Request
from ras_agent.tools.chat.client import ChatSettings, as_chat
from ras_agent.tools.chat.dialogue import (
    Dialogue,
    aconverse,
    converse,
    fitted,
    in_parts,
)
from ras_agent.tools.chat.models import build_chat_model
from ras_agent.tools.chat.window import (
    TOKENS_PER_TURN,
    Window,
    estimate_turns,
    is_overflow,
    smaller_window,
    stated_window,
    window_in,
    writes_thoughts,
)
from ras_agent.tools.kg.llm_mentions import LLMMentions
from ras_agent.tools.plan.llm_reasoner import LLMReasoner
from ras_agent.tools.structure.llm import LLMExtractor
from ras_agent.tools.subgraph.scorers.llm import LLMScorer


@pytest.mark.parametrize(
    ("text", "tokens", "llama_2"),
    [
        ("", 0, 0),
        ("Alexander Graham Bell was born in Edinburgh in 1847.", 19, 15),
        ("(S> Swords, Dublin | P> is part of | O> Republic of Ireland)", 26, 20),
        ("3 141 592 653", 11, 13),
        ("贝尔出生于爱丁堡", 18, 14),
        ("벨은 스코틀랜드 태생", 20, 23),
    ],
)
def test_an_estimate_comes_from_characters_alone(
    text: str, tokens: int, llama_2: int
) -> None:
    """`llama_2`: the tokens that the text has in that model's vocabulary."""
    assert estimate_tokens(text) == tokens
    assert tokens >= 0.8 * llama_2


@given(st.text(), st.text())
def test_the_parts_of_a_text_have_at_least_the_tokens_of_the_whole(
    left: str, right: str
) -> None:
    """So a prompt whose parts fit, each estimated by itself, fits too."""
    whole = estimate_tokens(f"{left}\n{right}")
    assert whole <= estimate_tokens(left) + estimate_tokens("\n") + estimate_tokens(
        right
    )


def test_each_turn_costs_what_a_chat_template_puts_around_it() -> None:
    turns = (Turn("system", "Be brief."), Turn("user", "Who?"))
    assert (
        estimate_turns(turns)
        == estimate_tokens("Be brief.") + estimate_tokens("Who?") + 2 * TOKENS_PER_TURN
    )


@given(st.text(), st.integers(0, 50))
def test_a_text_is_cut_to_its_beginning(text: str, most: int) -> None:
    cut = cut_to_tokens(text, most)
    assert text.startswith(cut)
    assert estimate_tokens(cut) <= most
    assert cut == text or estimate_tokens(text) > most - 2


# ---- the words of servers


TOO_LONG = [
    # OpenAI, vLLM
    "This model's maximum context length is 4097 tokens. However, you requested 5000 tokens (4500 in the messages, "
    "500 in the completion). Please reduce the length of the messages or completion.",
    "This model's maximum context length is 8192 tokens. However, your messages resulted in 9120 tokens. Please "
    "reduce the length of the messages.",
    "Input tokens exceed the configured limit of 272000 tokens. Your messages resulted in 300000 tokens. Please "
    "reduce the length of the messages.",
    "Your input exceeds the context window of this model. Please adjust your input and try again.",
    "This model's maximum context length is 4096 tokens. However, your request has 5000 input tokens. Please reduce "
    "the length of the input messages.",
    "'max_tokens' or 'max_completion_tokens' is too large: 5000. This model's maximum context length is 4096 tokens "
    "and your request has 1000 input tokens (5000 > 4096 - 1000).",
    "max_tokens must be at least 1, got -186.",
    # SGLang, OpenRouter, xAI, Mistral
    "The input (5000 tokens) is longer than the model's context length (4096 tokens).",
    "This endpoint's maximum context length is 4096 tokens. However, you requested about 5000 tokens (4000 of text "
    "input, 1000 in the output). Please reduce the length of either one.",
    "This model's maximum prompt length is 131072 but the request contains 140000 tokens.",
    "Prompt contains 40000 tokens and 0 draft tokens, too large for model with 32768 maximum context length",
    "max_tokens=2048 cannot be greater than max_model_len=1024. Please request fewer output tokens.",
    "max_tokens=2048 cannot be greater than max_model_len=max_total_tokens=1024.",
    # llama.cpp, its Python package, LM Studio, Ollama
    '{"code": 400, "message": "the request exceeds the available context size. try increasing the context size", '
    '"type": "exceed_context_size_error", "n_prompt_tokens": 5000, "n_ctx": 4096}',
    "request (5000 tokens) exceeds the available context size (4096 tokens), try increasing it",
    "Requested tokens (5160) exceed context window of 5120",
    "Trying to keep the first 5000 tokens when context the overflows. However, the model is loaded with context "
    "length of only 4096 tokens, which is not enough.",
    "the input length exceeds the context length",
    # TGI, TensorRT-LLM
    "Input validation error: `inputs` tokens + `max_new_tokens` must be <= 4096. Given: 4000 `inputs` tokens and 512 "
    "`max_new_tokens`",
    "Input validation error: `inputs` must have less than 1024 tokens. Given: 1168",
    "prompt length (5000) should not exceed max_input_len (4096)",
    # Anthropic, Bedrock, Gemini, Cohere
    "prompt is too long: 207791 tokens > 200000 maximum",
    "input length and `max_tokens` exceed context limit: 182831 + 64000 > 200000, decrease input length or "
    "`max_tokens` and try again",
    "Input is too long for requested model.",
    "The input token count (1200000) exceeds the maximum number of tokens allowed (1048575).",
    "too many tokens: total number of tokens in the prompt cannot exceed 4081 - received 4500.",
    # Qwen, Kimi, Cerebras and gateways
    "Range of input length should be [1, 30720]",
    "Invalid request: Your request exceeded model token limit: 8192 (requested: 9000)",
    "Please reduce the length of the messages or completion. Current length is 9000 while limit is 8192",
    "Prompt tokens (5000) exceed max context (4096)",
    "Prompt exceeds max length",
    "输入长度超过模型最大上下文长度",
]  # fmt: skip


@pytest.mark.parametrize("message", TOO_LONG)
def test_a_refusal_of_a_long_prompt_is_told_by_its_words(message: str) -> None:
    assert is_overflow(ValueError(message))


@pytest.mark.parametrize(
    "message",
    [
        "max_tokens is too large: 5000. This model supports at most 4096 completion tokens.",
        "Rate limit reached on tokens per min (TPM): Limit 10000, Used 9000, Requested 2000.",
        "Incorrect API key provided",
        "The model `m` does not exist",
        "the reply is larger than 32 MB, the limit of a reply",
        "the reply has more than 1,000,000 characters, the most that is read",
        "the reply was not complete within 60 seconds",
    ],
)
def test_other_errors_are_no_refusals_of_a_prompt(message: str) -> None:
    assert not is_overflow(ValueError(message))


def test_a_status_decides_where_words_do_not() -> None:
    assert is_overflow(
        Refused(413, "Limit 6000, Requested 7000, please reduce your size")
    )
    for status in (401, 403, 404, 408, 429):
        assert not is_overflow(Refused(status, "maximum context length is 4096 tokens"))
    assert is_overflow(Refused(400, "maximum context length is 4096 tokens"))


class Refused(Exception):
    def __init__(self, status_code: int, message: str) -> None:
        super().__init__(message)
        self.status_code = status_code


@pytest.mark.parametrize(
    ("asked", "assumed", "listed", "window"),
    [
        (6000, 32_768, 4096, 4096),
        (3000, 4096, 4096, 3072),  # the list had it fit
        (5000, 4096, 4096, 4096),  # a prompt of which nothing could be left out
        (7000, 32_768, None, 3500),
        (600, 32_768, None, 512),  # no model has less
    ],
)
def test_a_refusal_makes_the_window_smaller(
    asked: int, assumed: int, listed: int | None, window: int
) -> None:
    assert smaller_window(asked, assumed, listed) == window


def test_a_window_does_not_grow_again() -> None:
    window = Window()
    for tokens in (4096, 90_000):
        window.shrink(tokens)
        assert window.tokens == 4096


@pytest.mark.parametrize(
    ("listed", "window"),
    [
        ({"owned_by": "vllm", "max_model_len": 1024}, 1024),
        (
            {"owned_by": "llamacpp", "meta": {"n_ctx": 4096, "n_ctx_train": 131_072}},
            4096,
        ),
        ({"context_length": 200_000}, 200_000),  # OpenRouter
        ({"context_window": 131_072}, 131_072),  # Groq
        ({"max_context_length": 32_768}, 32_768),  # Mistral
        ({"owned_by": "openai", "meta": None}, None),
        ({"max_model_len": None}, None),  # vLLM, of an adapter
        ({"max_model_len": 0}, None),
        ({"context_length": "many"}, None),
    ],
)
def test_the_window_that_a_server_lists_is_read(
    listed: dict[str, Any], window: int | None
) -> None:
    assert window_in(listed) == window


def test_a_model_says_its_window_itself() -> None:
    assert stated_window(SimpleNamespace(num_ctx=8192)) == 8192
    assert (
        stated_window(SimpleNamespace(profile={"max_input_tokens": 128_000})) == 128_000
    )
    assert stated_window(SimpleNamespace(profile=None)) is None
    assert stated_window(SimpleNamespace(num_ctx=0)) is None
    assert stated_window(type("ChatOllama", (), {"num_ctx": None})()) == 4096


def test_a_model_whose_profile_says_so_writes_thoughts() -> None:
    thinking, plain = (
        SimpleNamespace(profile={"reasoning_output": thinks})
        for thinks in (True, False)
    )
    assert writes_thoughts(thinking)
    assert not any(
        map(
            writes_thoughts,
            (plain, SimpleNamespace(profile={}), SimpleNamespace(profile=None)),
        )
    )


def test_ollama_is_told_the_window_that_is_set(monkeypatch: pytest.MonkeyPatch) -> None:
    given: list[dict[str, Any]] = []

    def build(spec: str, **options: Any) -> SimpleNamespace:
        given.append(options)
        return SimpleNamespace(model="llama3.2", num_ctx=options.get("num_ctx"))

    monkeypatch.setattr("langchain.chat_models.init_chat_model", build)
    build_chat_model("ollama:llama3.2", context_window=16_384)
    build_chat_model("ollama:llama3.2")
    build_chat_model("mistralai:mistral-small", context_window=16_384)
    assert [options.get("num_ctx") for options in given] == [16_384, None, None]


def test_langchain_knows_the_windows_of_openais_models(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    pytest.importorskip("langchain_openai")
    monkeypatch.setenv("OPENAI_API_KEY", "any")
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)
    models = [build_chat_model(f"openai:{name}") for name in ("gpt-4o", "gpt-4")]
    assert as_chat(models[1]).sizes.window == 8192
    assert as_chat(models[1], ChatSettings(context_window=4096)).sizes.window == 4096
    # the smallest counts
    assert as_chat(models[0].with_fallbacks(models[1:])).sizes.window == 8192
    assert as_chat("vllm:http://127.0.0.1:9/v1#unheard-of").sizes.window == 32_768


# ---- prompts that are made to fit


class Served:
    """A model whose server refuses prompts of more than `words` words, and counts its requests."""

    def __init__(
        self,
        scripted_model: Any,
        words: int,
        reply: Any,
        message: str = "Input is too long.",
    ) -> None:
        def answer(prompt: str) -> Any:
            self.sizes.append(len(prompt.split()))
            if self.sizes[-1] > words:
                return ValueError(message)
            return reply(prompt) if callable(reply) else reply

        self.sizes: list[int] = []
        self.model = scripted_model(("", answer))
        # the limits of an endpoint stay with it
        self.model.model = f"served-{uuid4().hex}"


def words(room: int) -> Request:
    return Request((Turn("user", "word " * (room // 2)),))


def first_that_is_taken(chat: Any) -> Dialogue[str]:
    request, reply = yield from fitted(chat, 512, words)
    return f"{len(request.turns[0].text.split())} {reply.text}"


async def test_a_prompt_is_made_smaller_until_the_server_takes_it_and_the_next_one_fits_at_once(
    scripted_model: Any,
) -> None:
    served = Served(scripted_model, 5000, "yes")
    assert (
        converse(as_chat(served.model), first_that_is_taken(as_chat(served.model)))
        == "3983 yes"
    )
    assert served.sizes == [15873, 3984]
    chat = as_chat(served.model)
    assert await aconverse(chat, first_that_is_taken(chat)) == "3983 yes"
    assert len(served.sizes) == 3


async def test_a_replayed_run_takes_the_same_prompts_without_a_server(
    scripted_llm: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = ChatSettings(cache=tmp_path / "replies.db")
    scripted_llm.script(
        {"lists": {"max_model_len": 4096}},
        {"status": 400, "reply": NUMBERS},
        {"reply": "yes"},
    )
    for replay in ("first", "again", "in a coroutine"):
        # as in another process
        monkeypatch.setattr("ras_agent.tools.chat.window._windows", {})
        chat = as_chat(scripted_llm.spec, settings)
        asked = first_that_is_taken(chat)
        reply = (
            await aconverse(chat, asked)
            if replay == "in a coroutine"
            else converse(chat, asked)
        )
        assert (reply.partition(" ")[2], chat.sizes.window) == ("yes", 4096)
    assert len(scripted_llm.requests()) == 2


def test_a_window_that_was_set_meanwhile_is_believed(
    scripted_llm: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    scripted_llm.script(
        {"status": 400, "reply": NUMBERS}, {"reply": "yes"}, {"reply": "now"}
    )
    chat = as_chat(scripted_llm.spec, ChatSettings(cache=tmp_path / "replies.db"))
    converse(chat, first_that_is_taken(chat))
    monkeypatch.setattr("ras_agent.tools.chat.window._windows", {})
    chat = as_chat(
        scripted_llm.spec,
        ChatSettings(cache=tmp_path / "replies.db", context_window=32_768),
    )
    assert converse(chat, first_that_is_taken(chat)).endswith("now")


def test_a_prompt_of_which_nothing_can_be_left_out_is_refused_once(
    scripted_model: Any,
) -> None:
    def fixed(chat: Any) -> Dialogue[str]:
        _, reply = yield from fitted(chat, 512, lambda room: words(20_000))
        return reply.text

    served = Served(scripted_model, 100, "yes")
    chat = as_chat(served.model)
    with pytest.raises(PromptTooLong, match="Input is too long"):
        converse(chat, fixed(chat))
    assert len(served.sizes) == 1


def test_a_refused_prompt_is_not_sent_again_as_it_is(
    scripted_model: Any, settings: ChatSettings
) -> None:
    served = Served(
        scripted_model, 1, "yes", "500 server error: exceeds the context size"
    )
    with pytest.raises(ModelCallError, match="after 1 try"):
        as_chat(served.model, settings).complete(words(100))


def test_what_does_not_fit_is_asked_in_parts(scripted_model: Any) -> None:
    served = Served(scripted_model, 1000, "yes")
    chat, seen = as_chat(served.model), []

    def read(part: range, request: Request, reply: Reply) -> Dialogue[None]:
        seen.append(part)
        yield from ()

    def halves(part: range) -> tuple[range, ...]:
        return part[: len(part) // 2], part[len(part) // 2 :]

    converse(
        chat,
        in_parts(chat, range(3000), lambda part: words(2 * len(part)), halves, read),
    )
    assert seen == [range(750), range(750, 1500), range(1500, 2250), range(2250, 3000)]


NUMBERS = "This model's maximum context length is 4096 tokens. However, your request has 20000 input tokens."
EXCEEDS = "the request exceeds the available context size"
TGI = "Input validation error: `inputs` tokens + `max_new_tokens` must be <= 4096. Given: 20000 `inputs` tokens and 512"
OVER_HTTP: dict[str, tuple[int, dict[str, Any]]] = {
    "OpenAI": (
        400,
        {
            "error": {
                "message": NUMBERS,
                "type": "invalid",
                "code": "context_length_exceeded",
            }
        },
    ),
    "vLLM": (
        400,
        {
            "object": "error",
            "message": NUMBERS,
            "type": "BadRequestError",
            "param": None,
            "code": 400,
        },
    ),
    "llama.cpp": (
        400,
        {
            "error": {
                "code": 400,
                "message": EXCEEDS,
                "n_prompt_tokens": 20_000,
                "n_ctx": 4096,
            }
        },
    ),
    "an older llama.cpp": (
        500,
        {"error": {"code": 500, "message": f"{EXCEEDS} (4096 tokens)"}},
    ),
    "TGI": (422, {"error": TGI, "error_type": "validation"}),
    "a proxy": (
        413,
        {
            "error": {
                "message": "Limit 4096, Requested 20000, please reduce your message"
            }
        },
    ),
    "an error under status 200": (200, {"error": {"message": NUMBERS, "code": 400}}),
}


@pytest.mark.parametrize(
    ("server", "streamed"),
    [
        *((server, False) for server in OVER_HTTP),
        *((server, True) for server in OVER_HTTP if OVER_HTTP[server][0] != 200),
    ],
)
def test_every_servers_refusal_is_read_over_http(
    scripted_llm: Any, settings: ChatSettings, server: str, streamed: bool
) -> None:
    status, body = OVER_HTTP[server]
    listed = (
        {"meta": {"n_ctx": 4096}} if "llama.cpp" in server else {"max_model_len": 4096}
    )
    scripted_llm.script(
        {"lists": listed},
        {"status": status, "body": json.dumps(body)},
        {"reply": "yes"},
    )

    def render(room: int) -> Request:
        return Request(words(room).turns, (lambda text: None) if streamed else None)

    def dialogue(chat: Any) -> Dialogue[str]:
        _, reply = yield from fitted(chat, 512, render)
        return reply.text

    chat = as_chat(scripted_llm.spec, settings)
    assert converse(chat, dialogue(chat)) == "yes"
    assert len(scripted_llm.requests()) == 2
    assert chat.sizes.window == 4096


def test_a_window_below_the_replys_limit_is_learnt_and_the_reply_is_shorter(
    scripted_llm: Any, settings: ChatSettings
) -> None:
    body = {
        "error": {
            "message": "max_tokens=2048 cannot be greater than max_model_len=1024.",
            "code": 400,
        }
    }
    listed = {"max_model_len": 1024}
    scripted_llm.script(
        {"lists": listed}, {"status": 400, "body": json.dumps(body)}, {"reply": "yes"}
    )

    def dialogue(chat: Any) -> Dialogue[str]:
        _, reply = yield from fitted(
            chat,
            2048,
            lambda room: Request(words(min(room, 100)).turns, max_tokens=2048),
        )
        return reply.text

    chat = as_chat(scripted_llm.spec, settings)
    assert converse(chat, dialogue(chat)) == "yes"
    first, second = (request["max_tokens"] for request in scripted_llm.requests())
    assert (first, chat.sizes.window) == (2048, 1024)
    assert 128 <= second <= 1024 - 100


async def test_a_server_that_answers_to_any_name_lists_its_one_model(
    scripted_llm: Any,
) -> None:
    scripted_llm.script({"lists": {"id": "qwen3-8b.gguf", "meta": {"n_ctx": 2048}}})
    assert window_in(await build_chat_model(scripted_llm.spec).about()) == 2048


async def test_of_several_models_in_a_list_the_one_that_is_asked_counts(
    scripted_llm: Any,
) -> None:
    scripted_llm.script(
        {"lists": {"id": "other", "max_model_len": 1024}},
        {"lists": {"max_model_len": 2048}},
    )
    assert window_in(await build_chat_model(scripted_llm.spec).about()) == 2048


# ---- each role


SENTENCES = [
    f"Bell number {number} was born in Edinburgh in {1800 + number}."
    for number in range(200)
]
LONG = Passage("long", " ".join(SENTENCES), "Bells")


def facts(prompt: str) -> str:
    """State a fact for each sentence of the prompt."""
    told = [number for number, sentence in enumerate(SENTENCES) if sentence in prompt]
    return "\n".join(
        f"(S> Bell number {number} | P> was born in | O> {1800 + number})"
        for number in told
    )


def test_a_long_passage_is_read_in_parts_and_no_sentence_is_lost(
    scripted_model: Any,
) -> None:
    served = Served(scripted_model, 1000, facts)
    extraction = LLMExtractor(served.model).extract([LONG])
    assert [triple.object for triple in extraction.triples] == [
        str(1800 + number) for number in range(200)
    ]
    assert extraction.failures == ()
    last = extraction.triples[-1].sources[0]
    assert LONG.text[last.start : last.end] == SENTENCES[-1]
    assert [size > 1000 for size in served.sizes] == [True, True] + [False] * (
        len(served.sizes) - 2
    )


def test_a_window_that_is_set_is_kept_to_without_asking(scripted_model: Any) -> None:
    served = Served(scripted_model, 1_000_000, facts)
    extraction = LLMExtractor(
        served.model, settings=ChatSettings(context_window=2048)
    ).extract([LONG])
    assert len(extraction.triples) == 200
    assert max(served.sizes) < 1024


def test_the_reasoner_shows_what_helps_most_and_says_what_it_left_out(
    scripted_model: Any,
) -> None:
    passages = [
        Passage(f"p{number}", "It lies somewhere. " * 50, f"Place {number}")
        for number in range(40)
    ]
    passages.insert(
        7, Passage("born", "Bell was born in Edinburgh. " * 20, "Alexander Graham Bell")
    )
    served = Served(scripted_model, 1_000_000, "Bell was born in Edinburgh.")
    reasoner = LLMReasoner(served.model, settings=ChatSettings(context_window=4096))
    with metered(Ledger("reasoner", hop=2)) as ledger:
        reasoner.next_sentence(
            "Where was Alexander Graham Bell born?", passages, ["It was Bell."]
        )
    (prompt,) = served.model.prompts
    assert "Alexander Graham Bell\n" in prompt
    assert prompt.endswith(
        "Question: Where was Alexander Graham Bell born?\nSentences so far: It was Bell.\nNext sentence:"
    )
    (note,) = ledger.notes
    assert (note.role, note.hop) == ("reasoner", 2)
    assert re.fullmatch(
        r"3\d of 41 passages did not fit into the model's window of 4,096 tokens, so the least useful were left out; "
        "set context_window if the window is larger",
        note.message,
    )


def test_a_grader_reads_its_candidates_in_parts(scripted_model: Any) -> None:
    def grade(prompt: str) -> str:
        return "\n".join(
            f"{line.partition('.')[0]}: {len(line) % 10}"
            for line in prompt.splitlines()
            if ". Bell" in line
        )

    texts = [f"Bell {'x' * (number % 10)} {'was born ' * 60}" for number in range(32)]
    served = Served(scripted_model, 1500, grade)
    scored = LLMScorer(served.model).score("Where?", texts)
    assert scored.failures == ()
    assert min(scored.values) >= 0
    assert [size > 1500 for size in served.sizes] == [True] + [False] * (
        len(served.sizes) - 1
    )


def test_of_a_question_longer_than_the_window_the_first_names_are_found(
    scripted_model: Any,
) -> None:
    served = Served(scripted_model, 1000, "Bell")
    assert LLMMentions(served.model)(
        "Where was Bell born? " + "He was born. " * 2000
    ) == ["Bell"]
