"""How replies end: an incomplete reply is a failure with its reason, and a reply that a server broke off is asked again."""

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest
from langchain_core.messages import AIMessage, AIMessageChunk

from ras_agent import Passage, Settings, create_single_shot_agent
from ras_agent.contracts.errors import ModelCallError
from ras_agent.prompts import Turn
from ras_agent.tools.chat.asking import reply_in
from ras_agent.tools.chat.call import Reply, Request
from ras_agent.tools.chat.client import ChatSettings, as_chat
from ras_agent.tools.chat.dialogue import Dialogue, aconverse, converse
from ras_agent.tools.chat.endings import finish_reason
from ras_agent.tools.chat.http import BrokenReply
from ras_agent.tools.chat.repeats import repeated_at
from ras_agent.tools.structure.llm import LLMExtractor
from tests.messages import says

REQUEST = Request((Turn("user", "Who?"),))
PART = Request(REQUEST.turns, takes_part=True)


def once(request: Request) -> Dialogue[Reply]:
    reply = yield request
    return reply


def read(text: Any = "Edinburgh is", **metadata: Any) -> Reply:
    message = AIMessage(
        text, response_metadata=metadata, additional_kwargs=metadata.pop("kwargs", {})
    )
    return reply_in(message, 0.0, SimpleNamespace())


WHOLE = [
    *(
        {"finish_reason": word}
        for word in (
            "stop",
            "STOP",
            "tool_calls",
            "eos",
            "COMPLETE",
            "null",
            "stopstop",
            "",
        )
    ),
    *(
        {"finish_reason": word}
        for word in (
            "tool-calls",
            "finish",
            "eosFound",
            "FINISH_REASON_STOP",
            "matched_stop",
            {"type": "stop"},
        )
    ),
    *(
        {"finish_reason": None},
        {"stop_reason": "end_turn"},
        {"stopReason": "tool_use"},
        {"done_reason": "stop"},
    ),
    *(
        {"status": "completed", "incomplete_details": None},
        {"prompt_feedback": {"block_reason": 0}},
        {},
    ),
]
CUT_OFF = [
    *(
        {"finish_reason": word}
        for word in ("length", "MAX_TOKENS", "model_length", "FinishReason.MAX_TOKENS")
    ),
    *(
        {"finish_reason": word}
        for word in (
            "maxTokens",
            "contextLengthReached",
            "ERROR_LIMIT",
            {"type": "length"},
        )
    ),
    *(
        {"stop_reason": "max_tokens"},
        {"stopReason": "max_tokens"},
        {"done_reason": "length"},
    ),
    {"status": "incomplete", "incomplete_details": {"reason": "max_output_tokens"}},
]
BROKEN_OFF = [
    *(
        {"finish_reason": word}
        for word in ("error", "abort", "network_error", "insufficient_system_resource")
    ),
    *(
        {"finish_reason": word}
        for word in (
            "cancelled",
            "timeout",
            "MALFORMED_FUNCTION_CALL",
            "ERROR",
            "aborted",
        )
    ),
    *(
        {"finish_reason": word}
        for word in (
            "modelUnloaded",
            "internal_server_error",
            "preempted",
            "OTHER_ERROR",
            "stopped_by_user",
            "rate_limit",
            "TOO_MANY_TOOL_CALLS",
        )
    ),
    {"status": "failed"},
]
WITHHELD = [
    *(
        {"finish_reason": word}
        for word in ("content_filter", "SAFETY", "RECITATION", "sensitive", "BLOCKLIST")
    ),
    *(
        {"finish_reason": "PROHIBITED_CONTENT"},
        {"stopReason": "content_filtered"},
        {"finish_reason": "ERROR_TOXIC"},
    ),
    *(
        {"finish_reason": word}
        for word in (
            "moderation",
            "data_inspection_failed",
            "MODEL_ARMOR",
            "ContentFiltered",
            "risk_control",
            "COPYRIGHT",
        )
    ),
    {"status": "incomplete", "incomplete_details": {"reason": "content_filter"}},
]
REPLACED = [{"stop_reason": "refusal"}, {"stopReason": "guardrail_intervened"}]
OTHER = ["pause_turn", "model_context_window_exceeded", "incomplete", "something_new"]


@pytest.mark.parametrize("metadata", WHOLE)
def test_a_reply_that_stopped_by_itself_is_whole(metadata: dict[str, Any]) -> None:
    assert (read(**metadata).shortfall, read(**metadata).text) == ("", "Edinburgh is")


