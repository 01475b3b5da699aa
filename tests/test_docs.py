"""The pages in docs/ are true: their Python runs, and the things that they add or name work by their names."""

import ast
import asyncio
import json
import re
import sys
from functools import cache
from itertools import groupby
from pathlib import Path
from types import CodeType, ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pytest

from ras_agent import Passage, PassageIndex
from ras_agent.config import registry
from ras_agent.config.settings import Settings
from ras_agent.eval.benchmarks import benchmark
from ras_agent.eval.metrics.registry import metric_names
from ras_agent.eval.run import begin_run, load_task, search_agent
from ras_agent.tools.kg.build import add_triples

DOCS = Path(__file__).resolve().parent.parent / "docs"
PASSAGES = [
    Passage(
        "bell",
        "Alexander Graham Bell was born in Edinburgh. He patented the telephone.",
        "Alexander Graham Bell",
    ),
    Passage(
        "leith", "The Water of Leith is the main river of Edinburgh.", "Water of Leith"
    ),
]


def _blocks(page: str) -> list[str]:
    return re.findall(
        r"^```python\n(.*?)^```",
        (DOCS / page).read_text("utf-8"),
        re.MULTILINE | re.DOTALL,
    )


def _run(page: str, names: dict[str, Any]) -> dict[str, Any]:
    """Run a page's Python blocks one after another, in one namespace."""
    for number, block in enumerate(_blocks(page), 1):
        exec(compile(block, f"docs/{page}, block {number}", "exec"), names)
    return names


@pytest.fixture
def _registry_as_it_was(monkeypatch: pytest.MonkeyPatch) -> None:
    benchmark("jsonl")  # the built-in plug-ins are registered now, and stay
    metric_names()
    for kind, table in registry.PLUGINS.items():
        monkeypatch.setitem(registry.PLUGINS, kind, dict(table))


