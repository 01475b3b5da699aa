"""The throughput benchmark: a sequential loop and evaluations over a loopback server, small."""

import httpx
import pytest

from ras_agent.eval.bench.loopback_model import answer, extract, plan, serving

pytestmark = pytest.mark.slow("benchmarks")


def test_the_stand_in_plans_reads_and_answers_by_the_prompt_alone() -> None:
    question = "Question: Who built it?"
    assert plan(question) == "[SUBQ] Who built it?"
    assert plan(f"[SUBQ] a\n[SUBQ] b\n[SUBQ] c\n{question}") == "[SUFFICIENT]"
    assert extract(
        "<passage>\n[1] Mill\none two three four five six seven\n</passage>"
    ).splitlines() == [
        "(S> Mill | P> has in its text | O> one two three four five)",
        "(S> Mill | P> has in its text | O> seven)",
    ]
    assert answer("(S> Mill | P> was built by | O> Ann)") == "Answer: Ann [1]"
    assert answer("nothing") == "Answer: [UNKNOWN]"


def test_the_stand_in_counts_the_reply_that_is_asked_for_by_either_name() -> None:
    asked = {
        "model": "answerer",
        "messages": [{"role": "user", "content": "Who built it?"}],
    }
    with serving(window=100) as server:
        for limit in ({"max_tokens": 200}, {"max_completion_tokens": 200}):
            refused = httpx.post(
                f"{server.root}/v1/chat/completions",
                json=asked | limit,
                trust_env=False,
            )
            assert (refused.status_code, "200 output tokens" in refused.text) == (
                400,
                True,
            )
