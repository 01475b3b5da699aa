"""Serves the learnt model by llama.cpp's own HTTP server, which the package xllamacpp has compiled.

    python tests/engines/llama.py FOLDER --port 8080

A GGUF file in the place of the folder is served as it is. The model's folder becomes one: a Llama whose queries and
keys lie as llama.cpp turns them, and GPT-2's form of byte-level BPE. Needs the packages gguf, safetensors, xllamacpp.
"""

# pyright: reportMissingImports=false
# the two are not among the packages that this project is checked with

from __future__ import annotations

import argparse
import json
import signal
import tempfile
from importlib import import_module
from pathlib import Path
from typing import Any

from safetensors.numpy import load_file

_LAYER = {
    "self_attn.q_proj": "attn_q",
    "self_attn.k_proj": "attn_k",
    "self_attn.v_proj": "attn_v",
    "self_attn.o_proj": "attn_output",
    "mlp.gate_proj": "ffn_gate",
    "mlp.up_proj": "ffn_up",
    "mlp.down_proj": "ffn_down",
    "input_layernorm": "attn_norm",
    "post_attention_layernorm": "ffn_norm",
}
_OTHERS = {
    "model.embed_tokens": "token_embd",
    "model.norm": "output_norm",
    "lm_head": "output",
}


def write_gguf(folder: Path, path: Path) -> None:
    """Write a folder's Llama and its byte-level BPE tokenizer as a GGUF file, each weight as it is."""
    gguf: Any = import_module("gguf")
    config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    tokenizer = json.loads((folder / "tokenizer.json").read_text(encoding="utf-8"))
    heads, key_heads = config["num_attention_heads"], config["num_key_value_heads"]
    writer = gguf.GGUFWriter(path, "llama")
    writer.add_context_length(config["max_position_embeddings"])
    writer.add_embedding_length(config["hidden_size"])
    writer.add_block_count(config["num_hidden_layers"])
    writer.add_feed_forward_length(config["intermediate_size"])
    writer.add_head_count(heads)
    writer.add_head_count_kv(key_heads)
    writer.add_rope_dimension_count(config["head_dim"])
    writer.add_rope_freq_base(config["rope_parameters"]["rope_theta"])
    writer.add_layer_norm_rms_eps(config["rms_norm_eps"])
    writer.add_vocab_size(config["vocab_size"])
    special = {token["content"] for token in tokenizer["added_tokens"]}
    vocabulary = sorted(
        tokenizer["model"]["vocab"], key=tokenizer["model"]["vocab"].__getitem__
    )
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("gpt-2")
    writer.add_token_list(vocabulary)
    kinds = gguf.TokenType
    writer.add_token_types(
        [kinds.CONTROL if token in special else kinds.NORMAL for token in vocabulary]
    )
    writer.add_token_merges([" ".join(pair) for pair in tokenizer["model"]["merges"]])
    for name in ("bos", "eos", "pad"):
        getattr(writer, f"add_{name}_token_id")(config[f"{name}_token_id"])
    writer.add_add_bos_token(False)  # the template writes it
    writer.add_chat_template(
        (folder / "chat_template.jinja").read_text(encoding="utf-8")
    )
    for name, weights in load_file(folder / "model.safetensors").items():
        stem = name.removesuffix(".weight")
        if not stem.startswith("model.layers."):
            writer.add_tensor(f"{_OTHERS[stem]}.weight", weights)
            continue
        number, _, part = stem.removeprefix("model.layers.").partition(".")
        if part in ("self_attn.q_proj", "self_attn.k_proj"):
            weights = _interleaved(
                weights, heads if part == "self_attn.q_proj" else key_heads
            )
        writer.add_tensor(f"blk.{number}.{_LAYER[part]}.weight", weights)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def _interleaved(weights: Any, heads: int) -> Any:
    """Return a projection whose rows that are turned together lie side by side, not half a head apart."""
    return (
        weights.reshape(heads, 2, -1, weights.shape[1])
        .swapaxes(1, 2)
        .reshape(weights.shape)
    )


def main() -> None:
    """Serve a folder's model until the process is ended."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path, help="the model's folder, or a GGUF file")
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--name", default="learnt", help="under which it is served")
    parser.add_argument(
        "--window", type=int, default=4096, help="tokens of a prompt and its reply"
    )
    parser.add_argument(
        "--slots",
        type=int,
        default=16,
        help="requests that are computed at once; others wait",
    )
    parser.add_argument(
        "--embeddings",
        action="store_true",
        help="give vectors of texts, and no replies",
    )
    options = parser.parse_args()
    llama: Any = import_module("xllamacpp")
    with tempfile.TemporaryDirectory() as place:
        params = llama.CommonParams()
        params.model.path = str(options.folder)
        if options.folder.suffix != ".gguf":
            params.model.path = f"{place}/model.gguf"
            write_gguf(options.folder, Path(params.model.path))
        params.model_alias = {options.name}
        params.port, params.hostnames = options.port, ["127.0.0.1"]
        params.n_parallel, params.n_ctx = options.slots, options.slots * options.window
        params.cpuparams.n_threads = params.cpuparams_batch.n_threads = 1
        params.endpoint_metrics, params.warmup = True, False
        if options.embeddings:
            # with a store a slot, the mean is taken over a part of the tokens
            params.kv_unified = True
            params.embedding, params.pooling_type = (
                True,
                llama.llama_pooling_type.LLAMA_POOLING_TYPE_MEAN,
            )
        server = llama.Server(params)
        print(server.listening_address, flush=True)
        signal.sigwait({signal.SIGTERM, signal.SIGINT})


if __name__ == "__main__":
    main()
