"""How models wrap an answer, and how it is read out of a whole reply and out of one that still grows."""

from __future__ import annotations

import pytest

from ras_agent.tools.answer.forms import answer_part, bare_words, opens_with_answer

WRAPPED = [
    "Answer: Water of Leith",
    "<response>Water of Leith</response>",
    "<response>Answer: Water of Leith</response>",
    "<output>Answer: Water of Leith</output>",
    "<final>Answer: Water of Leith</final>",
    "<result>Answer: Water of Leith</result>",
    "<final_answer>Water of Leith</final_answer>",
    "<answer>Answer: Water of Leith</answer>",
    "<answer>\nAnswer: Water of Leith\n</answer>",
    '<answer id="1">Water of Leith</answer>',
    "<output>\n<answer>Water of Leith</answer>\n</output>",
    "<output>notes on rivers</output>\nAnswer: Water of Leith",
    "Answer: <response>Water of Leith</response>",
    "Answer: Water of Leith</response>",
    '<output>{"answer": "Water of Leith"}</output>',
    "**Answer:** Answer: Water of Leith",
    "**Answer:** **Water of Leith**",
    "*Answer:* _Water of Leith_",
    "Answer: Answer: Answer: Water of Leith",
    "Answer: Water of Leith\n\nAnswer: Water of Leith",
    "Response: Water of Leith",
    "Final: Water of Leith",
    "FINAL ANSWER: Water of Leith",
    "Answer: \\boxed{Water of Leith}",
    "\\( \\boxed{Water of Leith} \\)",
    "The final answer is $\\boxed{\\text{Water of Leith}}$.",
    "Answer: <b>Water of Leith</b>",
    "Answer: Water of Leith<br>",
    "<generated_text>Answer: Water of Leith</generated_text>",
    "<finalAnswer>Water of Leith</finalAnswer>",
    "Answer: <|begin_of_box|>Water of Leith<|end_of_box|>",
    "Answer: \\textbf{Water of Leith}",
    "```xml\n<answer>Water of Leith</answer>\n```",
]


@pytest.mark.parametrize("reply", WRAPPED)
def test_a_wrapper_never_reaches_an_answer(reply: str) -> None:
    assert bare_words(answer_part(reply, prose=False)) == "Water of Leith"


@pytest.mark.parametrize("reply", WRAPPED)
def test_a_wrapper_never_reaches_a_stream(reply: str) -> None:
    beginnings = [reply[:length] for length in range(1, len(reply))]
    shown = [
        bare_words(answer_part(beginning, prose=False, finished=False))
        for beginning in beginnings
    ]
    assert [part for part in shown if not "Water of Leith".startswith(part)] == []


@pytest.mark.parametrize(
    ("reply", "part"),
    [
        ("<root><answer>Leith</answer><citation>1</citation></root>", "Leith [1]"),
        ("Answer: Leith <cite>2</cite>", "Leith [2]"),
        ("Answer: Leith<sup>[1, 3]</sup>", "Leith[1][3]"),
        ("<answer>Leith</answer> [2]", "Leith [2]"),
        ("Answer: 10<sup>6</sup>", "10<sup>6</sup>"),
        ("Answer: Leith [^2]", "Leith [2]"),
        ("Answer: Leith [[2]](https://a.org/b)", "Leith [2]"),
        ("Answer: Leith【2†source】", "Leith[2]"),
        ("Answer: Leith [2](#passage-2)", "Leith [2]"),
        ("Answer: [Leith](https://a.org/b) [2]", "Leith [2]"),
    ],
)
def test_numbers_in_tags_are_citations_where_they_stand_behind_an_answer(
    reply: str, part: str
) -> None:
    assert answer_part(reply, prose=False) == part


def test_the_last_words_of_a_mathematician_are_no_answer() -> None:
    reply = "Final Answer: The final answer is Leith. I hope it is correct."
    assert answer_part(reply, prose=False) == "Leith"


@pytest.mark.parametrize(
    ("reply", "opens"),
    [
        ("Answer: Lei", True),
        ("<answer>Lei", True),
        ("<think>Thames?</think>Well. Answer: Lei", True),
        ("The user asks for a river.\nAnswer: Lei", False),
        ("", False),
    ],
)
def test_what_stands_before_an_answer_may_be_a_thought(reply: str, opens: bool) -> None:
    assert opens_with_answer(reply) is opens
