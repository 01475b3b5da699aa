"""Read and write a GFM network's folder: config.json with model.safetensors, or the published model.pth.

A .pth file is a pickle; it is read with torch's weights_only, which rebuilds tensors and plain containers and nothing
else. Whatever is written is safetensors.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ras_agent.errors import MissingExtra, WeightsError
from ras_agent.tools.gfm.config import GFMConfig

if TYPE_CHECKING:
    from torch import Tensor

__all__ = ["load_gfm", "save_gfm"]


def load_gfm(folder: Path) -> tuple[GFMConfig, dict[str, Tensor]]:
    """The configuration and float32 weights of a folder.

    Raises WeightsError where a file is missing, damaged or of another shape; MissingExtra without torch.
    """
    config = GFMConfig.from_dict(_config(folder / "config.json"), str(folder / "config.json"))
    for name, read in (("model.safetensors", _safetensors), ("model.pth", _pickled)):
        if (path := folder / name).is_file():
            return config, _checked(read(path), config, path)
    raise WeightsError(f"{folder}: there is neither model.safetensors nor model.pth")


def save_gfm(folder: Path, config: GFMConfig, weights: Mapping[str, Tensor], half: bool = False) -> None:
    """Write config.json and model.safetensors into `folder`, as float16 if `half`."""
    import torch
    from safetensors.torch import save

    folder.mkdir(parents=True, exist_ok=True)
    kind = torch.float16 if half else torch.float32
    plain = {name: tensor.detach().to("cpu", kind).contiguous() for name, tensor in weights.items()}
    config_json = json.dumps(config.to_dict(), indent=1) + "\n"
    # replaced whole, so that a kill leaves the old file or the new one
    for name, data in (("model.safetensors", save(plain)), ("config.json", config_json.encode())):
        (folder / f"{name}.new").write_bytes(data)
        (folder / f"{name}.new").replace(folder / name)


def _config(path: Path) -> dict[str, Any]:
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise WeightsError(f"{path}: cannot be read ({error.strerror}); a GFM folder holds config.json") from error
    except ValueError as error:
        raise WeightsError(f"{path}: not JSON: {error}") from error
    if not isinstance(data, dict):
        raise WeightsError(f"{path}: not a GFM network's configuration: {data!r:.80}")
    return data


def _safetensors(path: Path) -> dict[str, Tensor]:
    try:
        from safetensors.torch import load_file
    except ImportError as error:
        raise MissingExtra("a GFM network", "gnn") from error
    try:
        return dict(load_file(path))
    except Exception as error:  # the library has its own error type, and raises others for a file cut short
        raise WeightsError(f"{path}: not a safetensors file: {error}") from error


def _pickled(path: Path) -> dict[str, Tensor]:
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


def _checked(tensors: Mapping[str, Any], config: GFMConfig, path: Path) -> dict[str, Tensor]:
    expected = config.shapes()
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
