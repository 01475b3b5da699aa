"""A language model for tests: a Llama of two layers with random weights, and a byte-level tokenizer of few words."""

from __future__ import annotations

from pathlib import Path

TEXTS = (
    "[SUBQ] Where was Alexander Graham Bell born? [SUFFICIENT] [NO_RETRIEVAL]",
    "Alexander Graham Bell invented the telephone. He was born in Edinburgh.",
    "The Water of Leith flows through Edinburgh. Which river flows through the city?",
    "Retrieved Graph Information: (S> subject | P> predicate | O> object) Question: Answer: [1] [2]",
)
CHAT_TEMPLATE = (
    "{% for message in messages %}<|{{ message['role'] }}|>\n{{ message['content'] }}</s>\n{% endfor %}"
    "{% if add_generation_prompt %}<|assistant|>\n{% endif %}"
)


def write_tiny_llm(
    folder: Path, *, seed: int = 0, width: int = 64, chat_template: bool = True
) -> Path:
    """Write the model and its tokenizer as Hugging Face's libraries do; return the folder."""
    import torch
    from tokenizers import ByteLevelBPETokenizer
    from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

    bpe = ByteLevelBPETokenizer()
    bpe.train_from_iterator(
        TEXTS, vocab_size=400, min_frequency=1, special_tokens=["<s>", "</s>", "<pad>"]
    )
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=bpe._tokenizer,
        bos_token="<s>",
        eos_token="</s>",
        pad_token="<pad>",
    )
    if chat_template:
        tokenizer.chat_template = "<s>" + CHAT_TEMPLATE
    torch.manual_seed(seed)
    model = LlamaForCausalLM(
        LlamaConfig(
            vocab_size=len(tokenizer),
            hidden_size=width,
            intermediate_size=2 * width,
            num_hidden_layers=2,
            num_attention_heads=4,
            num_key_value_heads=2,
            max_position_embeddings=4096,
            **{
                f"{name}_token_id": getattr(tokenizer, f"{name}_token_id")
                for name in ("bos", "eos", "pad")
            },
        )
    )
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder
