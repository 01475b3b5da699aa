"""Dialogues run to their end, several at once, their errors raised where they asked."""

from typing import Any

import pytest

from ras_agent.contracts.errors import ModelCallError
from ras_agent.prompts import Turn, load
from ras_agent.tools.chat.call import Reply, Request
from ras_agent.tools.chat.client import as_chat
from ras_agent.tools.chat.dialogue import (
    Dialogue,
    aconverse,
    aconverse_all,
    converse,
    converse_all,
    repair,
)
from ras_agent.tools.chat.thoughts import has_unmarked_thoughts, without_thinking


def ask(text: str) -> Request:
    return Request((Turn("user", text),))


def two_questions(name: str) -> Dialogue[str]:
    first = yield ask(f"{name} one")
    try:
        second = yield ask(f"{name} two")
    except ModelCallError:
        return f"{first.text} and nothing"
    return f"{first.text} and {second.text}"


async def test_a_dialogue_returns_its_result(scripted_model: Any) -> None:
    assert converse(as_chat(scripted_model("1", "2")), two_questions("a")) == "1 and 2"
    assert (
        await aconverse(as_chat(scripted_model("1", "2")), two_questions("a"))
        == "1 and 2"
    )


async def test_a_failed_call_is_raised_inside_the_dialogue(scripted_model: Any) -> None:
    assert (
        converse(as_chat(scripted_model("1", KeyError())), two_questions("a"))
        == "1 and nothing"
    )
    assert (
        await aconverse(as_chat(scripted_model("1", KeyError())), two_questions("a"))
        == "1 and nothing"
    )


def test_what_it_does_not_catch_is_raised_to_the_caller(scripted_model: Any) -> None:
    with pytest.raises(ModelCallError):
        converse(as_chat(scripted_model(KeyError())), two_questions("a"))


async def test_several_dialogues_return_in_order(scripted_model: Any) -> None:
    replies = [
        (f"{name} {count}", f"{name}{count}")
        for name in "abc"
        for count in ("one", "two")
    ]
    expected = ["aone and atwo", "bone and btwo", "cone and ctwo"]
    assert (
        converse_all(
            as_chat(scripted_model(*replies)), [*map(two_questions, "abc")], at_once=2
        )
        == expected
    )
    assert (
        await aconverse_all(
            as_chat(scripted_model(*replies)), [*map(two_questions, "abc")], at_once=2
        )
        == expected
    )


def test_a_repair_shows_the_reply_without_its_thoughts() -> None:
    request = repair(
        ask("Plan."),
        Reply("<think>hm</think> Well."),
        load("repair"),
        "it holds no action",
        "[SUFFICIENT]",
    )
    assert request.turns == (
        Turn("user", "Plan."),
        Turn("assistant", "Well."),
        Turn(
            "user",
            "Your reply could not be used: it holds no action\n"
            "Reply again, with nothing but the reply itself, in a form like this:\n[SUFFICIENT]",
        ),
    )


def test_an_empty_reply_is_not_sent_back_as_an_empty_message() -> None:
    assert repair(ask("Plan."), Reply(""), load("repair"), "x", "y").turns[1] == Turn(
        "assistant", "(no text)"
    )


@pytest.mark.parametrize(
    ("reply", "visible"),
    [
        ("plain", "plain"),
        ("<think>a</think>b", "b"),
        ("<Thinking>a</Thinking>b", "b"),
        ("a</think>b", "b"),
        ("<think>a</think>b<think>c</think>d", "d"),
        ("<think>a <think>b</think> c</think>d", "d"),
        ("<think>never closed", ""),
        ("b<think>c", "b"),
        ("", ""),
        ("[THINK]hm[/THINK]yes", "yes"),
        (
            "<|channel|>analysis<|message|>hm<|end|><|start|>assistant<|channel|>final<|message|>yes",
            "yes",
        ),
        ("yes</s>[INST] Thanks! [/INST]", "yes"),
        ("yes<|eot_id|><|start_header_id|>user<|end_header_id|>no", "yes"),
        ("<s> yes <end_of_turn>no", " yes "),
        ("<|im_start|>assistant\nyes<|im_end|>", "\nyes"),
        ("yes<｜end▁of▁sentence｜>", "yes"),
        ("1 < 2 | 3 <| 4", "1 < 2 | 3 <| 4"),
        ("<seed:think>hm</seed:think>yes", "yes"),
        ("<think duration='3'>hm</think >yes", "yes"),
        ("<scratchpad>hm</scratchpad>yes", "yes"),
        ("<thinking>hm</thinking><reflection>hm</reflection>yes", "yes"),
        ("◁think▷hm◁/think▷yes", "yes"),
        (
            '<details type="reasoning" done="true">\n<summary>Thought</summary>\nhm\n</details>yes',
            "yes",
        ),
        (
            "<details><summary>More</summary>hm</details>",
            "<details><summary>More</summary>hm</details>",
        ),
        ("analysisThe user asks.assistantfinalYes", "Yes"),
        ("analysis\nhm\nassistantfinal\nyes", "\nyes"),
        ("analysisThe user asks", ""),
        ("analysis of the river", "analysis of the river"),
        ("the assistantfinal Yes", "the assistantfinal Yes"),
        ("<|channel|>final<|message|>yes", "yes"),
        ("Here is my thought process: hm\nHere is my response: yes", " yes"),
        ("Here's my thought process: hm", ""),
        (
            "<|START_THINKING|>hm<|END_THINKING|><|START_RESPONSE|>yes<|END_RESPONSE|>",
            "yes",
        ),
        ("<|channel>thought\nhm<channel|>yes", "yes"),
        ("<|channel>thought\nhm<channel|><|channel>final\nyes<channel|>", "\nyes"),
        ("<|think|>hm<|/think|>yes", "yes"),
        ("<|think|>hm<|end|><|begin|>assistant<|content|>yes", "yes"),
        ("<mm:think>hm</mm:think>yes", "yes"),
        ("[unused16]hm[unused17]yes", "yes"),
        ("<think>hm</think><|begin_of_box|>yes<|end_of_box|>", "yes<|end_of_box|>"),
        (
            "<|channel|>analysis<|message|>hm<|channel|>final <|constrain|>text<|message|>yes<|return|>",
            "yes",
        ),
        ("yes<sep>no", "yes"),
        ("<|inner_prefix|>hm<|inner_suffix|>yes", "yes"),
        (
            "<|begin_of_thought|>hm<|end_of_thought|>\n<|begin_of_solution|>yes<|end_of_solution|>",
            "yes",
        ),
        ("<|im_start|>think\nhm\n<|im_start|>answer\nyes", "\nyes"),
        ("## Thinking\nhm\n\n## Final Response\nyes", "\nyes"),
        ("## Reasoning\nhm\n[SUBQ] Who?", "## Reasoning\nhm\n[SUBQ] Who?"),
        ("<start_of_turn>model\nyes", "\nyes"),
    ],
)
def test_thoughts_are_taken_out_of_a_reply(reply: str, visible: str) -> None:
    assert without_thinking(reply) == visible


@pytest.mark.parametrize(
    ("reply", "unmarked"),
    [
        ("hm</think>yes", True),
        ("<think>hm</think>yes", False),
        ("Here is my response: yes", False),
        ("yes", False),
        ("", False),
    ],
)
def test_thoughts_that_no_mark_opened_are_noticed(reply: str, unmarked: bool) -> None:
    assert has_unmarked_thoughts(reply) is unmarked
