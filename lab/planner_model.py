"""A planner of a million weights that calls tools: its tokenizer, its turns, and a model that copies untrained."""

from __future__ import annotations

import math
from collections.abc import Iterable
from pathlib import Path
from typing import Any

WIDTH, LAYERS, VOCABULARY = 128, 3, 3900
CHAT_TEMPLATE = (
    "<s>{% for message in messages %}<|{{ message.role }}|>"
    "{% if message.role == 'assistant' %}{% generation %}{{ message.content or '' }}"
    "{% for call in message.tool_calls or [] %}<tool_call>"
    "{% set arguments = call.function.arguments %}"
    '{"name": "{{ call.function.name }}", "arguments": '
    "{{ arguments if arguments is string else arguments | tojson }}}"
    "</tool_call>{% endfor %}</s>{% endgeneration %}"
    "{% else %}{{ message.content or '' }}</s>{% endif %}{% endfor %}"
    "{% if add_generation_prompt %}<|assistant|>{% endif %}"
)
RESPONSE_TEMPLATE = {
    "defaults": {"role": "assistant"},
    "start_anchor": "<|assistant|>",
    "fields": {
        "tool_calls": {
            "open": "<tool_call>",
            "close_pattern": r"</tool_call>\s*",
            "repeats": True,
            "content": "json",
            "transform": {"type": "function", "function": "{content}"},
        },
        "content": {"close_pattern": r"</s>\s*", "content": "text"},
    },
}
WHOLE = (  # pieces of a call that are one token each, so that what is learnt is whom to call with what
    *("<|system|>", "<|user|>", "<|assistant|>", "<|tool|>", "<tool_call>", "</tool_call>"),
    '{"name": "search", "arguments": {"query": "',
    '{"name": "finish", "arguments": {"reason": "',
    '"}}',
    *("(S>", "| P>", "| O>"),
)


def new_tokenizer(texts: Iterable[str]) -> Any:
    """Return a tokenizer of the texts' pieces, in which a word is the same tokens wherever it stands."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
    from transformers import PreTrainedTokenizerFast

    bpe = Tokenizer(models.BPE(byte_fallback=True, unk_token="<unk>"))
    bpe.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.Metaspace(prepend_scheme="always"), pre_tokenizers.Punctuation()]
    )
    bpe.decoder = decoders.Metaspace(prepend_scheme="always")
    special = ["<unk>", "<s>", "</s>", "<pad>"]
    trainer = trainers.BpeTrainer(vocab_size=VOCABULARY, special_tokens=special, show_progress=False)
    bpe.train_from_iterator(texts, trainer)
    new: Any = PreTrainedTokenizerFast
    tokenizer = new(tokenizer_object=bpe, bos_token="<s>", eos_token="</s>", pad_token="<pad>", unk_token="<unk>")
    tokenizer.add_tokens(list(WHOLE))
    tokenizer.chat_template = CHAT_TEMPLATE
    tokenizer.response_template = RESPONSE_TEMPLATE
    return tokenizer


def new_model(tokenizer: Any, seed: int = 0) -> Any:
    """Return a small Llama with random weights, but for four heads, which are set to copy.

    The heads of the first layer look one and two tokens back; the first of the second layer looks for where the last
    two tokens stood before, and says what followed (an induction head; Olsson et al., 2022); its second says a word of
    what was shown, and learns which. Learning all that from nothing takes a model of this size longer than the rest,
    and each model that one would train as a planner can do it.

    The residual stream holds a token's own embedding in its first 64 places, parts of that of the token before in the
    next 32 and of the one before it in the next 10. From pair `slow` on rotations turn so little that places do not
    matter.
    """
    import torch
    from transformers import LlamaConfig, LlamaForCausalLM

    torch.manual_seed(seed)
    theta, own, pairs, slow, size = 1e8, 64, 32, 11, 0.2
    slots = {1: slice(own, own + 32), 2: slice(own + 32, own + 42)}  # by how many tokens back
    config = LlamaConfig(
        vocab_size=len(tokenizer),
        hidden_size=WIDTH,
        intermediate_size=2 * WIDTH,
        num_hidden_layers=LAYERS,
        num_attention_heads=2,
        num_key_value_heads=2,
        attention_bias=True,
        max_position_embeddings=4096,
        rope_parameters={"rope_type": "default", "rope_theta": theta},
        tie_word_embeddings=True,
        **{f"{name}_token_id": getattr(tokenizer, f"{name}_token_id") for name in ("bos", "eos", "pad")},
    )
    model: Any = LlamaForCausalLM(config)
    before, copy = (layer.self_attn for layer in model.model.layers[:2])
    with torch.no_grad():
        embeddings = model.model.embed_tokens.weight
        embeddings[:, :own] = torch.randn(len(tokenizer), own) * size
        embeddings[:, own:] *= 0.1
        before.o_proj.weight *= 0.1
        for projection in (before.q_proj, before.k_proj):
            projection.weight *= 0.1
        for back, slot in slots.items():
            head = slice((back - 1) * own, back * own)
            start = head.start
            for pair in range(6):  # the highest frequencies; a query meets the key that many places back in phase
                angle = back * theta ** (-pair / pairs)
                before.q_proj.bias[start + pair] = 9.0
                before.k_proj.bias[start + pair] = 9 * math.cos(angle)
                before.k_proj.bias[start + pair + pairs] = 9 * math.sin(angle)
            before.v_proj.weight[head] = torch.eye(own, WIDTH)
            before.o_proj.weight[slot, head] = torch.eye(own)[: slot.stop - slot.start] * size / math.sqrt(2)
        for head, strength in ((slice(own), 4), (slice(own, 2 * own), 2)):
            copy.v_proj.weight[head] = torch.eye(own, WIDTH)
            copy.o_proj.weight[:, head] = 0.0
            copy.o_proj.weight[:own, head] = torch.eye(own) * strength * size
        still = [*range(slow, pairs), *range(pairs + slow, 2 * pairs)]
        one, two = torch.eye(32) * 2.0, torch.eye(10) * 2.0
        for projection, last, last_but_one in (
            (copy.q_proj, slice(32), slice(own, own + 10)),
            (copy.k_proj, slots[1], slots[2]),
        ):
            projection.weight[:own] = 0.0
            projection.weight[still[:32], last] = one
            projection.weight[still[32:], last_but_one] = two
    return model


def taught_tokenizer(out: Path) -> Any:
    """Return the tokenizer in OUT/taught."""
    from transformers import AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(out / "taught")
    tokenizer.chat_template, tokenizer.response_template = CHAT_TEMPLATE, RESPONSE_TEMPLATE
    return tokenizer
