"""Computes G-reasoner (arXiv:2509.24276): GFM-RAG's network on a graph of nodes with texts, including documents.

    query = question_mlp(question)      node = ent_mlp(its text's vector)
    initial state = early_fuse_mlp([m * query; node]), where m is 1 for the question's nodes and 0 for all others
    six layers as in ras_agent.tools.gfm.network, with the initial state in every sum of messages
    logit = predict_mlp([last state; query; node])

This follows the published code with its "early-late-fusion", which the released weights have. `plain_reasoner_scores`
is the reference. FastReasoner computes only changed states, as FastGFM does: since m is 0 for nearly all nodes, their
initial states are known before the question.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ras_agent.contracts.arrays import Floats, Ints
from ras_agent.contracts.errors import WeightsError
from ras_agent.contracts.records import without_none
from ras_agent.tools.gfm.cache import NodeInputs
from ras_agent.tools.gfm.cached_rows import CachedRows
from ras_agent.tools.gfm.cpu import CACHE_BYTES, TOLERANCE, FastGFM
from ras_agent.tools.gfm.graph import GFMGraph, GFMStart
from ras_agent.tools.gfm.network import GraphTensors, last_states
from ras_agent.tools.gfm.weights import (
    GFMConfig,
    check_supported,
    inverse_of,
    read_config,
    read_weights,
    retriever_of,
    sizes_of,
)

if TYPE_CHECKING:
    from torch import Tensor

FUSION = "early-late-fusion"
_ENTITY_MODEL = {
    "message_func": "distmult",
    "aggregate_func": "sum",
    "short_cut": True,
    "layer_norm": True,
    "concat_hidden": False,
    "activation": "relu",
    "return_hidden": True,
}
_DATASET = {"use_node_feat": True, "use_relation_feat": True, "use_edge_feat": False}


@dataclass(frozen=True, slots=True)
class ReasonerConfig:
    """Sets the sizes and inputs of a G-reasoner network. The defaults are those of the published one, G-reasoner-34M."""

    text_width: int = 1024
    """The width of the vectors of questions, nodes and relations."""
    width: int = 1024
    """The width d of the nodes' states."""
    layers: int = 6
    text_model: str = "Qwen/Qwen3-Embedding-0.6B"
    """The encoder that the weights were trained with; "" if unknown."""
    query_instruct: str = ""
    """The text before a question when it is encoded."""
    passage_instruct: str = ""
    """The text before that of a node or relation when it is encoded."""
    inverse: str = "text"
    """See GFMConfig."""

    def shapes(self) -> dict[str, tuple[int, ...]]:
        """Return the shape of every weight under its published name."""
        d = self.width
        text = self.text_width
        shapes = {
            name: shape
            for name, shape in GFMConfig(text, d, self.layers).shapes().items()
            if not name.startswith("entity_model.mlp.")
        }
        linear = {
            "ent_mlp": (d, text),
            "early_fuse_mlp.0": (d, 2 * d),
            "early_fuse_mlp.2": (d, d),
            "predict_mlp.0": (d, 3 * d),
            "predict_mlp.2": (1, d),
        }
        for name, shape in linear.items():
            shapes |= {f"{name}.weight": shape, f"{name}.bias": shape[:1]}
        return shapes

    def to_dict(self) -> dict[str, Any]:
        """Return the content of config.json."""
        return {"use_ent_emb": FUSION, **asdict(self)}

    @classmethod
    def from_dict(
        cls, data: Mapping[str, Any], where: str = "config.json"
    ) -> ReasonerConfig:
        """Return the configuration in this package's config.json or a published one, where null means the default.

        Raises WeightsError for a field that is missing, or has an unsupported value.
        """
        if retriever_of(data) != "greasoner":
            raise WeightsError(
                f"{where}: use_ent_emb is not {FUSION!r}, so these weights are for the retriever {retriever_of(data)!r}, "
                f"not for 'greasoner': choose --retriever {retriever_of(data)}, or give other weights"
            )
        try:
            own = {name: value for name, value in data.items() if name != "use_ent_emb"}
            if "model_config" in data:
                return cls._published(data, where)
            return cls(**own)
        except (AttributeError, KeyError, TypeError, IndexError) as error:
            raise WeightsError(
                f"{where}: not a G-reasoner network's configuration ({error!r}): give a folder of its weights"
            ) from error

    @classmethod
    def _published(cls, data: Mapping[str, Any], where: str) -> ReasonerConfig:
        model = without_none(data["model_config"])
        dataset = without_none(data.get("dataset_config"))
        entity = {"return_hidden": False, **without_none(model["entity_model"])}
        encoder = without_none(
            data.get("text_emb_model_config") or dataset.get("text_emb_model_cfgs")
        )
        check_supported(model, {"use_ent_emb": FUSION}, where)
        check_supported(entity, _ENTITY_MODEL, where)
        check_supported(dataset, _DATASET, where)
        check_supported(encoder, {"normalize": True}, where)
        width, layers = sizes_of(entity, where)
        return cls(
            text_width=model["feat_dim"],
            width=width,
            layers=layers,
            text_model=encoder.get("text_emb_model_name", ""),
            query_instruct=encoder.get("query_instruct", ""),
            passage_instruct=encoder.get("passage_instruct", ""),
            inverse=inverse_of(dataset, where),
        )


