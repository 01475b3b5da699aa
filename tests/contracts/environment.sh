#!/bin/sh
# environment.sh FOLDER: an environment with the packages of others that tests/contracts tries, for `make contracts`.
#
# torch 2.13.0 is a build for the CPU where the package index has one; TRL asks for no version of it. RAGAS goes with
# LangChain below 1 alone: FOLDER/ragas is an environment of its own, in which this package is a checkout.
set -eu
python3 -m venv "$1"
pip="$1/bin/python -m pip --quiet --disable-pip-version-check"
$pip install torch==2.13.0
$pip install trl==1.16.0 verifiers==0.4.0 jinja2
# its server runs on Python 3.11 too; one that cannot be reached leaves its tests out
$pip install --ignore-requires-python "agentlightning @ git+https://github.com/microsoft/agent-lightning@c632d8d" \
  || echo "without agent-lightning" >&2
$pip install openpipe-art==0.5.18 langchain-openai || echo "without ART" >&2
$pip install pytrec_eval-terrier==0.5.11 inspect-ai==0.3.285
$pip install --editable '.[openai,datasets]' hypothesis pytest pytest-asyncio pytest-timeout pytest-xdist
python3 -m venv "$1/ragas"
"$1/ragas/bin/python" -m pip --quiet --disable-pip-version-check install ragas==0.4.3 'langchain<1' 'langchain-core<1' \
  'langchain-community<0.4' 'langchain-openai<1' pytest pytest-timeout
touch "$1/.made"
