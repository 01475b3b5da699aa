"""Teaches a model of 2.6 MB the lessons by heart, and keeps it in tests/engines/model.

    python -m tests.engines.train

takes five to fifteen minutes on one core. It is needed where a prompt has changed, which tests/engines/test_model.py
says. Weights are drawn and batches shuffled by a seed; another machine's sums may end in other last bits.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tests.engines.lessons import fingerprint, lessons

FOLDER = Path(__file__).parent / "model"
LEARNT = "lessons.json"
"""The file of a model's folder that says what it has learnt."""

CHAT_TEMPLATE = (
    "<s>{% for message in messages %}<|{{ message.role }}|>\n{{ message.content or '' }}"
    "{% for call in message.tool_calls or [] %}<tool_call>\n"
    '{"name": "{{ call.function.name }}", "arguments": '
    "{% if call.function.arguments is string %}{{ call.function.arguments }}"
    "{% else %}{{ call.function.arguments | tojson }}{% endif %}}\n</tool_call>"
    "{% endfor %}</s>\n{% endfor %}{% if add_generation_prompt %}<|assistant|>\n{% endif %}"
)
VOCABULARY, WIDTH, LAYERS = 2500, 128, 2
_BATCH, _RATE, _WARM_UP = 8, 2e-3, 50
_LOSS = 0.001  # of the mean token, where every token is the likeliest by far


def new_model(texts: Sequence[str], seed: int = 0) -> tuple[Any, Any]:
    """Return a Llama with random weights, and a tokenizer of the texts' pieces."""
    import torch
    from tokenizers import ByteLevelBPETokenizer
    from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

    bpe = ByteLevelBPETokenizer()
    bpe.train_from_iterator(
        texts,
        vocab_size=VOCABULARY,
        min_frequency=2,
        special_tokens=["<s>", "</s>", "<pad>"],
        show_progress=False,
    )
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=bpe._tokenizer,
        bos_token="<s>",
        eos_token="</s>",
        pad_token="<pad>",
    )
    tokenizer.chat_template = CHAT_TEMPLATE
    torch.manual_seed(seed)
    config = LlamaConfig(
        vocab_size=len(tokenizer),
        hidden_size=WIDTH,
        intermediate_size=2 * WIDTH,
        num_hidden_layers=LAYERS,
        num_attention_heads=4,  # of 32, the least that vLLM's kernels take
        num_key_value_heads=2,
        max_position_embeddings=4096,
        **{
            f"{name}_token_id": getattr(tokenizer, f"{name}_token_id")
            for name in ("bos", "eos", "pad")
        },
    )
    return LlamaForCausalLM(config), tokenizer


def learn(model: Any, tokenizer: Any, taught: Sequence[dict[str, Any]]) -> None:
    """Train until every token of every reply is the likeliest by far."""
    import torch

    samples = [_tokens(tokenizer, lesson) for lesson in taught]
    order = sorted(range(len(samples)), key=lambda place: sum(map(len, samples[place])))
    batches = [order[start : start + _BATCH] for start in range(0, len(order), _BATCH)]
    optimizer = torch.optim.AdamW(
        model.parameters(), lr=_RATE, weight_decay=0.0, betas=(0.9, 0.98)
    )
    shuffled, began, step, epoch = random.Random(0), time.process_time(), 0, 0
    model.train()
    while True:
        shuffled.shuffle(batches)
        total, count, wrong = 0.0, 0, 0
        for batch in batches:
            loss, tokens, errors = _loss(model, [samples[place] for place in batch])
            step += 1
            for group in optimizer.param_groups:
                group["lr"] = _RATE * min(1.0, step / _WARM_UP)
            optimizer.zero_grad()
            loss.backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            total, count, wrong = (
                total + loss.item() * tokens,
                count + tokens,
                wrong + errors,
            )
        epoch += 1
        done = wrong == 0 and total / count < _LOSS
        if done or epoch % 10 == 0:
            seconds = time.process_time() - began
            print(
                f"epoch {epoch}: loss {total / count:.4f}, {wrong} of {count} tokens wrong, {seconds:.0f} s",
                flush=True,
            )
        if done:
            model.eval()
            return


def _tokens(tokenizer: Any, lesson: dict[str, Any]) -> tuple[list[int], list[int]]:
    prompt = tokenizer.apply_chat_template(
        lesson["messages"], tokenize=False, add_generation_prompt=True
    )
    return tuple(
        tokenizer(text, add_special_tokens=False).input_ids
        for text in (prompt, f"{lesson['reply']}</s>")
    )


def _loss(
    model: Any, samples: Sequence[tuple[list[int], list[int]]]
) -> tuple[Any, int, int]:
    """Return the mean loss of the replies' tokens, how many there are, and how many would be others."""
    import torch

    longest = max(len(prompt) + len(reply) for prompt, reply in samples)
    ids = torch.full((len(samples), longest), model.config.pad_token_id)
    labels, mask = torch.full_like(ids, -100), torch.zeros_like(ids)
    for row, (prompt, reply) in enumerate(samples):
        length = len(prompt) + len(reply)
        ids[row, :length], mask[row, :length] = torch.tensor(prompt + reply), 1
        labels[row, len(prompt) : length] = torch.tensor(reply)
    kept = labels[:, 1:] != -100
    states = model.model(input_ids=ids, attention_mask=mask).last_hidden_state[:, :-1]
    logits, targets = model.lm_head(states[kept]), labels[:, 1:][kept]
    return (
        torch.nn.functional.cross_entropy(logits, targets),
        len(targets),
        int((logits.argmax(-1) != targets).sum()),
    )


def main() -> None:
    """Teach a model and keep it."""
    argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    ).parse_args()
    taught = lessons()
    texts = [str(message["content"]) for one in taught for message in one["messages"]]
    model, tokenizer = new_model(texts + 3 * [one["reply"] for one in taught])
    print(
        f"{len(taught)} lessons, {sum(weight.numel() for weight in model.parameters()):,} weights"
    )
    learn(model, tokenizer, taught)
    model.save_pretrained(FOLDER)
    tokenizer.save_pretrained(FOLDER)
    learnt = {
        "lessons": len(taught),
        "fingerprint": fingerprint(taught),
        "command": "python -m tests.engines.train",
    }
    (FOLDER / LEARNT).write_text(json.dumps(learnt, indent=2) + "\n", encoding="utf-8")
    print(f"kept in {FOLDER}")


if __name__ == "__main__":
    sys.exit(main())
