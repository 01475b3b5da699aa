"""Replies of search-trained planners in their dialects: the search or the answer, and where the action ends."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ras_agent.config.registry import names
from ras_agent.contracts.errors import UnknownName
from ras_agent.contracts.marks import as_data
from ras_agent.contracts.records import Plan
from ras_agent.tools.plan.dialects import (
    Dialect,
    dialect,
    dialect_of_model,
    dialect_of_reply,
    read_react,
    search_list,
)
from ras_agent.tools.plan.grammar import EXAMPLE_QUERY

TAGGED = ("search-r1", "autorefine")
QUERY, END_QUERY = "<|begin_of_query|>", "<|end_of_query|>"


def _read(name: str, reply: str, *, cut: bool = False) -> tuple[str, str] | None:
    """Return the action of a reply and its text; None if it has no action."""
    reading = dialect(name).read(reply, cut, "")
    return (
        None
        if reading is None
        else (reading.plan.action, reading.plan.subquery or reading.plan.answer)
    )


def _counts(name: str, reply: str) -> str:
    """Return the part of a reply that counts, with the tag that was cut off."""
    reading = dialect(name).read(reply, False, "")
    assert reading is not None
    return reply[: reading.end] + reading.closing


@pytest.mark.parametrize("name", TAGGED)
@pytest.mark.parametrize(
    ("reply", "action"),
    [
        (
            "<think> I need it. </think>\n\n<search> who wrote it </search>",
            ("subq", "who wrote it"),
        ),
        (
            "<think> never closed <search> who wrote it </search>",
            ("subq", "who wrote it"),
        ),
        (
            "<think> known </think>\n<answer> Beijing </answer>",
            ("sufficient", "Beijing"),
        ),
        ("<search> who\n  wrote it </search>", ("subq", "who wrote it")),
        ('<search> "who wrote it" </search>', ("subq", "who wrote it")),
        ('<search> who wrote "It" </search>', ("subq", 'who wrote "It"')),
        ("<Search>who wrote it</Search>", ("subq", "who wrote it")),
        ("< search > who wrote it </ search >", ("subq", "who wrote it")),
        # a stop string cuts the closing tag off, and a model may go on behind the open one
        ("<search> who wrote it", ("subq", "who wrote it")),
        ("<search> who wrote it\n\nI will wait.", ("subq", "who wrote it")),
        ("<answer> Beijing", ("sufficient", "Beijing")),
        # the first action counts, not the turns that the model plays for others behind it
        (
            "<search> a b </search><information> Doc 1 </information><answer> x </answer>",
            ("subq", "a b"),
        ),
        ("<answer> x </answer><search> a b </search>", ("sufficient", "x")),
        # nested, repeated, explained
        ("<search> a <search> b c </search>", ("subq", "b c")),
        ("<search> a <answer> b </answer>", ("sufficient", "b")),
        ("<search></search><search> a b </search>", ("subq", "a b")),
        ("I use <search> and </search> tags: <search> a b </search>", ("subq", "a b")),
        ("I put it in <answer> </answer>. <search> a b </search>", ("subq", "a b")),
        ("<search> query </search> <search> a b </search>", ("subq", "a b")),
        ("</search> <search> a b </search>", ("subq", "a b")),
        ("<search> a b</search</search>", ("subq", "a b")),
        # none
        ("I think it is Beijing.", None),
        ("", None),
        ("<search>", None),
        ("<search> ... </search>", None),
        ("<search> your query here </search>", None),
        ("<answer> A </answer>", ("sufficient", "A")),
        ("<answer> Here </answer>", ("sufficient", "Here")),
        ("<answer> your answer here </answer>", None),
        ("[SUBQ] Who wrote it?", None),
    ],
)
def test_an_action_in_tags_is_read(
    name: str, reply: str, action: tuple[str, str] | None
) -> None:
    assert _read(name, reply) == action


def test_an_action_that_the_token_limit_has_cut_off_is_none() -> None:
    assert (
        _read("search-r1", "<think> x </think><search> who wrote the nov", cut=True)
        is None
    )
    assert _read("search-r1", "<search> who wrote it </search> and more", cut=True) == (
        "subq",
        "who wrote it",
    )
    assert _read("r1-searcher", f"{QUERY} who wrote the nov", cut=True) is None
    assert (
        _read(
            "tool-json",
            '<tool_call>{"name": "search", "arguments": {"query": "who"',
            cut=True,
        )
        is None
    )
    assert _read("react", "Thought: x\nAction: Search[who wrote", cut=True) is None
    assert _read("corag", "Who wrote the nov", cut=True) is None


def test_what_counts_of_a_reply_ends_with_its_action() -> None:
    assert (
        _counts("search-r1", "<search> a b </search>\n<information> played")
        == "<search> a b </search>"
    )
    assert (
        _counts("search-r1", "<think>x</think> <search> a b")
        == "<think>x</think> <search> a b</search>"
    )
    assert _counts("r1-searcher", f"so {QUERY} a b ") == f"so {QUERY} a b{END_QUERY}"
    assert (
        _counts("react", "Thought: x\nAction: Search[a b]\nObservation: played")
        == "Thought: x\nAction: Search[a b]"
    )
    assert _counts(
        "tool-json", '<tool_call>\n{"name": "search", "arguments": {"query": "a b"}}\n'
    ) == (
        '<tool_call>\n{"name": "search", "arguments": {"query": "a b"}}\n</tool_call>'
    )


@pytest.mark.parametrize(
    ("reply", "action"),
    [
        (
            f'I search for "{QUERY} last king Hanover died{END_QUERY}',
            ("subq", "last king Hanover died"),
        ),
        (f"{QUERY} keyword1\tkeyword2 {END_QUERY}", ("subq", "keyword1 keyword2")),
        (f"{QUERY} last king", ("subq", "last king")),
        (f"{QUERY} a {QUERY} last king{END_QUERY}", ("subq", "last king")),
        (
            "It is 1837.</think>\n\n <answer> 20 June 1837 ",
            ("sufficient", "20 June 1837"),
        ),
        (
            f"with {QUERY} search query (only keywords) here {END_QUERY}: {QUERY} a b",
            ("subq", "a b"),
        ),
        (f"{QUERY}{END_QUERY}", None),
        ("<search> a b </search>", None),
    ],
)
def test_r1_searcher_is_read(reply: str, action: tuple[str, str] | None) -> None:
    assert _read("r1-searcher", reply) == action


@pytest.mark.parametrize(
    ("reply", "action"),
    [
        ("Thought: x\nAction: Search[who wrote it]", ("subq", "who wrote it")),
        ("Thought 2: x\nAction 2: search(who wrote it)", ("subq", "who wrote it")),
        (
            "Action: Search[who wrote it (the novel)]",
            ("subq", "who wrote it (the novel)"),
        ),
        (
            "Thought: x\nAction: search\nAction Input: who wrote it",
            ("subq", "who wrote it"),
        ),
        (
            'Action: wiki_search\nAction Input: {"query": "who wrote it"}',
            ("subq", "who wrote it"),
        ),
        ("**Action:** Search[who wrote it]", ("subq", "who wrote it")),
        ("Thought: known\nAction: Finish[Beijing]", ("sufficient", "Beijing")),
        ("Thought: known\nFinal Answer: Beijing", ("sufficient", "Beijing")),
        ("Action: Search[a b]\nObservation: x\nAction: Finish[y]", ("subq", "a b")),
        ("Action: Search[]\nAction: Search[a b]", ("subq", "a b")),
        ("Thought: I could search", None),
        ("Observation: x\nAction: Finish[y]", None),
        ("Action: Calculate[2 + 2]", None),
    ],
)
def test_react_is_read(reply: str, action: tuple[str, str] | None) -> None:
    assert _read("react", reply) == action


def _call(text: str) -> str:
    return f"<tool_call>\n{text}\n</tool_call>"


def test_all_searches_of_calls_written_as_text_are_made_at_the_same_time() -> None:
    first = _call('{"name": "search", "arguments": {"query_list": ["a b", "c d"]}}')
    second = _call('{"name": "search", "arguments": {"query": "e f"}}')
    made_up = _call('{"name": "finish", "arguments": {"answer": "Beijing"}}')
    reply = f"I look both up. {first}\n{second}{made_up}"
    reading = dialect("tool-json").read(reply, False, "")
    assert reading is not None
    assert reading.plan.subqueries == ("a b", "c d", "e f")
    assert reply[: reading.end].endswith(second)


@pytest.mark.parametrize(
    ("reply", "action"),
    [
        (
            _call('{"name": "search", "arguments": {"query": "who wrote it"}}'),
            ("subq", "who wrote it"),
        ),
        (
            _call(
                '{"name": "search", "arguments": {"query_list": ["who wrote it", "b"]}}'
            ),
            ("subq", "who wrote it"),
        ),
        (
            _call(
                '{"name": "search", "arguments": "{\\"query\\": \\"who wrote it\\"}"}'
            ),
            ("subq", "who wrote it"),
        ),
        (
            _call('{"name": "wiki_retriever", "parameters": {"q": "who wrote it"}}'),
            ("subq", "who wrote it"),
        ),
        (
            _call("{'name': 'search', 'arguments': {'query': 'who wrote it',}}"),
            ("subq", "who wrote it"),
        ),
        (
            _call('[{"name": "search", "arguments": {"query": "who wrote it"}}]'),
            ("subq", "who wrote it"),
        ),
        (
            '<tool_call>{"name": "search", "arguments": {"query": "who wrote it"}}',
            ("subq", "who wrote it"),
        ),
        (
            _call('{"name": "finish", "arguments": {"answer": "Beijing"}}'),
            ("sufficient", "Beijing"),
        ),
        ("<think>x</think><answer> Beijing </answer>", ("sufficient", "Beijing")),
        (
            _call('{"name": "calculator", "arguments": {"expression": "2"}}')
            + _call('{"name": "search", "arguments": {"query": "a b"}}'),
            ("subq", "a b"),
        ),
        (_call('{"name": "search", "arguments": {}}'), None),
        (_call("search for it"), None),
        (_call('{"name": ["search"], "arguments": {"query": "a"}}'), None),
        ("Let me think.", None),
    ],
)
def test_calls_of_tools_written_as_text_are_read(
    reply: str, action: tuple[str, str] | None
) -> None:
    assert _read("tool-json", reply) == action


@pytest.mark.parametrize(
    ("reply", "action"),
    [
        ("Who directed Jaws?", ("subq", "Who directed Jaws?")),
        ('"Who directed Jaws?"', ("subq", "Who directed Jaws?")),
        ("Intermediate query 3: Who directed Jaws?", ("subq", "Who directed Jaws?")),
        (
            "\nWho directed Jaws?\nIntermediate answer 3: Spielberg",
            ("subq", "Who directed Jaws?"),
        ),
        (" \n", None),
    ],
)
def test_corag_is_read(reply: str, action: tuple[str, str] | None) -> None:
    assert _read("corag", reply) == action


WORDS = st.lists(st.text("abcdé 北京0123456789'&,.-", min_size=1), min_size=1).map(
    lambda words: " ".join(" ".join(words).split())
)


@given(
    st.sampled_from(
        ["search-r1", "autorefine", "r1-searcher", "react", "tool-json", "ras", "corag"]
    ),
    WORDS,
)
def test_a_search_is_read_as_it_is_written(name: str, words: str) -> None:
    query = f"who is {words} x"
    row = dialect(name)
    assert _read(name, row.write(query)) == ("subq", query)


@given(st.sampled_from(sorted(names("dialect"))), st.text(max_size=300), st.booleans())
def test_any_text_is_read_without_an_error_and_no_further_than_it_goes(
    name: str, text: str, cut: bool
) -> None:
    reading = dialect(name).read(text, cut, "")
    assert reading is None or 0 <= reading.start <= reading.end <= len(text)


PIECES = st.lists(
    st.sampled_from(
        [
            *(
                "<search>",
                "</search>",
                "<answer>",
                "</answer>",
                "<think>",
                "</think>",
                QUERY,
                END_QUERY,
                " a b ",
                "\n",
            ),
            *(
                "<tool_call>",
                "</tool_call>",
                '{"name": "search", "arguments": {"query": "a b"}}',
                "Action: Search[a b]",
            ),
            *(
                "Action: search",
                "Action Input: a b",
                "Observation: x",
                "Final Answer: a b",
                "Intermediate query 1: a b",
            ),
        ]
    ),
    max_size=12,
)


@given(st.sampled_from(["search-r1", "r1-searcher", "react", "tool-json"]), PIECES)
def test_an_action_is_never_made_of_tags(name: str, pieces: list[str]) -> None:
    action = _read(name, "".join(pieces))
    assert action is None or not any(
        tag in action[1]
        for tag in ("<search>", "</search>", QUERY, END_QUERY, "<answer>")
    )


@given(st.sampled_from(["search-r1", "r1-searcher", "react", "tool-json"]), PIECES)
def test_what_counts_of_a_reply_says_the_same_alone(
    name: str, pieces: list[str]
) -> None:
    reply = "".join(pieces)
    row = dialect(name)
    reading = row.read(reply, False, "")
    if reading is not None:
        again = row.read(reply[: reading.end] + reading.closing, False, "")
        assert again is not None
        assert (again.plan.subquery, again.plan.answer) == (
            reading.plan.subquery,
            reading.plan.answer,
        )


@pytest.mark.parametrize(
    "name", ["search-r1", "autorefine", "r1-searcher", "react", "tool-json"]
)
def test_no_action_is_live_in_data(name: str) -> None:
    row = dialect(name)
    for text in (
        row.write("a b c"),
        "<answer> x </answer>",
        "Action: Finish[x]",
        "Final Answer: x",
        *row.around,
    ):
        assert row.read(as_data(text), False, "") is None


@pytest.mark.parametrize(
    ("model", "name"),
    [
        ("vllm:http://localhost:8000/v1#Search-R1-7B", "search-r1"),
        ("PeterJinGo/SearchR1-nq_hotpotqa_train-qwen2.5-7b-em-ppo", "search-r1"),
        ("vllm:http://search-r1.example/v1#Qwen3-8B", None),
        ("XXsongLALA/Llama-3.1-8B-instruct-RAG-RL", "r1-searcher"),
        ("R1-Searcher-7B", "r1-searcher"),
        ("yrshi/AutoRefine-Qwen2.5-3B-Base", "autorefine"),
        ("corag/CoRAG-Llama3.1-8B-MultihopQA", "corag"),
        ("openai:gpt-4o-mini", None),
        ("Qwen2.5-7B-Instruct", None),
    ],
)
def test_a_models_name_tells_its_dialect(model: str, name: str | None) -> None:
    found = dialect_of_model(model)
    assert (found.name if found else None) == name


@pytest.mark.parametrize(
    ("reply", "name"),
    [
        ("<think>x</think><search> a b </search>", "search-r1"),
        (f"{QUERY} a b {END_QUERY}", "r1-searcher"),
        (_call('{"name": "search", "arguments": {"query": "a b"}}'), "tool-json"),
        ("<answer> 42 </answer>", None),
        ("Who directed Jaws?", None),
        ("[SUBQ] Who directed Jaws?", None),
    ],
)
def test_a_reply_to_another_prompt_tells_its_dialect(
    reply: str, name: str | None
) -> None:
    found = dialect_of_reply(reply, False)
    assert (found.name if found else None) == name


def test_searches_are_listed_as_corag_has_them() -> None:
    assert search_list([]) == "Nothing yet"
    assert search_list([("Who?", "Bell"), ("Where?", "Edinburgh")]) == (
        "Intermediate query 1: Who?\nIntermediate answer 1: Bell\n"
        "Intermediate query 2: Where?\nIntermediate answer 2: Edinburgh"
    )


def test_an_unknown_dialect_is_named_with_the_known_ones() -> None:
    with pytest.raises(UnknownName, match=r"search-r2.*search-r1"):
        dialect("search-r2")


def test_a_dialect_of_ones_own_is_registered(monkeypatch: pytest.MonkeyPatch) -> None:
    from dataclasses import replace

    from ras_agent.config import registry

    tables: dict[str, dict[str, Any]] = {
        kind: dict(table) for kind, table in registry.PLUGINS.items()
    }
    monkeypatch.setattr(registry, "PLUGINS", tables)
    registry.register(
        "dialect", "mine", replace(dialect("search-r1"), name="mine", models="my-model")
    )
    found = dialect_of_model("vllm:http://host/v1#my-model")
    assert found is not None
    assert found.name == "mine"


@pytest.mark.parametrize("name", sorted(names("dialect")))
@pytest.mark.parametrize(
    "run",
    [
        *(
            "<search></search>",
            "<search>",
            "<search> and </search>",
            "<answer> ",
            QUERY,
            f"{QUERY}{END_QUERY}",
            "</search>",
        ),
        *(
            "<tool_call>",
            "<tool_call></tool_call>",
            '<tool_call>{"name": "search"}</tool_call>',
            "{",
            '{"name": ',
            "[[[",
        ),
        *(
            "Action: \n",
            "Action: a\n",
            "Action: Search[\n",
            "Action: a a",
            "Action Input: \n",
            "a ",
            " ",
            "\n",
            "<",
            "and ",
        ),
    ],
)
def test_long_runs_are_read_in_one_pass(name: str, run: str) -> None:
    """A reading that looks at each run again from every place in it would take hours here."""
    dialect(name).read(run * 20_000, False, "")


@pytest.mark.parametrize(
    ("name", "reply"),
    [
        ("react", f"Action:{' ' * 20_000}!"),
        ("react", f"Action: search{' ' * 20_000}!"),
        ("react", f"Action: {'_ ' * 20_000}!"),
        ("react", f"Action: {'*' * 20_000}["),
        ("react", f"Action: Search[{'] ' * 20_000}!"),
        ("ras", f"[SUBQ] {'?' * 100_000}!"),
    ],
    ids=lambda value: value[:16],
)
def test_long_lines_of_an_action_are_read_in_one_pass(name: str, reply: str) -> None:
    """A reading that tries each way to part such a line would take minutes or hours here."""
    dialect(name).read(reply, False, "")


@pytest.mark.parametrize(
    ("line", "query"),
    [
        ("  **Search[who wrote it]**", "who wrote it"),
        ("`search (who wrote it)`.", "who wrote it"),
        ("_Search_ [who [now] wrote it] .", "who [now] wrote it"),
    ],
)
def test_markup_around_a_call_is_none_of_it(line: str, query: str) -> None:
    assert _read("react", f"Action:{line}") == ("subq", query)


@pytest.mark.parametrize("name", ["ras", "corag"])
def test_what_is_written_behind_the_end_of_a_turn_does_not_count(name: str) -> None:
    said = "[SUBQ] Who wrote Emma?" if name == "ras" else "Who wrote Emma?"
    assert (
        _counts(name, f"<think>{said}</think>{said}</s>[INST] {said}")
        == f"<think>{said}</think>{said}"
    )


def test_a_dialect_of_ones_own_is_told_by_replies_unless_it_says_otherwise(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from dataclasses import replace

    from ras_agent.config import registry

    tables: dict[str, dict[str, Any]] = {
        kind: dict(table) for kind, table in registry.PLUGINS.items()
    }
    monkeypatch.setattr(registry, "PLUGINS", tables)
    react = dialect("react")
    own = Dialect("mine", react.prompt, read_react, react.write, react.form)
    registry.register("dialect", "mine", replace(own, recognised_by_reply=False))
    assert dialect_of_reply("Action: Search[a b]", False) is None
    registry.register("dialect", "mine", own)
    assert dialect_of_reply("Action: Search[a b]", False) == own


@pytest.mark.parametrize("name", sorted(names("dialect")))
def test_the_example_of_a_dialect_is_a_search_in_it(name: str) -> None:
    row = dialect(name)
    reading = row.read(row.example, False, "")
    assert reading is not None
    assert reading.plan == Plan("subq", EXAMPLE_QUERY)