def load_reasoner(folder: Path) -> tuple[ReasonerConfig, dict[str, Tensor]]:
    """Load a folder's configuration and its weights, as float32.

    Raises WeightsError if a file is missing, damaged or of another shape, and MissingExtra without torch.
    """
    path = folder / "config.json"
    config = ReasonerConfig.from_dict(read_config(path), str(path))
    return config, read_weights(folder, config.shapes())


def plain_reasoner_scores(
    weights: Mapping[str, Tensor],
    graph: GraphTensors,
    nodes: Tensor,
    questions: Tensor,
    start: Tensor,
    relation_states: Sequence[CachedRows] | None = None,
    message_weights: list[Tensor] | None = None,
) -> Tensor:
    """Return the nodes' logits (B, N) for vectors `questions` (B, text width) and `nodes` (N, text width).

    Args:
        start: (B, N), 1 for the question's nodes and 0 for all others.
        relation_states, message_weights: see plain_scores.
    """
    import torch
    from torch.nn.functional import linear

    # (B, d)
    query = linear(
        questions, weights["question_mlp.weight"], weights["question_mlp.bias"]
    )
    node = linear(nodes, weights["ent_mlp.weight"], weights["ent_mlp.bias"])[
        :, None
    ].expand(-1, len(query), -1)
    initial = _two_layers(
        weights,
        "early_fuse_mlp",
        torch.cat((start.t()[..., None] * query, node), dim=-1),
    )
    # (N, B, d)
    state = last_states(weights, graph, initial, relation_states, message_weights)
    features = torch.cat((state, query.expand_as(state), node), dim=-1)
    return _two_layers(weights, "predict_mlp", features).squeeze(-1).t()


def _two_layers(weights: Mapping[str, Tensor], name: str, inputs: Tensor) -> Tensor:
    from torch.nn.functional import linear, relu

    hidden = relu(
        linear(inputs, weights[f"{name}.0.weight"], weights[f"{name}.0.bias"])
    )
    return linear(hidden, weights[f"{name}.2.weight"], weights[f"{name}.2.bias"])


class FastReasoner(FastGFM):
    """Scores all nodes of one graph on the CPU. Safe for use by several threads."""

    head_name = "predict_mlp"

    def __init__(
        self,
        weights: Mapping[str, Tensor],
        graph: GFMGraph,
        nodes: Floats,
        *,
        cache_bytes: int = CACHE_BYTES,
        half_cache: bool | None = None,
        tolerance: float = TOLERANCE,
    ) -> None:
        """Compute everything that no question changes.

        Args:
            nodes: (N, text width), the vectors of the nodes' texts.
            cache_bytes, half_cache, tolerance: see FastGFM.
        """
        self.texts = nodes
        """The vectors of the nodes' texts, (N, text width)."""
        super().__init__(
            weights,
            graph,
            cache_bytes=cache_bytes,
            half_cache=half_cache,
            tolerance=tolerance,
        )
        if self.cache.uncached_from is None:
            self._nodes = None  # not needed any more, as what depends on it is cached

    def _node_inputs(self) -> NodeInputs:
        import torch

        texts = torch.from_numpy(self.texts)
        # without nodes there is one empty block
        blocks = [self._fused(block) for block in torch.split(texts, self._rows)]
        vectors, initial = (torch.cat(parts) for parts in zip(*blocks, strict=True))
        return NodeInputs(vectors, initial)

    def _fused(
        self, texts: Tensor, query: Tensor | None = None
    ) -> tuple[Tensor, Tensor]:
        """Return nodes' own vectors (k, d) and their initial states (k, d), for texts (k, text width).

        Args:
            query: (k, d), for the question's nodes; None for nodes at which no question starts.
        """
        import torch
        from torch.nn.functional import linear

        node = linear(
            texts, self.weights["ent_mlp.weight"], self.weights["ent_mlp.bias"]
        )
        if query is None:
            question_part = torch.zeros_like(node)
        else:
            question_part = query
        return node, _two_layers(
            self.weights, "early_fuse_mlp", torch.cat((question_part, node), dim=-1)
        )

    def _initial(self, query: Tensor, start: GFMStart) -> tuple[Ints, Tensor]:
        import torch

        order = np.argsort(start.entities, kind="stable")
        entities = np.asarray(start.entities, dtype=np.int64)[order]
        marks = torch.from_numpy(np.asarray(start.weights, dtype=np.float32)[order])
        texts = torch.from_numpy(np.asarray(self.texts[entities], dtype=np.float32))
        _, with_question = self._fused(texts, marks[:, None] * query)
        _, without_question = self._fused(texts)
        return entities, with_question - without_question
