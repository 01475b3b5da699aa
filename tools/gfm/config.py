"""The shape of a GFM network, read from its config.json."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from math import prod
from typing import Any

from ras_agent.errors import WeightsError

__all__ = ["GFMConfig"]

_FIXED = {"message_func": "distmult", "aggregate_func": "sum", "short_cut": True, "layer_norm": True}
_DEFAULTS = {"concat_hidden": False, "num_mlp_layers": 2, "activation": "relu"}


@dataclass(frozen=True, slots=True)
class GFMConfig:
    """GFM-RAG (arXiv:2502.01113), appendix C.2: 6 layers of width 512 over sentence vectors of width 768.

    text_width: width of the sentence vectors of questions and relations. width: of the entities' states.
    text_model: the sentence encoder that the weights were trained with; empty where nobody said.
    toward: the end of a triple that hears its relation's message; the other end hears the inverse relation's. The
        published weights were trained with a compiled kernel that sends from tail to head: "head".
    inverse: what the sentence vector of an inverse relation is: "text", that of "inverse_" and the relation, as the
        published weights know it; or "negated", the relation's own times -1, which no sentence has to be encoded for.
    """

    text_width: int = 768
    width: int = 512
    layers: int = 6
    text_model: str = ""
    toward: str = "head"
    inverse: str = "text"

    def __post_init__(self) -> None:
        if min(self.text_width, self.width, self.layers) < 1:
            raise WeightsError(f"a GFM network's widths and layers have to be at least 1, got {self}")
        if self.toward not in ("head", "tail"):
            raise WeightsError(f"toward is 'head' or 'tail', got {self.toward!r}")
        if self.inverse not in ("text", "negated"):
            raise WeightsError(f"inverse is 'text' or 'negated', got {self.inverse!r}")

    def shapes(self) -> dict[str, tuple[int, ...]]:
        """Every weight's name and shape, in the published names."""
        d, text = self.width, self.text_width
        shapes: dict[str, tuple[int, ...]] = {}

        def linear(name: str, out: int, into: int) -> None:
            shapes[f"{name}.weight"], shapes[f"{name}.bias"] = (out, into), (out,)

        linear("rel_mlp", d, text)
        linear("question_mlp", d, text)
        for layer in range(self.layers):
            at = f"entity_model.layers.{layer}"
            linear(f"{at}.linear", d, 2 * d)
            shapes[f"{at}.layer_norm.weight"] = shapes[f"{at}.layer_norm.bias"] = (d,)
            linear(f"{at}.relation_projection.0", d, d)
            linear(f"{at}.relation_projection.2", d, d)
        linear("entity_model.mlp.0", 2 * d, 2 * d)
        linear("entity_model.mlp.2", 1, 2 * d)
        return shapes

    def parameters(self) -> int:
        """How many numbers the weights hold."""
        return sum(prod(shape) for shape in self.shapes().values())

    def to_dict(self) -> dict[str, Any]:
        """As config.json."""
        return asdict(self)

    @classmethod
    def from_dict(cls, data: Mapping[str, Any], where: str = "config.json") -> GFMConfig:
        """From this package's config.json, or from the one that the published weights come with.

        Raises WeightsError for a field that is missing or unknown, or for another architecture.
        """
        try:
            return cls._published(data, where) if "model_config" in data else cls(**data)
        except (AttributeError, KeyError, TypeError, IndexError) as error:
            raise WeightsError(f"{where}: not a GFM network's configuration: {error}") from error

    @classmethod
    def _published(cls, data: Mapping[str, Any], where: str) -> GFMConfig:
        model = data["model_config"]
        entity = {**_DEFAULTS, **model["entity_model"]}
        for field, value in {**_FIXED, **_DEFAULTS}.items():
            if entity.get(field, value) != value:
                raise WeightsError(f"{where}: {field} is {entity[field]!r}; only {value!r} is supported")
        if model.get("use_ent_emb"):
            raise WeightsError(f"{where}: use_ent_emb is {model['use_ent_emb']!r}; only null is supported")
        widths = {entity["input_dim"], *entity["hidden_dims"]}
        if len(widths) != 1:
            raise WeightsError(f"{where}: input_dim and hidden_dims have to be one width, got {sorted(widths)}")
        text = model.get("feat_dim") or model["rel_emb_dim"]
        encoder = (data.get("text_emb_model_config") or {}).get("text_emb_model_name", "")
        return cls(text_width=text, width=widths.pop(), layers=len(entity["hidden_dims"]), text_model=encoder)
