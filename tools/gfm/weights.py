"""The weights of a GFM network: their shapes, how they begin, and the folder they are stored in.

A folder holds config.json with model.safetensors, or the published model.pth. A .pth file is a pickle; it is read with
torch's weights_only, which rebuilds tensors and plain containers and nothing else. Only safetensors are written.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from math import prod
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ras_agent.errors import MissingExtra, WeightsError

if TYPE_CHECKING:
    from torch import Tensor

_FIXED = {"message_func": "distmult", "aggregate_func": "sum", "short_cut": True, "layer_norm": True}
_DEFAULTS = {"concat_hidden": False, "num_mlp_layers": 2, "activation": "relu"}


@dataclass(frozen=True, slots=True)
class GFMConfig:
    """Describes a network. The defaults are GFM-RAG's (arXiv:2502.01113, appendix C.2).

    text_width: width of the sentence vectors of questions and relations.
    width: width d of the entities' states.
    text_model: the sentence encoder that the weights were trained with; empty if unknown.
    toward: the end of a triple that is the target of its relation's message; the other end is the target of the inverse
        relation's. It is "head" for the published weights, whose compiled kernel sends from tail to head.
    inverse: how an inverse relation gets its sentence vector. "text" encodes "inverse_" + relation, as for the
        published weights; "negated" takes the relation's own vector times -1, and needs no encoder.
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
        """Return the shape of every weight by its published name."""
        d, text = self.width, self.text_width
        shapes: dict[str, tuple[int, ...]] = {}

        def linear(name: str, outputs: int, inputs: int) -> None:
            shapes[f"{name}.weight"], shapes[f"{name}.bias"] = (outputs, inputs), (outputs,)

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
        """Count the numbers in the weights."""
        return sum(prod(shape) for shape in self.shapes().values())

    def to_dict(self) -> dict[str, Any]:
        """Return the content of config.json."""
        return asdict(self)

    @classmethod
    def from_dict(cls, data: Mapping[str, Any], where: str = "config.json") -> GFMConfig:
        """Read this package's config.json, or the one that comes with published weights.

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


def initial_weights(config: GFMConfig, seed: int) -> dict[str, Tensor]:
    """Draw untrained weights: linear layers uniform in +-1/sqrt(inputs), as torch does; norms start as the identity."""
    import torch

    generator = torch.Generator().manual_seed(seed)
    shapes = config.shapes()
    weights = {}
    for name, shape in shapes.items():
        if ".layer_norm." in name:
            weights[name] = torch.ones(shape) if name.endswith("weight") else torch.zeros(shape)
        else:
            bound = shapes[f"{name.rpartition('.')[0]}.weight"][1] ** -0.5
            weights[name] = (2 * torch.rand(shape, generator=generator) - 1) * bound
    return weights


def load_gfm(folder: Path) -> tuple[GFMConfig, dict[str, Tensor]]:
    """Read a folder's configuration and its weights, as float32.

    Raises WeightsError where a file is missing, damaged or of another shape; MissingExtra without torch.
    """
    config = GFMConfig.from_dict(read_config(folder / "config.json"), str(folder / "config.json"))
    return config, read_weights(folder, config.shapes())


def read_weights(folder: Path, shapes: Mapping[str, tuple[int, ...]]) -> dict[str, Tensor]:
    """Read a folder's weights, as float32, which have to have these names and shapes. Raises as `load_gfm` does."""
    for name, read in (("model.safetensors", _read_safetensors), ("model.pth", _read_pickled)):
        if (path := folder / name).is_file():
            return _checked(read(path), shapes, path)
    raise WeightsError(f"{folder}: there is neither model.safetensors nor model.pth")


def save_gfm(folder: Path, config: GFMConfig, weights: Mapping[str, Tensor], half: bool = False) -> None:
    """Write config.json and model.safetensors into `folder`, as float16 if `half`."""
    import torch
    from safetensors.torch import save

    folder.mkdir(parents=True, exist_ok=True)
    dtype = torch.float16 if half else torch.float32
    plain = {name: tensor.detach().to("cpu", dtype).contiguous() for name, tensor in weights.items()}
    config_json = json.dumps(config.to_dict(), indent=1) + "\n"
    # replaced whole, so that a kill leaves the old file or the new one
    for name, data in (("model.safetensors", save(plain)), ("config.json", config_json.encode())):
        (folder / f"{name}.new").write_bytes(data)
        (folder / f"{name}.new").replace(folder / name)


def read_config(path: Path) -> dict[str, Any]:
    """Read a config.json. Raises WeightsError where it is missing or no JSON object."""
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise WeightsError(f"{path}: cannot be read ({error.strerror}); a GFM folder holds config.json") from error
    except ValueError as error:
        raise WeightsError(f"{path}: not JSON: {error}") from error
    if not isinstance(data, dict):
        raise WeightsError(f"{path}: not a GFM network's configuration: {data!r:.80}")
    return data


def _read_safetensors(path: Path) -> dict[str, Tensor]:
    try:
        from safetensors.torch import load_file
    except ImportError as error:
        raise MissingExtra("a GFM network", "gnn") from error
    try:
        return dict(load_file(path))
    except Exception as error:  # the library has its own error type, and raises others for a file cut short
        raise WeightsError(f"{path}: not a safetensors file: {error}") from error


def _read_pickled(path: Path) -> dict[str, Tensor]:
    try:
        import torch
    except ImportError as error:
        raise MissingExtra("a GFM network", "gnn") from error
    try:
        stored = torch.load(path, map_location="cpu", weights_only=True)
    except Exception as error:  # whatever the unpickler refuses or stumbles over
        raise WeightsError(f"{path}: not a file of plain tensors: {str(error).splitlines()[0]}") from error
    if isinstance(stored, dict) and isinstance(stored.get("model"), dict):
        stored = stored["model"]
    if not isinstance(stored, dict):
        raise WeightsError(f"{path}: expected names and tensors, got {type(stored).__name__}")
    return stored


def _checked(tensors: Mapping[str, Any], expected: Mapping[str, tuple[int, ...]], path: Path) -> dict[str, Tensor]:
    shapes = {name: tuple(getattr(tensor, "shape", ())) for name, tensor in tensors.items()}
    if shapes != expected:
        names = sorted(name for name in {*shapes, *expected} if shapes.get(name) != expected.get(name))
        first = names[0]
        found = shapes.get(first, "nothing")
        raise WeightsError(
            f"{path}: {len(names)} weights do not fit config.json; first {first}: "
            f"expected {expected.get(first, 'nothing')}, found {found}"
        )
    for name in expected:
        if not tensors[name].isfinite().all():
            raise WeightsError(f"{path}: {name} holds numbers that are not finite; download or train the weights again")
    return {name: tensors[name].float() for name in expected}
