"""The kept model has learnt the package's prompts, and gives each reply by heart."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.engines.lessons import fingerprint, lessons
from tests.engines.train import FOLDER, LEARNT

torch = pytest.importorskip("torch")
pytest.importorskip("jinja2", reason="needs the extra 'llm'")


def test_the_prompts_are_those_that_the_model_has_learnt() -> None:
    learnt = json.loads((FOLDER / LEARNT).read_text(encoding="utf-8"))
    assert fingerprint(lessons()) == learnt["fingerprint"], (
        "prompts, or what is shown in them, have changed since the model of tests/engines/model was trained: "
        f"train it again with `{learnt['command']}` (minutes) and commit the folder"
    )


def test_every_token_of_every_reply_is_the_likeliest_by_a_tenth_at_least() -> None:
    from transformers import AutoModelForCausalLM, AutoTokenizer

    tokenizer: Any = AutoTokenizer.from_pretrained(FOLDER)
    model: Any = AutoModelForCausalLM.from_pretrained(FOLDER).eval()
    margins = []
    for lesson in lessons():
        prompt = tokenizer.apply_chat_template(
            lesson["messages"], tokenize=False, add_generation_prompt=True
        )
        prefix, reply = (
            tokenizer(text, add_special_tokens=False).input_ids
            for text in (prompt, f"{lesson['reply']}</s>")
        )
        with torch.no_grad():
            logits = model(torch.tensor([prefix + reply])).logits[
                0, len(prefix) - 1 : -1
            ]
        chances = logits.softmax(-1)
        of_reply = chances[torch.arange(len(reply)), torch.tensor(reply)]
        others = chances.scatter(1, torch.tensor(reply)[:, None], 0.0).max(-1).values
        margins.append(float((of_reply - others).min()))
    # engines of other kernels and half the bits add up in other orders: the gap is far wider than they differ
    assert min(margins) > 0.1
