"""Forms of answers: the form that a server demands of a reply is the form that is read."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ras_agent.contracts.records import AnswerStyle
from ras_agent.tools.answer.forms import FORMS, abstains, answer_part
from ras_agent.tools.chat.form import ReplyForm


def form(style: AnswerStyle, *, may_abstain: bool) -> ReplyForm:
    found = FORMS[style].reply_form(may_abstain=may_abstain)
    assert found is not None
    return found


@given(st.from_regex(form("boolean", may_abstain=True).pattern, fullmatch=True))
def test_each_reply_in_the_form_of_a_verdict_is_one_or_abstains(reply: str) -> None:
    part = answer_part(reply, prose=False)
    assert abstains(part) or FORMS["boolean"].read(part, "Is it so?") in (
        "True",
        "False",
        "Yes",
        "No",
    )


def test_a_model_that_must_answer_has_no_form_for_an_abstention() -> None:
    assert "UNKNOWN" in form("short", may_abstain=True).pattern
    assert "UNKNOWN" not in form("short", may_abstain=False).pattern


def test_an_answer_in_json_is_read_with_its_citations() -> None:
    assert (
        answer_part('{"answer": "Water of Leith", "citations": [2, 3]}', prose=False)
        == "Water of Leith [2][3]"
    )


@pytest.mark.parametrize("style", ["long", "citing"])
def test_prose_has_no_form(style: AnswerStyle) -> None:
    assert FORMS[style].reply_form(may_abstain=True) is None
