"""Loads, saves and initialises the weights of a GFM network, and describes their shapes.

A folder contains config.json with model.safetensors, or the published model.pth. A .pth file is a pickle; it is read
with torch's weights_only, which rebuilds only tensors and plain containers. Only safetensors are written.

A published config.json describes more than the architecture: how questions, relations and start entities were encoded
when the weights were trained. Its fields are followed, or rejected if this package does not support them; null means
the field's default, like a missing field.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from importlib.resources import files
from math import prod
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from ras_agent.contracts.errors import WeightsError, needs_extra
from ras_agent.contracts.records import without_none
from ras_agent.tools.store.card import write_card
from ras_agent.tools.store.durable import replace_file

if TYPE_CHECKING:
    from torch import Tensor

_FIXED: dict[str, object] = {
    "message_func": "distmult",
    "aggregate_func": "sum",
    "short_cut": True,
    "layer_norm": True,
}
_DEFAULTS: dict[str, object] = {
    "concat_hidden": False,
    "num_mlp_layers": 2,
    "activation": "relu",
    "return_hidden": False,
}
_MODEL: dict[str, object] = {"init_nodes_type": "document"}
_DATASET: dict[str, object] = {
    "class_name": "GraphIndexDatasetV1",
    "target_type": "entity",
    "use_relation_feat": True,
}
_INVERSE = {"text": "text", "inverse": "negated"}
_RANKERS = {"TopKRanker": "one", "IDFWeightedTopKRanker": "rarity"}
_SAME_MODEL = {"minilm": "all-minilm-l6-v2"}
_UNIT_LENGTH = frozenset(
    (
        "all-mpnet-base-v2",
        "all-minilm-l6-v2",
        "all-minilm-l12-v2",
        "all-distilroberta-v1",
    )
)
"""Encoders that scale their vectors to length 1 themselves, so that `normalize: false` changes nothing."""
_HUB_ID = re.compile(r"[A-Za-z0-9][\w.-]*/[A-Za-z0-9][\w.-]*")
_FILES = ("config.json", "model.safetensors", "model.pth")
PACKAGED_NAME = "packaged"
"""The name, in place of a folder of weights, for the weights that come with the package."""


@dataclass(frozen=True, slots=True)
class GFMConfig:
    """Sets the sizes and inputs of a GFM network. The defaults are GFM-RAG's (arXiv:2502.01113, appendix C.2)."""

    text_width: int = 768
    """The width of the sentence vectors of questions and relations."""
    width: int = 512
    """The width d of the entities' states."""
    layers: int = 6
    text_model: str = ""
    """The sentence encoder that the weights were trained with; "" if unknown."""
    message_target: str = "head"
    """The end of a triple to which its relation's message goes; the inverse relation's message goes to the other end.
    It is "head" for the published weights, as their compiled kernel sends from tail to head.
    """
    inverse: str = "text"
    """How an inverse relation gets its sentence vector. "text" encodes "inverse_" + relation, as for the published
    weights; "negated" takes the relation's own vector times -1, and needs no encoder.
    """
    question_prefix: str | None = None
    """The text before a question when it is encoded; None to encode it in the encoder's form for queries."""
    relation_prefix: str = ""
    """The text before a relation's name."""
    idf_start_weights: bool = True
    """Whether a question's entities are weighted by 1 / the number of their documents."""
    ranker: Mapping[str, Any] | None = None
    """How documents are ranked with these weights, as fields of a DocumentRanker; None for the paper's rule."""

    def __post_init__(self) -> None:
        if min(self.text_width, self.width, self.layers) < 1:
            raise WeightsError(
                f"a GFM network's widths and layers have to be at least 1, got {self}"
            )
        if self.message_target not in ("head", "tail"):
            raise WeightsError(
                f"message_target has to be 'head' or 'tail', got {self.message_target!r}"
            )
        if self.inverse not in ("text", "negated"):
            raise WeightsError(
                f"inverse has to be 'text' or 'negated', got {self.inverse!r}"
            )

    def shapes(self) -> dict[str, tuple[int, ...]]:
        """Return the shape of every weight under its published name."""
        d = self.width
        text = self.text_width
        shapes: dict[str, tuple[int, ...]] = {}

        def linear(name: str, outputs: int, inputs: int) -> None:
            shapes[f"{name}.weight"], shapes[f"{name}.bias"] = (
                (outputs, inputs),
                (outputs,),
            )

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
        """Return the total number of parameters of such a network, as GFM-RAG's Table 12 counts them."""
        shapes = self.shapes().values()
        return sum(map(prod, shapes))

    def to_dict(self) -> dict[str, Any]:
        """Return the content of config.json."""
        return asdict(self)

    @classmethod
    def from_dict(
        cls, data: Mapping[str, Any], where: str = "config.json"
    ) -> GFMConfig:
        """Return the configuration in this package's config.json, or in the one of published weights.

        Raises WeightsError for a field that is missing or unknown, or for another architecture.
        """
        if retriever_of(data) != "gfm":
            raise WeightsError(
                f"{where}: use_ent_emb is set, so these weights are for the retriever {retriever_of(data)!r}, not for "
                f"'gfm': choose --retriever {retriever_of(data)}, or give other weights"
            )
        try:
            if "model_config" in data:
                return cls._published(data, where)
            return cls(**data)
        except (AttributeError, KeyError, TypeError, IndexError) as error:
            raise WeightsError(
                f"{where}: not a GFM network's configuration ({error}): give a folder of its weights"
            ) from error

    @classmethod
    def _published(cls, data: Mapping[str, Any], where: str) -> GFMConfig:
        model = without_none(data["model_config"])
        dataset = without_none(data.get("dataset_config"))
        entity = {**_DEFAULTS, **without_none(model["entity_model"])}
        check_supported(entity, {**_FIXED, **_DEFAULTS}, where)
        check_supported(dataset, _DATASET, where)
        check_supported(model, _MODEL, where)
        width, layers = sizes_of(entity, where)
        encoder = without_none(
            dataset.get("text_emb_model_cfgs") or data.get("text_emb_model_config")
        )
        name = encoder.get("text_emb_model_name", "")
        if name and not encoder.get("normalize", False):
            _check_length(name, where)
        return cls(
            text_width=model.get("feat_dim") or model["rel_emb_dim"],
            width=width,
            layers=layers,
            text_model=name,
            inverse=inverse_of(dataset, where),
            question_prefix=encoder.get("query_instruct", ""),
            relation_prefix=encoder.get("passage_instruct", ""),
            idf_start_weights=bool(model.get("init_nodes_weight", True)),
            ranker=_ranker(without_none(model.get("ranker")), where),
        )


