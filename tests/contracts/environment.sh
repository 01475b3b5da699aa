#!/bin/sh
# environment.sh FOLDER: an environment with the packages of others that tests/contracts tries, for `make contracts`.
#
# torch 2.13.0 is a build for the CPU where the package index has one; TRL asks for no version of it.
set -eu
python3 -m venv "$1"
pip="$1/bin/python -m pip --quiet --disable-pip-version-check"
$pip install torch==2.13.0
$pip install trl==1.16.0 verifiers==0.4.0 jinja2
$pip install --editable . hypothesis pytest pytest-asyncio pytest-timeout pytest-xdist
touch "$1/.made"
