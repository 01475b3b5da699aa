"""TRL itself trains on the gym: GRPO with `environment_factory`, and SFT on episodes that were played.

The replies are scripted, not sampled, so that the assertions do not depend on a model of random weights. All else
is TRL's: how tools are found and called, which tokens are masked, how rewards are asked for, and the step of the optimizer.
"""

from __future__ import annotations

import json
import re
from functools import partial
from pathlib import Path
from typing import Any

import pytest

trl = pytest.importorskip("trl")
from datasets import Dataset

from ras_agent import Limits, Passage
from ras_agent.app.sample import sample_passages
from ras_agent.eval.question import Question
from ras_agent.gym import (
    RandomPolicy,
    Rewards,
    environment_factory,
    log_parts,
    play,
    row_of,
)
from ras_agent.tools.index.store import PassageIndex
from tests.engines.train import new_model
from tests.gym.test_degenerate_policies import QUESTIONS, TEXTS

PAGE = Path(__file__).resolve().parents[2] / "docs/training-planner-rl.md"
TEMPLATE = (
    "<s>{% for message in messages %}<|{{ message.role }}|>"
    "{% if message.role == 'assistant' %}{% generation %}{{ message.content or '' }}"
    "{% for call in message.tool_calls or [] %}<tool_call>"
    '{"name": "{{ call.function.name }}", "arguments": {{ call.function.arguments | tojson }}}'
    "</tool_call>{% endfor %}</s>{% endgeneration %}"
    "{% else %}{{ message.content or '' }}</s>{% endif %}{% endfor %}"
    "{% if add_generation_prompt %}<|assistant|>{% endif %}"
)
CALLS = {
    "open": "<tool_call>",
    "close_pattern": r"</tool_call>\s*",
    "repeats": True,
    "content": "json",
    "transform": {"type": "function", "function": "{content}"},
}
RESPONSE = {
    "defaults": {"role": "assistant"},
    "start_anchor": "<|assistant|>",
    "fields": {
        "tool_calls": CALLS,
        "content": {"close_pattern": r"</s>\s*", "content": "text"},
    },
}
DYNAMITE = Question(
    "sample-01",
    "In which city was the inventor of dynamite born?",
    ("Stockholm",),
    ("dynamite", "alfred-nobel"),
)


def _call(name: str, **arguments: str) -> str:
    return f"<tool_call>{json.dumps({'name': name, 'arguments': arguments})}</tool_call></s>"


# two rollouts of one question: one searches and answers, the other asks for a tool that there is not
REPLIES = [
    [_call("search", query="Who invented dynamite?"), _call("erase", query="all")],
    [_call("finish", reason="known", answer="Stockholm [2]"), "It is gone.</s>"],
    ["Done.</s>"],
]


class Scripted(trl.GRPOTrainer):  # type: ignore[misc]
    """GRPOTrainer whose model says REPLIES, turn by turn."""

    def _generate_single_turn(
        self, prompt_ids: list[list[int]], *args: Any, **kwargs: Any
    ) -> tuple[Any, None]:
        replies = REPLIES[self.turn][: len(prompt_ids)]
        self.turn += 1
        return [
            self.processing_class(reply, add_special_tokens=False).input_ids
            for reply in replies
        ], None

    turn = 0


@pytest.fixture
def model_and_tokenizer() -> tuple[Any, Any]:
    model, tokenizer = new_model(
        [passage.text for passage in sample_passages()] + [json.dumps(REPLIES)]
    )
    tokenizer.add_tokens(
        ["<|user|>", "<|assistant|>", "<|tool|>", "<tool_call>", "</tool_call>"]
    )
    model.resize_token_embeddings(len(tokenizer))
    tokenizer.chat_template, tokenizer.response_template = TEMPLATE, RESPONSE
    return model, tokenizer


def _arguments(folder: Path, kind: Any, **more: Any) -> Any:
    return kind(
        output_dir=str(folder), max_steps=1, use_cpu=True, bf16=False, report_to="none", save_strategy="no",
        gradient_checkpointing=False, logging_steps=1, **more,
    )  # fmt: skip