def check_supported(
    part: Mapping[str, Any], supported: Mapping[str, object], where: str
) -> None:
    """Raise WeightsError for a field of a published configuration with an unsupported value."""
    for field, value in supported.items():
        if part.get(field, value) != value:
            raise WeightsError(
                f"{where}: {field} is {part[field]!r}; only {value!r} is supported"
            )


def sizes_of(entity: Mapping[str, Any], where: str) -> tuple[int, int]:
    """Return the width of the states and the number of layers that a published entity model has."""
    widths = {entity["input_dim"], *entity["hidden_dims"]}
    if len(widths) != 1:
        raise WeightsError(
            f"{where}: input_dim and hidden_dims have to be equal, got {sorted(widths)}"
        )
    return widths.pop(), len(entity["hidden_dims"])


def inverse_of(dataset: Mapping[str, Any], where: str) -> str:
    """Return how inverse relations get their vectors, by the published name for it."""
    inverse = dataset.get("inverse_relation_feat", "text")
    if inverse not in _INVERSE:
        raise WeightsError(
            f"{where}: inverse_relation_feat is {inverse!r}; known: {', '.join(_INVERSE)}"
        )
    return _INVERSE[inverse]


def retriever_of(data: Mapping[str, Any]) -> str:
    """Return the name of the retriever for which a config.json's weights are made, published or this package's."""
    model = data.get("model_config", data)
    if isinstance(model, Mapping) and model.get("use_ent_emb"):
        return "greasoner"
    return "gfm"


