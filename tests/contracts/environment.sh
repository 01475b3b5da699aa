#!/bin/sh
# environment.sh FOLDER: environments with the packages of others that tests/contracts tries, for `make contracts`.
#
# torch 2.13.0 is a build for the CPU where the package index has one; TRL asks for no version of it. What does not go
# with the others has an environment of its own: FOLDER/inspect, whose providers ask for openai from 3.4 on, and
# verifiers for one below 3; FOLDER/gateways, as ART changes transformers; FOLDER/verl, which asks for transformers below
# 5.11; FOLDER/ragas, which asks for LangChain below 1, and in which this package is a checkout.
set -eu
here=$(pwd)
install() { # install FOLDER PACKAGE...
  folder=$1
  shift
  [ -e "$folder/bin/python" ] || python3 -m venv "$folder"
  "$folder/bin/python" -m pip --quiet --disable-pip-version-check install "$@"
}
tests="hypothesis pytest pytest-asyncio pytest-timeout pytest-xdist"

install "$1" torch==2.13.0
install "$1" trl==1.16.0 verifiers==0.4.0 jinja2 'transformers[serving]'
install "$1" pytrec_eval-terrier==0.5.11
# its validator of trajectories needs pydantic alone, and runs on Python 3.11 though the package asks for 3.12
install "$1" --no-deps --ignore-requires-python harbor==0.25.0
install "$1" --editable "$here[openai,datasets]" $tests

install "$1/inspect" inspect-ai==0.3.285 'openai>=3.4' langchain-openai --editable "$here[openai]" $tests

install "$1/gateways" openpipe-art==0.5.18 langchain-openai || echo "without ART" >&2
# its server runs on Python 3.11 too; one that cannot be reached leaves its tests out. AGENT_LIGHTNING: another source
install "$1/gateways" --ignore-requires-python \
  "${AGENT_LIGHTNING:-agentlightning @ git+https://github.com/microsoft/agent-lightning@c632d8d}" \
  || echo "without agent-lightning" >&2
install "$1/gateways" --editable "$here[openai]" $tests

install "$1/verl" torch==2.13.0
install "$1/verl" --no-deps verl==0.9.1
install "$1/verl" 'transformers<5.11' datasets tensordict codetiming hydra-core omegaconf pillow ray --editable "$here" $tests

install "$1/ragas" ragas==0.4.3 'langchain<1' 'langchain-core<1' 'langchain-community<0.4' 'langchain-openai<1' \
  pytest pytest-timeout
install "$1/frameworks" deepagents langchain-openai openai-agents 'pydantic-ai-slim[openai]' smolagents google-adk --editable "$here[graph]" $tests
touch "$1/.made"