def test_grpo_resets_calls_and_rewards_the_environment(
    model_and_tokenizer: tuple[Any, Any], tmp_path: Path
) -> None:
    model, tokenizer = model_and_tokenizer
    before = {
        name: weight.detach().clone() for name, weight in model.named_parameters()
    }
    trainer = Scripted(
        model=model,
        processing_class=tokenizer,
        train_dataset=Dataset.from_list(
            [{**row_of(DYNAMITE), "prompt": [{"role": "user", "content": ""}]}]
        ),
        reward_funcs=[log_parts],
        environment_factory=environment_factory(
            index=sample_passages(), rewards=Rewards(citations=0.5), limits=Limits(k=2)
        ),
        args=_arguments(
            tmp_path,
            trl.GRPOConfig,
            per_device_train_batch_size=2,
            num_generations=2,
            max_completion_length=2000,
        ),
    )
    assert [tool.__name__ for tool in trainer.tools] == [
        "finish",
        "neighbours",
        "read",
        "search",
    ]
    trainer.train()
    answered, refused = trainer.environments
    assert answered.question.supporting == ("dynamite", "alfred-nobel")
    # one of the two gold passages is cited
    assert answered.reward_parts == {
        "f1": 1.0,
        "gold": 1.0,
        "citations": pytest.approx(2 / 3),
        "form": 1.0,
    }
    assert refused.reward_parts == {
        "f1": 0.0,
        "gold": 0.0,
        "citations": 0.0,
        "form": 0.0,
    }
    logged = trainer.state.log_history[0]
    assert logged["rewards/GraphSearch/mean"] == pytest.approx((2.1 + 1 / 3 + 0.0) / 2)
    assert logged["parts/gold"] == 0.5
    assert logged["tools/call_frequency"] == 1.5
    assert logged["tools/failure_frequency"] == pytest.approx(1 / 3)
    assert any(
        (weight != before[name]).any() for name, weight in model.named_parameters()
    )


def test_the_page_of_training_by_rewards_runs_as_it_is_shown(
    model_and_tokenizer: tuple[Any, Any],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    tiny, tokenizer = model_and_tokenizer

    class OfThePage(Scripted):
        def __init__(self, model: str, **options: Any) -> None:
            assert model == "Qwen/Qwen3-4B"
            super().__init__(model=tiny, processing_class=tokenizer, **options)

    config = partial(
        _arguments,
        tmp_path,
        trl.GRPOConfig,
        per_device_train_batch_size=2,
        num_generations=2,
    )
    monkeypatch.setattr(trl, "GRPOConfig", config)
    monkeypatch.setattr(trl, "GRPOTrainer", OfThePage)
    monkeypatch.chdir(tmp_path)
    PassageIndex.create("my.index").add(
        [Passage(text["id"], text["text"], text["title"]) for text in TEXTS]
    )
    with open("questions.jsonl", "w", encoding="utf-8") as file:
        for question in QUESTIONS:
            row = {"id": question.id, "question": question.question}
            row |= {
                "answers": question.answers,
                "supporting_titles": question.supporting,
            }
            file.write(json.dumps(row) + "\n")
    names: dict[str, Any] = {}
    page = PAGE.read_text("utf-8")
    blocks = re.findall(r"^```python\n(.*?)^```", page, re.MULTILINE | re.DOTALL)
    assert len(blocks) == 2
    for block in blocks:
        exec(compile(block, PAGE.name, "exec"), names)
    assert names["trainer"].state.log_history[0]["parts/form"] >= 0


def test_sft_takes_played_episodes(
    model_and_tokenizer: tuple[Any, Any], tmp_path: Path
) -> None:
    model, tokenizer = model_and_tokenizer
    make = environment_factory(
        index=sample_passages(), rewards=Rewards(f1=0.0), limits=Limits(k=1)
    )
    row = {**row_of(DYNAMITE), "prompt": [{"role": "user", "content": ""}]}
    episodes = [play(make(), RandomPolicy(seed), row) for seed in range(4)]
    trainer = trl.SFTTrainer(
        model=model,
        processing_class=tokenizer,
        train_dataset=Dataset.from_list(
            [{"messages": episode["messages"]} for episode in episodes]
        ),
        args=_arguments(
            tmp_path,
            trl.SFTConfig,
            assistant_only_loss=True,
            max_length=2000,
            per_device_train_batch_size=2,
        ),
    )
    trainer.train()
    assert trainer.state.log_history[0]["loss"] > 0
