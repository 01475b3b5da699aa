"""The tutorial, the pages of docs/howto and the programs of examples/ run as they are shown, with no network.

Each runs in a folder of its own, which holds the files that they name: `docs/`, an index `my.index` of it, and
questions. A model that a page names is a loopback server's.
"""

from __future__ import annotations

import ast
import asyncio
import inspect
import json
import re
import runpy
import shutil
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from ras_agent.app.sample import sample_passages
from ras_agent.eval.calibration import calibrated
from ras_agent.logs import LOGGER
from ras_agent.running.confidence import Signals
from ras_agent.telemetry import stop_tracing
from ras_agent.tools.index.ingest import ingest
from ras_agent.tools.index.store import PassageIndex
from tests import inspect_stand_in

ROOT = Path(__file__).resolve().parent.parent
HOWTOS = sorted((ROOT / "docs" / "howto").glob("*.md"))
PAGES = [ROOT / "docs" / "tutorial.md", *HOWTOS]
# verifiers starts its own: tests/gym/test_verifiers_contract.py
EXAMPLES = sorted(
    set((ROOT / "examples").glob("*.py"))
    - set((ROOT / "examples").glob("verifiers_*.py"))
)
NOTEBOOKS = sorted((ROOT / "examples").glob("*.ipynb"))
_SIGNALS = Signals(**dict.fromkeys(Signals.__dataclass_fields__, 0))
_BLOCK = re.compile(r"^```python\n(.*?)^```", re.MULTILINE | re.DOTALL)
_MODEL = re.compile(
    r"(?<=[\"'])(openai|anthropic|ollama|vllm):(?![^\"'\n]*embed)[^\"'\n]+(?=[\"'])"
)


@pytest.fixture(scope="module")
def prepared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with documents and their index."""
    here = tmp_path_factory.mktemp("howto")
    passages = sample_passages()[:40]
    (here / "docs").mkdir()
    for name, passage in zip(
        ("bell.md", "river.txt", "old.txt"), passages, strict=False
    ):
        (here / "docs" / name).write_text(
            f"{passage.title}\n\n{passage.text}\n", encoding="utf-8"
        )
    PassageIndex.create(here / "my.index").add(passages)
    (here / "runs" / "mine").mkdir(parents=True)
    signals = [replace(_SIGNALS, stated=n % 2, undisputed=1) for n in range(100)]
    calibration = calibrated(signals, [n % 2 for n in range(100)])
    file = here / "runs" / "mine" / "calibration.json"
    file.write_text(json.dumps(calibration.to_dict()))
    return here


@pytest.fixture
def here(
    prepared: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Path]:
    """A copy of the prepared folder, which is the working directory of the test."""
    shutil.copytree(prepared, tmp_path / "here")
    monkeypatch.chdir(tmp_path / "here")
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    monkeypatch.setattr(LOGGER, "handlers", [*LOGGER.handlers])
    monkeypatch.setattr(LOGGER, "level", LOGGER.level)
    yield tmp_path / "here"
    # a page has set it up for the whole process
    if "opentelemetry.instrumentation.langchain" in sys.modules:
        stop_tracing()


def _run(code: str, name: str, names: dict[str, Any], runner: asyncio.Runner) -> None:
    compiled = compile(code, name, "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
    if compiled.co_flags & inspect.CO_COROUTINE:
        runner.run(eval(compiled, names))
    else:
        exec(compiled, names)


@pytest.mark.usefixtures("here")
@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_a_how_to_runs_as_it_is_shown(
    page: Path,
    scripted_llm: Any,
    request: pytest.FixtureRequest,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    if page.stem == "postgres":
        monkeypatch.setenv(
            "TEXTS", f"{request.getfixturevalue('postgres')}?schema=handbook"
        )
    scripted_llm.script(
        {
            "when": "(S> ",
            "reply": "(S> Bell | P> was born in | O> Edinburgh)",
            "repeat": True,
        },
        {"reply": "[SUFFICIENT]\nAnswer: Edinburgh [1]", "repeat": True},
    )
    names: dict[str, Any] = {"__name__": f"howto_{page.stem.replace('-', '_')}"}
    with asyncio.Runner() as runner:
        for number, block in enumerate(_BLOCK.findall(page.read_text("utf-8")), 1):
            code = _MODEL.sub(scripted_llm.spec, block)
            _run(code, f"{page.name}, block {number}", names, runner)


def _statements() -> list[str]:
    """Return the statements over passages and files that docs/howto/read-the-rows.md shows."""
    page = (ROOT / "docs" / "howto" / "read-the-rows.md").read_text("utf-8")
    return re.findall(r'"(select [^*"]+ from [^"]+|select document[^"]+)"', page)


@pytest.mark.parametrize("kind", ["file", "postgres"])
@pytest.mark.parametrize("statement", _statements())
def test_rows_are_read_by_the_statements_shown(
    statement: str, kind: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    place = tmp_path / "i" if kind == "file" else request.getfixturevalue("address")
    (tmp_path / "a.md").write_text("Bell was born in Edinburgh.")
    ingest([tmp_path / "a.md"], place)
    with PassageIndex.open(place).database.reading() as connection:
        rows = connection.execute(statement).fetchall()
    assert len(rows) == 1
    assert rows[0][0] == "a.md"


@pytest.mark.parametrize("page", HOWTOS, ids=lambda page: page.stem)
def test_a_how_to_is_short(page: Path) -> None:
    lines = page.read_text("utf-8").splitlines()
    # a table is looked up, not read
    rows = [line for line in lines if line.startswith("|")]
    assert len(lines) - len(rows) <= 90


@pytest.mark.usefixtures("here")
@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda notebook: notebook.stem)
def test_a_notebook_runs_from_its_first_cell_to_its_last_and_holds_no_outputs(
    notebook: Path,
) -> None:
    cells = json.loads(notebook.read_text("utf-8"))["cells"]
    assert not any(cell.get("outputs") for cell in cells)
    names: dict[str, Any] = {"__name__": "notebook"}
    with asyncio.Runner() as runner:
        for number, cell in enumerate(cells):
            if cell["cell_type"] == "code":
                _run(
                    "".join(cell["source"]),
                    f"{notebook.name}, cell {number}",
                    names,
                    runner,
                )


@pytest.mark.usefixtures("here")
@pytest.mark.parametrize("program", EXAMPLES, ids=lambda program: program.stem)
def test_an_example_runs_and_prints_something(
    program: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for (
        name,
        module,
    ) in (
        inspect_stand_in.modules().items()
    ):  # `make contracts` runs its example under the real one
        monkeypatch.setitem(sys.modules, name, module)
    runpy.run_path(str(program), run_name="__main__")
    assert capsys.readouterr().out.strip()
