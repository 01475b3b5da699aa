"""The lab's training of a planner by rewards: who teaches it, what it can do untrained, how episodes are counted."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest

from lab.planner_rl import (
    LIMITS,
    REWARDS,
    Material,
    MixedPolicy,
    QuestionFirst,
    Setup,
    bare_row,
    difference,
    draws_by_step,
    episode_line,
    is_for_choosing,
    is_held_out,
    mean_of,
    more_questions,
    pooled,
)
from ras_agent.app.sample import sample_passages
from ras_agent.eval.question import Question
from ras_agent.gym import GraphSearch, environment_factory, play

NOBEL = Question(
    "q", "Was Alfred Nobel born in the city of the Nobel Bridge?", ("yes",), ("alfred-nobel",), by_title=False
)


@pytest.fixture
def environment() -> GraphSearch:
    return environment_factory(index=sample_passages(), extractor="offline", rewards=REWARDS, limits=LIMITS)()


def _queries(environment: GraphSearch, policy: Any) -> list[str]:
    play(environment, policy, bare_row(NOBEL))
    return [step.subquery for step in environment.steps]


def test_the_mixed_policy_plays_equal_episodes_for_equal_seeds(environment: GraphSearch) -> None:
    assert _queries(environment, MixedPolicy(3)) == _queries(environment, MixedPolicy(3))


@pytest.mark.parametrize(
    ("first", "later", "queries"),
    [
        ((1, 0, 0), (1, 0, 0), [NOBEL.question]),
        ((1, 0, 0), (0, 1, 0), [NOBEL.question, "Nobel Bridge"]),
        ((0, 1, 0), (0, 1, 0), ["Alfred Nobel", "Nobel Bridge"]),
    ],
)
def test_the_mixed_policy_draws_its_searches_by_weights_and_ends_where_none_is_left(
    environment: GraphSearch, first: Any, later: Any, queries: list[str]
) -> None:
    assert _queries(environment, MixedPolicy(1, Setup(first, later))) == queries


def test_the_mixed_policy_searches_nothing_twice(environment: GraphSearch) -> None:
    for seed in range(20):
        queries = _queries(environment, MixedPolicy(seed))
        assert len(set(queries)) == len(queries) == 3


def test_the_mixed_policy_searches_words_that_it_was_shown(environment: GraphSearch) -> None:
    for seed in range(20):
        episode = play(environment, MixedPolicy(seed), bare_row(NOBEL))
        line = episode_line(environment, episode["messages"][1:])
        assert line["copied"] == line["searches"] > 0


def test_the_mixed_policy_ends_where_it_is_told_that_no_search_is_left(environment: GraphSearch) -> None:
    episode = play(environment, MixedPolicy(0), bare_row(NOBEL))
    calls = [turn["tool_calls"][0]["function"]["name"] for turn in episode["messages"] if "tool_calls" in turn]
    assert calls == ["search", "search", "search", "search", "finish"]
    assert "no search is left" in episode["messages"][-3]["content"]


def test_question_first_leaves_out_names_that_were_found(environment: GraphSearch) -> None:
    assert _queries(environment, QuestionFirst()) == [NOBEL.question, "Nobel Bridge"]


def test_an_episode_counts_searches_that_say_nothing_shown_apart(environment: GraphSearch) -> None:
    environment.reset(NOBEL)
    shown = [environment.search(query) for query in (f" {NOBEL.question}", "Nobel Bridge", "Bridge Nobel")]
    environment.finish("enough")
    line = episode_line(environment, [{"role": "tool", "content": text} for text in shown])
    assert line == {"id": "q", "gold": 1.0, "ended": 1.0, "searches": 3, "copied": 2, "whole": 1, "repeated": 0}


def test_questions_that_are_held_out_teach_nobody(tmp_path: Path) -> None:
    (tmp_path / "reading").mkdir()
    texts = ["Who built  it?", "Who sold it?", "Who sold it?", ""]
    lines = "".join(json.dumps({"question": text, "answer": ""}) + "\n" for text in texts)
    (tmp_path / "reading" / "hotpot_2wiki_train_qa.jsonl").write_text(lines)
    given = Material([], [], [], [Question("h", "who built it", ("Ann",))])
    assert [question.question for question in more_questions(tmp_path, given)] == ["Who sold it?"]


def test_questions_are_held_out_by_a_hash_of_their_ids() -> None:
    held_out = [number for number in range(32) if is_held_out(Question(f"q{number}", "?", ()))]
    assert held_out == [22, 28, 31]


def test_settings_are_chosen_by_questions_that_are_not_reported_on() -> None:
    questions = [Question(f"q{number}", "?", ()) for number in range(32)]
    chosen_by = [number for number, question in enumerate(questions) if is_for_choosing(question)]
    assert chosen_by == [0, 6, 12, 14, 25, 29]


def test_a_question_is_shown_without_marks_that_a_call_would_escape() -> None:
    row = bare_row(Question("q", 'Who  sang "Help!" first? ', ("Ann",)))
    assert row["question"] == "Who sang ”Help!” first?"
    assert row["prompt"] == [{"role": "user", "content": ""}]


def test_draws_are_averaged_by_question_before_all() -> None:
    lines = [
        {"step": 0, "id": "a", "gold": 0.0},
        {"step": 0, "id": "a", "gold": 1.0},
        {"step": 0, "id": "b", "gold": 1.0},
        {"step": 10, "id": "a", "gold": 1.0},
    ]
    steps = draws_by_step(lines)
    assert steps == {0: {"a": [0.0, 1.0], "b": [1.0]}, 10: {"a": [1.0]}}
    assert mean_of(steps[0]) == 0.75
    assert pooled(steps.values()) == {"a": [0.0, 1.0, 1.0], "b": [1.0]}


def test_a_difference_is_of_the_questions_that_both_have() -> None:
    one, other = {"a": [1.0, 0.0], "b": [0.5], "c": [1.0]}, {"a": [0.25], "b": [0.25]}
    assert difference(one, other) == "+0.250 (+0.250 to +0.250)"


def test_a_model_searches_the_other_name_of_the_question_before_it_is_taught() -> None:
    torch = pytest.importorskip("torch")
    pytest.importorskip("transformers")
    from lab.planner_model import SEARCH, new_model, new_tokenizer

    tokenizer = new_tokenizer([passage.text for passage in sample_passages()])
    model = new_model(tokenizer)
    titles = sorted({passage.title for passage in sample_passages() if passage.title[:1].isupper()})
    draw, more_likely = random.Random(0), []
    for _ in range(30):
        searched, other = draw.sample(titles, 2)
        question = f"Who was born earlier, {searched} or {other}?"
        text = f"<s><|user|>Question: {question}</s>"
        for query in (question, searched):
            text += f'<|assistant|><tool_call>{SEARCH}{query}"}}}}</tool_call></s><|tool|>Passages:\n[1] Rome</s>'
        tokens = tokenizer(f"{text}<|assistant|><tool_call>{SEARCH}", add_special_tokens=False).input_ids
        with torch.no_grad():
            logits = model(torch.tensor([tokens])).logits[0, -1]
        begins = (tokenizer(name, add_special_tokens=False).input_ids[0] for name in (other, searched))
        more_likely.append(bool(logits[next(begins)] > logits[next(begins)]))
    assert sum(more_likely) >= 22


def test_a_model_copies_before_it_is_taught() -> None:
    torch = pytest.importorskip("torch")
    pytest.importorskip("transformers")
    from lab.planner_model import new_model, new_tokenizer

    texts = [passage.text for passage in sample_passages()]
    tokenizer = new_tokenizer(texts)
    model = new_model(tokenizer)
    words = random.Random(0).sample(sorted({word for text in texts for word in text.split() if word.isalpha()}), 20)
    tokens = tokenizer(" ".join(words), add_special_tokens=False).input_ids
    with torch.no_grad():
        logits = model(torch.tensor([[*tokens, tokenizer.eos_token_id, *tokens]])).logits[0]
    said = logits[-len(tokens) : -1].argmax(dim=-1).tolist()
    right = sum(one == other for one, other in zip(said, tokens[1:], strict=True))
    assert right / len(said) > 0.9
