"""Builds small text-to-triples models with random weights, to train from scratch or to measure speed and memory."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, cast

from ras_agent.contracts.errors import needs_extra

Kind = Literal["t5", "llama"]
KINDS: tuple[Kind, ...] = ("t5", "llama")


def new_model(
    kind: str,
    texts: Sequence[str],
    *,
    width: int = 128,
    layers: int = 2,
    heads: int = 4,
    dropout: float = 0.1,
    vocabulary: int = 4000,
) -> tuple[Any, Any]:
    """Return a model with random weights, and a tokenizer trained on `texts`.

    Raises MissingExtra if transformers or tokenizers is not installed.

    Args:
        kind: "t5", with `layers` layers in both encoder and decoder, or "llama".
        vocabulary: the maximum number of tokens of the tokenizer.
    """
    with needs_extra("a text-to-triples model", "llm"):
        tokenizer = byte_tokenizer(texts, vocabulary)
        build = _t5 if cast(Kind, kind) == "t5" else _llama
        model = build(tokenizer, width, layers, heads, dropout)
        return model, tokenizer


def byte_tokenizer(texts: Sequence[str], vocabulary: int) -> Any:
    """Return a byte-level BPE tokenizer trained on `texts`, which represents any text without loss."""
    from tokenizers import (
        Tokenizer,
        decoders,
        models,
        pre_tokenizers,
        processors,
        trainers,
    )
    from transformers import PreTrainedTokenizerFast

    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=True)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=vocabulary,
        special_tokens=["<pad>", "</s>", "<s>"],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator(texts, trainer)
    tokenizer.post_processor = processors.TemplateProcessing(
        single="$A </s>", special_tokens=[("</s>", 1)]
    )
    tokenizer_class: Any = PreTrainedTokenizerFast  # it has no types
    return tokenizer_class(
        tokenizer_object=tokenizer,
        pad_token="<pad>",
        eos_token="</s>",
        bos_token="<s>",
        model_max_length=4096,
    )


def _t5(tokenizer: Any, width: int, layers: int, heads: int, dropout: float) -> Any:
    from transformers import T5Config, T5ForConditionalGeneration

    shape: Any = T5Config  # its types lack the options common to all configurations
    model = T5ForConditionalGeneration(
        shape(
            vocab_size=len(tokenizer),
            d_model=width,
            d_kv=max(1, width // heads),
            d_ff=2 * width,
            num_layers=layers,
            num_heads=heads,
            dropout_rate=dropout,
            feed_forward_proj="gated-gelu",  # as in Flan-T5
            tie_word_embeddings=False,
            decoder_start_token_id=tokenizer.pad_token_id,
            pad_token_id=tokenizer.pad_token_id,
            eos_token_id=tokenizer.eos_token_id,
        )
    )
    # transformers initialises the head so that the first logits are too large; they take a hundred steps to shrink
    model.lm_head.weight.data.mul_(width**-0.5)
    return model


def _llama(tokenizer: Any, width: int, layers: int, heads: int, dropout: float) -> Any:
    from transformers import LlamaConfig, LlamaForCausalLM

    return LlamaForCausalLM(
        LlamaConfig(
            vocab_size=len(tokenizer),
            hidden_size=width,
            intermediate_size=2 * width,
            num_hidden_layers=layers,
            num_attention_heads=heads,
            attention_dropout=dropout,
            pad_token_id=tokenizer.pad_token_id,
            bos_token_id=tokenizer.bos_token_id,
            eos_token_id=tokenizer.eos_token_id,
        )
    )