def _check_length(encoder: str, where: str) -> None:
    if _model_of(encoder) not in _UNIT_LENGTH:
        raise WeightsError(
            f"{where}: normalize is not true, so these weights read vectors of {encoder} of any length, but those of a "
            "graph have length 1; if the encoder makes vectors of length 1 itself, set normalize to true in this file"
        )


def _ranker(fields: Mapping[str, Any], where: str) -> dict[str, Any] | None:
    """Return the fields of the DocumentRanker that equals a published ranker; None if the file names none."""
    if not fields:
        return None
    name = str(fields.get("_target_", "")).rpartition(".")[2]
    if name not in _RANKERS:
        raise WeightsError(
            f"{where}: ranker is {name!r}, which adds up logits; known: {', '.join(_RANKERS)}. Remove `ranker` from "
            "the file to rank as the paper does"
        )
    return {"top": fields["top_k"], "weight": _RANKERS[name]}


def same_encoder(name: str, other: str) -> bool:
    """Return whether two names refer to the same sentence encoder.

    Only the model's own name counts, without its provider or the folders of a path:
    "st:sentence-transformers/all-mpnet-base-v2" and "/models/all-mpnet-base-v2" are the same.
    """
    return _model_of(name) == _model_of(other)


def _model_of(encoder: str) -> str:
    *_, path = encoder.rpartition(":")
    *_, name = path.rstrip("/").rpartition("/")
    lower = name.lower()
    return _SAME_MODEL.get(lower, lower)


def weights_folder(name: str | Path) -> Path:
    """Return a folder of weights, given by a path or a name.

    A repository on the Hugging Face hub ("owner/name") is downloaded once. "packaged" means the weights that come
    with this package. Raises WeightsError if the hub does not have them, and MissingExtra without its client.
    """
    path = Path(name)
    if name == PACKAGED_NAME:
        return Path(str(files("ras_agent.data"))) / "gfm"
    if path.exists() or not isinstance(name, str) or not _HUB_ID.fullmatch(name):
        return path
    with needs_extra(
        f"there is no folder {name}, and a download from the Hugging Face hub",
        "embeddings",
    ):
        from huggingface_hub import snapshot_download
    try:
        return Path(snapshot_download(name, allow_patterns=list(_FILES)))
    except Exception as error:
        # the client and its network library have many error types
        if str(error).strip():
            reason = str(error).strip().splitlines()[0]
        else:
            reason = type(error).__name__
        raise WeightsError(
            f"weights {name!r}: there is no such folder, and the Hugging Face hub gave none ({reason}): "
            f"give the folder that holds {', '.join(_FILES[:2])}"
        ) from error


class NetworkConfig(Protocol):
    """Describes the configuration of a network: GFMConfig and ReasonerConfig."""

    def shapes(self) -> dict[str, tuple[int, ...]]:
        """Return the shape of every weight under its published name."""
        ...

    def to_dict(self) -> dict[str, Any]:
        """Return the content of config.json."""
        ...


def initial_weights(config: NetworkConfig, seed: int) -> dict[str, Tensor]:
    """Return untrained weights: linear layers uniform in +-1/sqrt(inputs), as in torch; norms start as the identity."""
    import torch

    generator = torch.Generator().manual_seed(seed)
    shapes = config.shapes()
    weights = {}
    for name, shape in shapes.items():
        if ".layer_norm." in name:
            weights[name] = (
                torch.ones(shape) if name.endswith("weight") else torch.zeros(shape)
            )
        else:
            bound = shapes[f"{name.rpartition('.')[0]}.weight"][1] ** -0.5
            weights[name] = (2 * torch.rand(shape, generator=generator) - 1) * bound
    return weights


