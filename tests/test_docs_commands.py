"""Every `ras-agent` command in a block of the README or of a page in docs/ runs, on small files named as there.

A block runs in a folder of its own, which holds everything that the pages name but what the block itself makes. Models
are a loopback server, studies and evaluations ask the first two questions, and a training takes two steps. The programs
that the pages start with `python -m` run in tests/eval/bench, tests/lab and tests/train.
"""

from __future__ import annotations

import json
import re
import shlex
import shutil
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from ras_agent.app.cli import build_program
from ras_agent.app.sample import sample_passages
from ras_agent.tools.index.store import PassageIndex

pytestmark = pytest.mark.slow("commands of pages")

Run = Callable[[list[str]], Any]
ROOT = Path(__file__).resolve().parent.parent
PAGES = [
    ROOT / "README.md",
    *sorted((ROOT / "docs").rglob("*.md")),
    *sorted((ROOT / "lab").glob("*.md")),
]
_BLOCK = re.compile(
    r"^```(\w+)\n(.*?)^```|((?:^ {4,}\S.*\n)+)", re.MULTILINE | re.DOTALL
)
_MODEL = re.compile(r"(openai|anthropic|vllm|graphllm):\S+")


_STAND_INS = {
    "st:sentence-transformers/all-mpnet-base-v2": "minilm",
    "st:Qwen/Qwen3-Embedding-0.6B": "minilm",
    "rmanluo/GFM-RAG-8M": "packaged",
}
"""What is asked for in place of what would be downloaded."""
_FEWER = {
    "eval": ["--limit", "2"],
    "study oracles": ["--limit", "2"],
    "study ablations": ["--limit", "2"],
    "study retrieval": ["--limit", "2"],
    "study sweep": ["--limit", "2"],
    "study abundance": ["--limit", "2", "--shuffles", "1"],
    "kg train": ["--steps", "2"],
}
"""How much less a command asks or learns than on the pages, where all questions and steps take it tens of seconds."""
ABSTAINED = 3
"""How `ask` ends where the answer cannot be read out of the texts, as of these small ones."""


def _values(words: list[str], *flags: str) -> list[str]:
    """Return the values of the flags."""
    return [value for flag, value in pairwise(words) if flag in flags]


def _without(words: list[str], *flags: str) -> list[str]:
    """Return the words without the flags and their values."""
    return [
        word
        for flag, word in zip(["", *words], words, strict=False)
        if word not in flags and flag not in flags
    ]


def _blocks() -> list[Any]:
    """Return the commands of each block, named by the page and the block's line."""
    found = []
    for page in PAGES:
        text = page.read_text("utf-8")
        for match in _BLOCK.finditer(text):
            if match[1] not in (None, "bash"):
                continue
            code = (match[2] or match[3]).replace("\\\n", " ")
            lines = [
                part.strip() for line in code.splitlines() for part in line.split("&&")
            ]
            commands = [
                shlex.split(line, comments=True)
                for line in lines
                if line.startswith("ras-agent ")
            ]
            if commands:
                found.append(
                    pytest.param(
                        commands,
                        id=f"{page.name}:{text.count(chr(10), 0, match.start()) + 1}",
                    )
                )
    return found


def _write(path: Path, records: list[dict[str, Any]]) -> None:
    path.parent.mkdir(exist_ok=True)
    path.write_text("".join(json.dumps(record) + "\n" for record in records))


@pytest.fixture(scope="module")
def run() -> Run:
    """Run a command, given as words, in this process."""
    program = build_program()
    return lambda words: CliRunner().invoke(program, words[1:])