def test_the_agent_is_embedded_as_the_page_shows(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert len(_blocks("embedding.md")) >= 6
    out = _run("embedding.md", {})
    assert out["out"]["stop_reason"]
    assert "facts" in capsys.readouterr().out


@pytest.mark.usefixtures("_registry_as_it_was")
def test_what_the_page_adds_from_outside_works_by_its_name(tmp_path: Path) -> None:
    from ras_agent.eval.run import EvalAgent, begin_run, load_task
    from ras_agent.graphs.resolve import agent_from_settings

    _run("extending.md", {"passages": PASSAGES})

    settings = Settings(loop="twice", retriever="words+bm25", answerer="offline")
    out = agent_from_settings(settings, PASSAGES).invoke(
        {"question": "Which river is in Bell's birthplace?"}
    )
    assert len(out["steps"]) == 2

    data, corpus = tmp_path / "trivia.jsonl", tmp_path / "corpus.jsonl"
    data.write_text(
        json.dumps(
            {
                "qid": "1",
                "q": "Where was Alexander Graham Bell born?",
                "a": ["Edinburgh"],
            }
        )
        + "\n"
    )
    corpus.write_text(
        "".join(json.dumps(passage.to_dict()) + "\n" for passage in PASSAGES)
    )
    chosen = Settings(planner="two-step", retriever="words")
    task = load_task("trivia-night", data, chosen, corpus=corpus)
    run = begin_run(task, EvalAgent("run", chosen), tmp_path / "run")
    assert {"em", "f1", "brief"} <= run.finish()["scores"].keys()


def test_paths_are_found_and_their_hops_counted_as_the_page_shows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("bell.tsv").write_text(
        "Bell\tborn in\tEdinburgh\nLeith\triver of\tEdinburgh\n"
    )
    add_triples("my.index", ["bell.tsv"], embedder="minilm")
    passages = PassageIndex.open("my.index").passages
    [gold] = [passage.id for passage in passages if "Leith" in passage.text]
    line = {
        "id": "2hop__1",
        "question": "Which river is in the city where Bell was born?",
        "answers": ["Leith"],
        "supporting_ids": [gold],
        "hops": 2,
    }
    Path("questions.jsonl").write_text(f"{json.dumps(line)}\n")
    names: dict[str, Any] = {}
    exec(_blocks("paths.md")[-1], names)
    assert names["predicted"].total() == 1
    assert names["needed"] == {2: 1}


def test_a_graph_llm_is_made_and_asked_as_the_page_shows(
    tiny_llm: Path, tmp_path: Path
) -> None:
    names = {"llama": str(tiny_llm), "folder": tmp_path / "model"}
    assert (
        _run("graph-tokens.md", names)["message"].usage_metadata["output_tokens"] == 20
    )


def _names_in(body: list[ast.stmt], prefix: str = "") -> set[str]:
    """Return the classes, functions and variables that a module's or a class's body defines, dotted."""
    names: set[str] = set()
    for statement in body:
        if isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            names.add(prefix + statement.name)
        if isinstance(statement, ast.ClassDef):
            names |= _names_in(statement.body, f"{prefix}{statement.name}.")
        targets = (
            statement.targets
            if isinstance(statement, ast.Assign)
            else [getattr(statement, "target", None)]
        )
        names |= {
            prefix + target.id for target in targets if isinstance(target, ast.Name)
        }
    return names


@cache
def _names_of(path: str) -> set[str]:
    return _names_in(ast.parse((DOCS.parent / path).read_text("utf-8")).body)


def _files_named(cell: str) -> list[tuple[str, str]]:
    """Return the files that a cell of a table names, each with the part of it that is named, or ""."""
    return re.findall(r"`([\w./-]+\.(?:py|txt))(?:::([\w.]+))?`", cell)


def test_every_row_of_the_methods_names_a_function_and_a_test_that_exist() -> None:
    lines = (DOCS / "methods.md").read_text("utf-8").splitlines()
    tables = [
        list(table)
        for is_row, table in groupby(lines, lambda line: line.startswith("|"))
        if is_row
    ]
    rows = [
        row
        for heads, _rule, *rows in tables
        if heads.endswith("| function | test |")
        for row in rows
    ]
    assert len(rows) >= 140
    for row in rows:
        functions, tests = map(_files_named, re.split(r"(?<!\\)\|", row)[2:4])
        assert functions, f"a function: {row}"
        assert tests, f"a test: {row}"
        for path, name in tests:
            assert re.match(r"tests/.*::(Test\w+\.)?test_", f"{path}::{name}"), (
                f"{path} {name} is no test: {row}"
            )
        for path, name in functions + tests:
            assert (DOCS.parent / path).is_file(), f"{path} is not there: {row}"
            assert name or path.endswith(".txt"), f"name what in {path}: {row}"
            assert not name or name in _names_of(path), f"{path} has no {name}"


async def _as_a_cell(code: CodeType) -> None:
    """Run code as a notebook does, whose event loop is running."""
    exec(code, {})


@pytest.mark.usefixtures("_registry_as_it_was")
@pytest.mark.parametrize("place", ["program", "notebook"])
def test_a_task_an_agent_and_a_metric_of_ones_own_are_evaluated_as_the_page_shows(
    place: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    (tmp_path / "corpus.jsonl").write_text(
        '{"id": "leith", "title": "Water of Leith", "text": "The Water of Leith is the main river of Edinburgh."}\n'
    )
    (tmp_path / "questions.jsonl").write_text(
        '{"id": "q1", "question": "Which river is in Edinburgh?", "answers": ["Water of Leith"]}\n'
        '{"id": "q2", "question": "What is the Water of Leith?", "answers": ["the main river of Edinburgh"]}\n'
    )
    monkeypatch.chdir(tmp_path)
    block = next(block for block in _blocks("evaluation.md") if "begin_run" in block)
    code = compile(block, "docs/evaluation.md", "exec")
    if place == "program":
        exec(code, {})
    else:
        asyncio.run(_as_a_cell(code))
    loop, fixed = capsys.readouterr().out.splitlines()
    assert loop.startswith("the loop ")
    assert fixed == "one river for all 0.5 1.0"


def test_nodes_that_are_written_as_the_page_shows_are_found_by_stark_s_questions(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Has the names of stark-qa 1.1, whose own knowledge bases are pickles that are downloaded."""
    page = (DOCS / "evaluation.md").read_text("utf-8")
    (block,) = re.findall(
        r"^```\n(import json\nfrom stark_qa.*?)^```", page, re.MULTILINE | re.DOTALL
    )
    texts = {12: "Ibuprofen treats pain.", 7: "Aspirin thins blood."}
    nodes = SimpleNamespace(
        candidate_ids=np.array(sorted(texts)),
        get_doc_info=lambda node, add_rel: texts[node],
    )
    package = ModuleType("stark_qa")
    package.load_skb = lambda name, download_processed: nodes  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "stark_qa", package)
    exec(compile(block, "docs/evaluation.md", "exec"), {})
    (tmp_path / "nodes.jsonl").write_text(capsys.readouterr().out)
    (tmp_path / "stark_qa").mkdir()
    (tmp_path / "stark_qa/stark_qa.csv").write_text(
        'id,query,answer_ids\n0,What treats pain?,"[12]"\n'
    )
    settings = Settings(llm="offline", k=1)
    corpus = tmp_path / "nodes.jsonl"
    task = load_task("stark-prime", tmp_path, settings, corpus=corpus)
    summary = begin_run(task, search_agent("bm25", settings), tmp_path / "run").finish()
    assert summary["scores"]["hit@1"]["mean"] == 1.0