@pytest.mark.parametrize("metadata", CUT_OFF)
def test_a_limit_cuts_a_reply_off(metadata: dict[str, Any]) -> None:
    reply = read(**metadata)
    assert (reply.truncated, reply.shortfall) == (
        True,
        "the reply was cut off at its token limit",
    )


@pytest.mark.parametrize("metadata", BROKEN_OFF)
def test_a_reply_that_its_server_broke_off_is_no_reply(
    metadata: dict[str, Any],
) -> None:
    with pytest.raises(BrokenReply, match=r"the server ended the reply early \(\w+\)"):
        read(**metadata)


@pytest.mark.parametrize("metadata", WITHHELD)
def test_a_filter_withholds_the_rest(metadata: dict[str, Any]) -> None:
    reply = read(**metadata)
    assert reply.text == "Edinburgh is"
    assert reply.shortfall.startswith("the server withheld the rest of the reply (")


@pytest.mark.parametrize("metadata", REPLACED)
def test_what_a_server_says_in_place_of_a_reply_is_none(
    metadata: dict[str, Any],
) -> None:
    reply = read("Sorry, the model cannot answer this question.", **metadata)
    assert reply.text == ""
    assert reply.shortfall.endswith("): Sorry, the model cannot answer this question.")


@pytest.mark.parametrize("reason", OTHER)
def test_another_reason_is_named(reason: str) -> None:
    assert (
        read(stop_reason=reason).shortfall
        == f"the server ended the reply early ({reason})"
    )


@pytest.mark.parametrize(
    ("text", "kwargs"),
    [
        ("", {"refusal": "I can't help."}),
        ([{"type": "refusal", "refusal": "I can't help."}], {}),
    ],
    ids=["field", "block"],
)
def test_a_refusal_is_told_in_its_own_words(text: Any, kwargs: dict[str, Any]) -> None:
    told = "the server withheld the rest of the reply (refusal): I can't help."
    assert read(text, finish_reason="stop", kwargs=kwargs).shortfall == told


async def test_a_reply_that_was_broken_off_is_asked_for_again(
    scripted_llm: Any, settings: ChatSettings
) -> None:
    scripted_llm.script(
        {"reply": "Bell inv", "finish": "abort"},
        {"reply": "Bell."},
        {"reply": "Be", "finish": "error"},
    )
    scripted_llm.script(
        {"reply": "Bell."}, {"reply": "Be", "finish": "network_error", "repeat": True}
    )
    chat = as_chat(scripted_llm.spec, settings)
    assert converse(chat, once(REQUEST)).text == "Bell."
    assert (
        await aconverse(chat, once(Request(REQUEST.turns, lambda text: None)))
    ).text == "Bell."
    with pytest.raises(
        ModelCallError, match=says("3 tries", "ended the reply early (network_error)")
    ):
        converse(chat, once(REQUEST))


async def test_a_reply_that_was_withheld_is_a_failed_call_but_where_its_beginning_is_of_use(
    scripted_llm: Any,
) -> None:
    scripted_llm.script(
        {"reply": "Bell inv", "finish": "content_filter", "repeat": True}
    )
    chat = as_chat(scripted_llm.spec)
    for on_text in (None, lambda text: None):
        with pytest.raises(
            ModelCallError, match=r"withheld the rest of the reply \(content_filter\)"
        ):
            converse(chat, once(Request(REQUEST.turns, on_text)))
    assert (await aconverse(chat, once(PART))).text == "Bell inv"
    assert len(scripted_llm.requests()) == 3


def test_a_call_in_which_nothing_but_thoughts_came_says_so(scripted_llm: Any) -> None:
    scripted_llm.script({"reply": "", "finish": "length", "repeat": True})
    with pytest.raises(ModelCallError, match="cut off at its token limit"):
        converse(
            as_chat(scripted_llm.spec), once(Request(REQUEST.turns, max_tokens=100))
        )


def test_facts_in_front_of_what_is_withheld_are_kept(scripted_llm: Any) -> None:
    fact = "(S> Ada | P> lives in | O> Leith)"
    scripted_llm.script(
        {"reply": f"{fact}\n(S> Ada | P> w", "finish": "content_filter"}
    )
    extraction = LLMExtractor(scripted_llm.spec).extract(
        [Passage("a", "Ada lives in Leith.", "Ada")]
    )
    assert [str(triple) for triple in extraction.triples] == [fact]
    (failure,) = extraction.failures
    assert (
        failure.message
        == "the server withheld the rest of the reply (content_filter) (passage a)"
    )