@pytest.fixture(scope="module")
def everything(
    tmp_path_factory: pytest.TempPathFactory,
    run: Run,
    memorising_model: Callable[[str], Path],
) -> Path:
    """The folder of somebody who has done all that the pages show."""
    here = tmp_path_factory.mktemp("reader")
    for model in ("models/t5", "RUN/model"):
        shutil.copytree(memorising_model("t5"), here / model)
    records = [passage.to_dict() for passage in sample_passages()[:12]]
    for folder in ("docs", "contracts"):
        (here / folder).mkdir()
    (here / "contracts" / "lease.txt").write_text(records[0]["text"])
    for name, record in zip(("bell.md", "river.txt", "old.txt"), records, strict=False):
        (here / "docs" / name).write_text(record["text"])
    questions = [
        {
            **{
                "id": f"q{number}",
                "question": f"What is {record['title']}?",
                "answers": [record["title"]],
            },
            **{
                "supporting_ids": [record["id"]],
                "supporting_titles": [record["title"]],
                "type": "bridge",
            },
            "decomposition": [
                {"question": f"What is {record['title']}?", "answer": record["title"]}
            ],
        }
        for number, record in enumerate(records[:3])
    ]
    triples = [
        {**record, "triples": [[record["title"], "is in", "the sample"]]}
        for record in records
    ]
    for name in ("corpus.jsonl", "hotpotqa/corpus.jsonl"):
        _write(here / name, records)
    for name in (
        "questions.jsonl",
        "musique.jsonl",
        "hotpotqa/questions.jsonl",
        "musique/questions.jsonl",
    ):
        _write(here / name, questions)
    for name in ("musique/corpus_openie.jsonl", "text_to_triples/genwiki_test.jsonl", "text_to_triples/carb.jsonl",
                 "RUN/held_out.jsonl"):  # fmt: skip
        _write(here / name, triples)
    own_graph = {
        "question": "who was born in edinburgh",
        "q_entity": ["Edinburgh"],
        "answer": ["Bell"],
    }
    _write(
        here / "webqsp.jsonl",
        [{**own_graph, "id": "w1", "graph": [["Bell", "people.born", "Edinburgh"]]}],
    )
    _write(here / "nodes.jsonl", [{"id": "12", "text": "Bell was born in Edinburgh."}])
    (here / "qa/prime/stark_qa").mkdir(parents=True)
    (here / "qa/prime/stark_qa/stark_qa.csv").write_text(
        "id,query,answer_ids\n0,Who was born in Edinburgh?,[12]\n"
    )
    (here / "wiki.nt").write_text(
        "<http://x.org/Leith> <http://x.org/flowsThrough> <http://x.org/Edinburgh> .\n"
    )
    (here / "facts.tsv").write_text("Leith\tflows through\tEdinburgh\n")
    (here / "prices.json").write_text(
        json.dumps({"gpt-4o-mini": {"input": 0.15, "output": 0.6}})
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(here)
        for index, source in (
            ("my", "docs/"),
            ("hotpot", "corpus.jsonl"),
            ("musique", "corpus.jsonl"),
        ):
            for command in (
                f"index {source} --out {index}.index --embedder minilm",
                f"kg build {index}.index",
            ):
                done = run(["ras-agent", *command.split()])
                assert done.exit_code == 0, done.output
        mine = {
            "id": "m1",
            "question": "Where was Bell born?",
            "answers": ["Edinburgh"],
        }
        own = PassageIndex.open("my.index").passages
        _write(
            here / "mine.jsonl",
            [{**mine, "supporting_ids": [passage.id for passage in own]}],
        )
        assert (
            run(["ras-agent", "kg", "export", "my.index", "DATA/NAME"]).exit_code == 0
        )
        start = {
            "id": "1",
            "question": "What is Edinburgh?",
            "answer": "A city",
            "supporting_documents": ["bell.md"],
        }
        (here / "DATA/NAME/processed/stage1/test.json").write_text(
            json.dumps([{**start, "start_nodes": {"entity": ["Edinburgh"]}}])
        )
        for name, options in (
            ("ras", ["--loop", "ras"]),
            ("single", ["--loop", "single-shot"]),
        ):
            words = f"ras-agent eval jsonl --data questions.jsonl --corpus corpus.jsonl --limit 2 --out runs/{name}"
            done = run([*words.split(), *options])
            assert done.exit_code == 0, done.output
    return here


@pytest.mark.parametrize("commands", _blocks())
def test_a_block_of_commands_runs(
    commands: list[list[str]],
    everything: Path,
    run: Run,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    scripted_llm: Any,
) -> None:
    scripted_llm.script(
        {
            "when": "(S> ",
            "reply": "(S> Bell | P> was born in | O> Edinburgh)",
            "repeat": True,
        },
        {"reply": "[SUFFICIENT]\nAnswer: Edinburgh [1]", "repeat": True},
    )
    here = tmp_path / "here"
    shutil.copytree(everything, here)
    for words in commands:
        for name in _values(words, "--out"):
            shutil.rmtree(here / name, ignore_errors=True)
    monkeypatch.chdir(here)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    for words in commands:
        given = [
            scripted_llm.spec if _MODEL.fullmatch(word) else _STAND_INS.get(word, word)
            for word in words
        ]
        if fewer := _FEWER.get(words[1]) or _FEWER.get(" ".join(words[1:3])):
            given = [*_without(given, "--first", *fewer[::2]), *fewer]
        done = run(given)
        told = f"{shlex.join(words)}\n{done.output}"
        assert done.exit_code in ((0, ABSTAINED) if words[1] == "ask" else (0,)), told
        for name in _values(words, "--out", "--save", "--markdown"):
            assert (here / name).exists(), told
