"""Forms of replies, in the words of each server."""

import pytest

from ras_agent.tools.answer.forms import FORMS
from ras_agent.tools.chat.form import ReplyForm, as_grammar
from ras_agent.tools.plan.grammar import REPLY_FORM as PLAN
from ras_agent.tools.structure.parse_triples import REPLY_FORM as FACTS


@pytest.mark.parametrize(
    ("pattern", "grammar"),
    [
        (r"\[NO\]", '"[" "N" "O" "]"'),
        (r"a b|c", '"a" " " "b" | "c"'),
        (r"[^\n|]{1,80}\)", '[^\\n|] {1,80} ")"'),
        (r"x(?: ?\[\d{1,3}\]){0,6}", '"x" ( " " ? "[" [0-9] {1,3} "]" ) {0,6}'),
        (r"ab+\n\"", '"a" "b" + "\\n" "\\""'),
    ],
)
def test_a_pattern_as_a_grammar_of_llama_cpp(pattern: str, grammar: str) -> None:
    assert as_grammar(pattern) == grammar


def test_each_server_is_told_in_its_own_words() -> None:
    form = ReplyForm("yes|no", {"type": "object"})
    assert form.options("vllm") == {"structured_outputs": {"regex": "yes|no"}}
    assert form.options("llamacpp") == {"grammar": 'root ::= "y" "e" "s" | "n" "o"'}
    assert form.options("sglang") == {"regex": "yes|no"}
    schema = {"name": "reply", "strict": True, "schema": {"type": "object"}}
    assert form.options("library") == {
        "response_format": {"type": "json_schema", "json_schema": schema}
    }


def test_schemas_keep_to_what_strict_servers_take() -> None:
    answer = FORMS["short"].reply_form(may_abstain=True)
    assert answer is not None
    for form in (PLAN, FACTS, answer):
        assert form.schema["type"] == "object"
        assert form.schema["additionalProperties"] is False
        assert form.schema["required"] == list(form.schema["properties"])


def test_the_form_of_facts_counts_no_facts_whose_letters_are_counted() -> None:
    # llama.cpp refuses a grammar in which two counts that are inside each other multiply to thousands
    assert as_grammar(FACTS.pattern).count(") {") == 0
    assert as_grammar(FACTS.pattern).count(") *") == 1