def ask(scripted_llm: Any) -> dict[str, Any]:
    settings = Settings(llm=scripted_llm.spec, extractor="offline", retries=0)
    agent = create_single_shot_agent(
        index=[Passage("a", "Ada lives in Leith.", "Ada")], settings=settings
    )
    return agent.invoke({"question": "Where does Ada live?"})


def test_an_answer_whose_rest_is_withheld_says_so(scripted_llm: Any) -> None:
    scripted_llm.script({"reply": "Answer: Leith", "finish": "content_filter"})
    out = ask(scripted_llm)
    messages = [failure["message"] for failure in out["failures"]]
    assert messages == ["the server withheld the rest of the reply (content_filter)"]
    assert finish_reason(messages) == "content_filter"


def test_a_refusal_is_no_answer(scripted_llm: Any) -> None:
    message = {
        "role": "assistant",
        "content": None,
        "refusal": "I'm sorry, I can't help with that.",
    }
    choice = {"index": 0, "message": message, "finish_reason": "stop"}
    scripted_llm.script(
        {"reply": "", "whole": True, "fields": {"choices": [choice]}, "repeat": True}
    )
    out = ask(scripted_llm)
    assert (out["abstained"], out["failed"]) == (True, "the answerer failed")
    (failure,) = out["failures"]
    assert "(refusal): I'm sorry, I can't help with that." in failure["message"]


def test_the_finish_reason_of_an_answer() -> None:
    assert finish_reason([]) == "stop"
    assert finish_reason(["cited [7], which is no evidence shown"]) == "stop"
    assert finish_reason([read(finish_reason="MAX_TOKENS").shortfall]) == "length"
    assert finish_reason([read(finish_reason="SAFETY").shortfall]) == "content_filter"


def test_pieces_that_both_say_how_a_reply_ended_say_it_once(
    scripted_model: Any,
) -> None:
    first, second = (
        AIMessageChunk(content=text, response_metadata={"finish_reason": "length"})
        for text in ("Be", "ll")
    )
    assert reply_in(first + second, 0.0, SimpleNamespace()).truncated


# ---- replies that repeat themselves

FACT = "(S> Ada | P> lives in | O> Leith)\n"
SENTENCE = "The passage is written in the imperative mood.\n"


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        (SENTENCE * 60, SENTENCE * 2),
        (
            FACT + SENTENCE + FACT + SENTENCE + FACT + SENTENCE,
            FACT + SENTENCE + FACT + SENTENCE,
        ),
        (
            "Question: In what town does Ada live?\nAnswer: Leith\n" * 4,
            "Question: In what town does Ada live?\nAnswer: Leith\n" * 2,
        ),
        (
            f"<think>{SENTENCE * 9}</think>\n{FACT * 3}",
            f"<think>{SENTENCE * 9}</think>\n{FACT * 2}",
        ),
    ],
)
def test_a_reply_ends_where_a_line_comes_for_the_third_time(
    text: str, kept: str
) -> None:
    assert text[: repeated_at(text)] == kept


@pytest.mark.parametrize(
    "text",
    [
        FACT * 2 + "(S> Ada | P> lives in",
        '[\n  {\n    "subject": "Alexander Graham Bell",\n    "object": "1"\n  },\n'
        * 5,
        "- subject: Alexander Graham Bell\n  object: 1\n" * 5,
        "<think>\n" + SENTENCE * 5 + "</think>\nLeith\n",
        "| --- | --- | --- | --- | --- |\n" * 5 + "Yes.\n" * 5,
        "Ada lives in Leith.\nAda lives in Leith, too.\nBob lives in Leith.\n",
    ],
)
def test_other_lines_may_come_back(text: str) -> None:
    assert repeated_at(text) is None


async def test_a_streamed_reply_that_repeats_itself_is_read_no_further(
    scripted_llm: Any,
) -> None:
    heard: list[str] = []
    scripted_llm.script({"reply": SENTENCE * 2000, "repeat": True})
    chat = as_chat(scripted_llm.spec)
    streamed = await aconverse(chat, once(Request(REQUEST.turns, heard.append)))
    ended = converse(chat, once(replace(REQUEST, ends_early=True)))
    whole = converse(chat, once(REQUEST))
    assert [bool(body.get("stream")) for body in scripted_llm.requests()] == [
        True,
        True,
        False,
    ]
    for reply in (streamed, ended, whole):
        assert (reply.text, reply.truncated) == (SENTENCE * 2, True)
        assert (
            reply.shortfall
            == "the reply repeated itself, and was ended when a line came for the third time"
        )
    assert heard[-1].count("imperative") == 3
