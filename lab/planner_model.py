"""A planner of a million weights that calls tools: its tokenizer, its turns, and a model that copies untrained."""

from __future__ import annotations

import math
from collections.abc import Iterable
from pathlib import Path
from typing import Any

WIDTH, LAYERS, HEADS, VOCABULARY = 168, 3, 3, 3900
SEARCH = '{"name": "search", "arguments": {"query": "'
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
    SEARCH,
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
    """Return a small Llama with random weights, but for eight of its nine heads, which are set to copy.

    Those of the first layer look one, two and three tokens back. In the second, the first looks for where the last
    three tokens stood before, and says what followed (an induction head; Olsson et al., 2022); the second marks what
    comes after a tool has spoken; the third says a word of what was shown, and learns which. In the third, the first
    unsays where a search begins how earlier ones and the subjects of facts began (copy suppression; McDougall et al.,
    2023), and the second says how names of the question begin. Learning all that from nothing takes a model of this
    size longer than the rest, and each model that one would train as a planner can do it.

    The residual stream holds a token's own embedding in its first 64 places, the very first of which says whether it
    has a capital; then parts of that of the token before, of the one before it and of the third; then the mark of the
    second layer. From pair `slow` on rotations turn so little that places do not matter.
    """
    import torch
    from transformers import LlamaConfig, LlamaForCausalLM

    torch.manual_seed(seed)
    theta, own, width, slow, size = 1e8, 64, 96, 17, 0.2
    pairs = width // 2
    slots = (slice(own, own + 28), slice(own + 28, own + 48), slice(own + 48, own + 62))  # by how many tokens back
    config = LlamaConfig(
        vocab_size=len(tokenizer),
        hidden_size=WIDTH,
        intermediate_size=2 * WIDTH,
        num_hidden_layers=LAYERS,
        num_attention_heads=HEADS,
        num_key_value_heads=HEADS,
        head_dim=width,
        attention_bias=True,
        max_position_embeddings=4096,
        rope_parameters={"rope_type": "default", "rope_theta": theta},
        tie_word_embeddings=True,
        **{f"{name}_token_id": getattr(tokenizer, f"{name}_token_id") for name in ("bos", "eos", "pad")},
    )
    model: Any = LlamaForCausalLM(config)
    before, copy, last = (layer.self_attn for layer in model.model.layers)
    still = torch.tensor([*range(slow, pairs), *range(pairs + slow, 2 * pairs)])
    with torch.no_grad():
        embeddings = model.model.embed_tokens.weight
        embeddings[:, :own] = torch.randn(len(tokenizer), own) * size
        embeddings[:, own:] *= 0.1
        embeddings[:, 0] = (
            torch.tensor([_capital(piece) for piece in tokenizer.convert_ids_to_tokens(range(len(tokenizer)))])
            * 2
            * size
        )

        def embedding(token: str) -> Any:
            return embeddings[tokenizer.convert_tokens_to_ids(token), :own].clone()

        opening = embedding(SEARCH)
        before.o_proj.weight *= 0.1
        for projection in (before.q_proj, before.k_proj):
            projection.weight *= 0.1
        for back, slot in enumerate(slots, 1):
            start = (back - 1) * width
            for pair in range(6):  # the highest frequencies; a query meets the key that many places back in phase
                angle = back * theta ** (-pair / pairs)
                before.q_proj.bias[start + pair] = 9.0
                before.k_proj.bias[start + pair] = 9 * math.cos(angle)
                before.k_proj.bias[start + pair + pairs] = 9 * math.sin(angle)
            before.v_proj.weight[start : start + own] = torch.eye(own, WIDTH)
            before.o_proj.weight[slot, start : start + own] = (
                torch.eye(own)[: slot.stop - slot.start] * size / math.sqrt(2)
            )
        for layer, number, strength in ((copy, 0, 4), (copy, 2, 2), (last, 0, -5), (last, 1, 4)):
            head = slice(number * width, number * width + own)
            layer.v_proj.weight[head] = torch.eye(own, WIDTH)
            layer.o_proj.weight[:, head] = 0.0
            layer.o_proj.weight[:own, head] = torch.eye(own) * strength * size
        for layer in (copy, last):
            for projection in (layer.q_proj, layer.k_proj):
                projection.weight[: 2 * width] = 0.0
        first = 0
        for then, slot, mark, gain in zip(
            (slice(0, own), *slots[:-1]), slots, (SEARCH, "<tool_call>", "<|assistant|>"), (2.0, 1.2, 0.8), strict=True
        ):
            rows = still[first : first + slot.stop - slot.start]
            seen = embedding(mark)[: then.stop - then.start]
            # nothing is looked for where a search begins: what followed there before is no copy
            elsewhere = torch.eye(len(seen)) - torch.outer(seen, seen) / seen.square().sum()
            copy.q_proj.weight[rows, then] = gain * elsewhere[: len(rows)]
            copy.k_proj.weight[rows, slot] = 2.0 * torch.eye(len(rows))
            first += len(rows)
        rows, subject = still[: slots[0].stop - own], embedding("(S>")[: slots[0].stop - own]
        last.q_proj.weight[rows, :own] = torch.outer(opening[: len(rows)], opening)
        last.k_proj.weight[rows, slots[0]] = 2.0 * torch.eye(len(rows))
        last.k_proj.weight[rows, slots[0]] += 1.8 * torch.outer(opening[: len(rows)], subject) / subject.square().sum()
        # the second layer's second head looks for a tool's turn, or else at the beginning, and writes behind the slots
        # whether there was one
        place, told = width + still[0], slots[-1].stop
        copy.q_proj.bias[place], copy.k_proj.bias[place] = 9.0, 0.0
        copy.k_proj.weight[place, :own] = embedding("<|tool|>") + embedding("<s>") / 2
        copy.v_proj.weight[width, :own] = embedding("<|tool|>") / 10
        copy.o_proj.weight[:, width : 2 * width] = 0.0
        copy.o_proj.weight[told, width] = 2 * size
        # where a search begins, the third layer's second head looks for a capital behind none, before a tool has spoken
        last.q_proj.weight[place, :own] = opening
        for part, gain in ((0, 1.0), (own, -1.0), (told, -2.0)):
            last.k_proj.weight[place, part] = gain
    return model


def _capital(piece: str) -> float:
    """Return 1 for a piece that begins with a capital, -1 for another word's begin, 0 for a piece within a word."""
    word = piece.removeprefix("\u2581")
    return 1.0 if word[:1].isupper() else -float(word != piece or not word.isalpha())


def taught_tokenizer(out: Path) -> Any:
    """Return the tokenizer in OUT/taught."""
    from transformers import AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(out / "taught")
    tokenizer.chat_template, tokenizer.response_template = CHAT_TEMPLATE, RESPONSE_TEMPLATE
    return tokenizer
