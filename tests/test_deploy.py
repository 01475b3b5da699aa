"""The files for servers name existing things: graphs, extras, settings."""

from __future__ import annotations

import importlib.util
import json
import re
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml

from ras_agent.config.settings import TOKEN_VARIABLE, Settings
from ras_agent.graphs.agent import Agent

ROOT = Path(__file__).resolve().parent.parent


def _loaded(path: str) -> Any:
    file, _, name = path.partition(":")
    spec = importlib.util.spec_from_file_location("langgraph_app", ROOT / file)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return getattr(module, name)


def test_langgraph_serves_graphs_that_answer(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    graphs = json.loads((ROOT / "langgraph.json").read_text("utf-8"))["graphs"]
    ras = _loaded(graphs["ras"]["path"])
    assert isinstance(ras, Agent)
    assert (
        ras.invoke({"question": "What is the main river of Edinburgh?"})["answer"]
        == "Water of Leith"
    )
    assert callable(_loaded(graphs["react"]["path"]))


def test_the_image_installs_extras_that_exist_and_sets_settings_that_exist() -> None:
    text = (ROOT / "Dockerfile").read_text("utf-8")
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"][
        "optional-dependencies"
    ]
    (installed,) = re.findall(r"/source\[([\w,]+)\]", text)
    assert set(installed.split(",")) <= extras.keys()
    named = {name.lower() for name in re.findall(r"RAS_AGENT_(\w+)=", text)}
    assert (
        named - {TOKEN_VARIABLE.removeprefix("RAS_AGENT_").lower()}
        <= Settings.model_fields.keys()
    )


def test_the_services_are_set_by_settings_that_exist_and_published_on_this_machine_alone() -> (
    None
):
    services = yaml.safe_load((ROOT / "compose.yaml").read_text("utf-8"))["services"]
    named = {
        name
        for name in services["agent"]["environment"]
        if name.startswith("RAS_AGENT_")
    } - {TOKEN_VARIABLE}
    assert {
        name.removeprefix("RAS_AGENT_").lower() for name in named
    } <= Settings.model_fields.keys()
    ports = [port for service in services.values() for port in service.get("ports", ())]
    assert ports
    assert all(port.startswith("127.0.0.1:") for port in ports)