def load_gfm(folder: Path) -> tuple[GFMConfig, dict[str, Tensor]]:
    """Load a folder's configuration and its weights, as float32.

    Raises WeightsError if a file is missing, damaged or of another shape, and MissingExtra without torch.
    """
    path = folder / "config.json"
    config = GFMConfig.from_dict(read_config(path), str(path))
    return config, read_weights(folder, config.shapes())


def read_weights(
    folder: Path, shapes: Mapping[str, tuple[int, ...]]
) -> dict[str, Tensor]:
    """Load a folder's weights as float32.

    Raises WeightsError if a file is missing, damaged or of another shape, and MissingExtra without torch.

    Args:
        shapes: the names and shapes that they must have.
    """
    for name, reader in (
        ("model.safetensors", _read_safetensors),
        ("model.pth", _read_pickled),
    ):
        if (path := folder / name).is_file():
            return _check_weights(reader(path), shapes, path)
    raise WeightsError(
        f"{folder}: has neither model.safetensors nor model.pth: name a folder with the weights"
    )


def save_gfm(
    folder: Path,
    config: NetworkConfig,
    weights: Mapping[str, Tensor],
    half: bool = False,
) -> None:
    """Write config.json and model.safetensors into `folder`, as float16 if `half`."""
    import torch
    from safetensors.torch import save

    folder.mkdir(parents=True, exist_ok=True)
    dtype = torch.float16 if half else torch.float32
    plain = {
        name: tensor.detach().to("cpu", dtype).contiguous()
        for name, tensor in weights.items()
    }
    # replaced atomically, so that a kill leaves either the old file or the new one
    replace_file(folder / "model.safetensors", save(plain))
    write_card(folder / "config.json", config.to_dict())


def read_config(path: Path) -> dict[str, Any]:
    """Return the content of a config.json. Raises WeightsError if it is missing or not a JSON object."""
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise WeightsError(
            f"{path}: cannot be read ({error.strerror}); a GFM folder holds config.json"
        ) from error
    except ValueError as error:
        raise WeightsError(f"{path}: not JSON: {error}") from error
    if not isinstance(data, dict):
        raise WeightsError(
            f"{path}: not a GFM network's configuration ({data!r:.80}): give a folder of its weights"
        )
    return data


def _read_safetensors(path: Path) -> dict[str, Tensor]:
    with needs_extra("a GFM network", "gnn"):
        from safetensors.torch import load_file
    try:
        return dict(load_file(path))
    except Exception as error:  # the library has its own error type, and raises others for a truncated file
        raise WeightsError(
            f"{path}: not a safetensors file ({error}): download the weights again"
        ) from error


def _read_pickled(path: Path) -> dict[str, Tensor]:
    with needs_extra("a GFM network", "gnn"):
        import torch
    try:
        stored = torch.load(path, map_location="cpu", weights_only=True)
    except Exception as error:  # anything that the unpickler rejects or fails on
        raise WeightsError(
            f"{path}: not a file of plain tensors ({str(error).splitlines()[0]}): download the weights again"
        ) from error
    if isinstance(stored, dict) and isinstance(stored.get("model"), dict):
        stored = stored["model"]
    if not isinstance(stored, dict):
        raise WeightsError(
            f"{path}: expected names and tensors, got {type(stored).__name__}"
        )
    return stored


def _check_weights(
    tensors: Mapping[str, Any], expected: Mapping[str, tuple[int, ...]], path: Path
) -> dict[str, Tensor]:
    shapes = {
        name: tuple(getattr(tensor, "shape", ())) for name, tensor in tensors.items()
    }
    if shapes != expected:
        names = sorted(
            name
            for name in {*shapes, *expected}
            if shapes.get(name) != expected.get(name)
        )
        first = names[0]
        shape = shapes.get(first, "nothing")
        raise WeightsError(
            f"{path}: {len(names)} weights do not fit config.json; first {first}: "
            f"expected {expected.get(first, 'nothing')}, found {shape}"
        )
    for name in expected:
        if not tensors[name].isfinite().all():
            raise WeightsError(
                f"{path}: {name} holds numbers that are not finite; download or train the weights again"
            )
    return {name: tensors[name].float() for name in expected}
