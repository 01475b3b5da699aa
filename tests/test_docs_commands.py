"""Every `ras-agent` command and every training in a block of the README or of a page in docs/ runs as it is printed.

A block runs in a folder of its own, which holds everything that the pages name except those that the block itself
makes. Models
are a loopback server or a Llama of some thousand weights, studies and evaluations ask the first two questions, and a
training takes two steps. The other programs that the pages start with `python -m` run in tests/eval/bench and tests/lab.
"""

from __future__ import annotations

import json
import re
import runpy
import shlex
import shutil
import sys
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from typer.testing import CliRunner

from lab import graphqa_sets
from ras_agent.app.cli import build_program
from ras_agent.app.sample import sample_passages
from ras_agent.tools.index.store import PassageIndex
from tests.lab.test_graphllm_end_to_end import PEOPLE, question_of
from tests.train.graphqa.test_train import write_explagraphs

pytestmark = pytest.mark.slow("commands of pages")

Run = Callable[[list[str]], Any]
ROOT = Path(__file__).resolve().parent.parent
PAGES = [
    ROOT / "README.md",
    *sorted((ROOT / "docs").rglob("*.md")),
    *sorted((ROOT / "lab").glob("*.md")),
]
_BLOCK = re.compile(
    r"^```(\w+)\n(.*?)^```|((?:^ {4,}\S[^\n]*\n)+)", re.MULTILINE | re.DOTALL
)
_MODEL = re.compile(r"(openai|anthropic|vllm|graphllm):\S+")
_COMMAND = re.compile(
    r"ras-agent |python -m ras_agent\.train|python -m lab\.(graphqa_sets|language_model) |torchrun "
    r"|\$ ras-agent (eval|judge|report) "
)
"""How a command begins that runs here. Of sessions (`$`) those of evaluations do; servers' run in tests/app."""
_REMARK = re.compile(r"\s#\s.*")
"""Unlike shlex's, no `#` inside a word, such as that before a model's name."""

_STAND_INS = {
    "st:sentence-transformers/all-mpnet-base-v2": "minilm",
    "st:Qwen/Qwen3-Embedding-0.6B": "minilm",
    "rmanluo/GFM-RAG-8M": "packaged",
    "Qwen/Qwen2.5-7B-Instruct": "LLAMA",
    "meta-llama/Llama-2-7b-hf": "LLAMA",
    "MODEL": "LLAMA",
    "google/flan-t5-large": "models/t5",
    "hotpot_train_v1.1.json": "hotpot/train.json",
    "questions.csv": "made/scenes/made.csv",
    "2wiki": "jsonl",
    "HippoRAG/reproduce/dataset": "mine",
    "DATA/pathquestion/PQ-2H.txt": "DATA/pathquestion/2H.txt",
    "DATA/pathquestion/PQ-3H.txt": "DATA/pathquestion/3H.txt",
}
"""What is asked for in place of what would be downloaded, and the names of parts of official files."""
_FEWER = {
    "arena": ["--limit", "2"],
    "eval": ["--limit", "2"],
    "study oracles": ["--limit", "2"],
    "study ablations": ["--limit", "2"],
    "study sweep": ["--limit", "2"],
    "study abundance": ["--limit", "2", "--shuffles", "1"],
    "kg train": ["--steps", "2"],
}
"""How much less a command asks or learns than on the pages, where all questions and steps take it tens of seconds."""
_LEARNS_LESS = {
    "aligner.train": "--judged 4",
    "gfm.train": "--completion 2 --width 16",
    "graphllm.tables": "--seeds 0 --rows 2 --limit 1 --max-hops 1 --encoder-width 32",
    "graphqa.tables": "--seeds 0 --rows 1 --aligner-steps 1 --reply-tokens 4 --encoder-width 32",
    "graphqa.train": "--reply-tokens 4 --encoder-width 32",
    "lab.language_model": "--vocabulary 400 --width 32 --layers 2 --heads 2",
    "paths.scorer": "--validation-replies 2",
    "triples.train": "--held-out 0.2",
}
"""Options behind those of the pages, by the last words of a program's name."""
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
            if match[1] not in (None, "bash", "console"):
                continue
            code = (match[2] or match[3]).replace("\\\n", " ")
            lines = [
                part.strip() for line in code.splitlines() for part in line.split("&&")
            ]
            commands = [
                shlex.split(_REMARK.sub("", line.removeprefix("$ ")))
                for line in lines
                if _COMMAND.match(line)
                if match[1] != "console" or line.startswith("$ ")
                if page.parent.name != "lab" or line.startswith("ras-agent ")
            ]
            if commands:
                found.append(
                    pytest.param(
                        commands,
                        id=f"{page.name}:{text.count(chr(10), 0, match.start()) + 1}",
                    )
                )
    return found


def _write(path: Path, records: list[Any]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(record) + "\n" for record in records))


def _write_training_data(here: Path) -> None:
    """Write PathQuestion, ExplaGraphs, and made sets in the forms of SceneGraphs and WebQSP, some questions of each."""
    facts = []
    records = []
    lines = []
    with_graphs = []
    for number in range(30):
        person, spouse, nation = f"p{number}", f"s{number}", f"n{number}"
        path = [[person, "spouse", spouse], [spouse, "nationality", nation]]
        graph = [*path, [person, "gender", "x"]]
        facts += graph
        asked = f"nation of {person} 's spouse ?"
        answer = {"q_entity": [person], "a_entity": [nation], "gold_path": path}
        records.append({"question": asked, **answer})
        about = {"id": f"w{number}", "question": asked, "answer": [nation]}
        ends = {"q_entity": [person], "a_entity": [nation]}
        with_graphs.append({**about, **ends, "graph": graph})
        way = f"{person}#spouse#{spouse}#nationality#{nation}#<end>#{nation}"
        lines.append(f"{asked}\t{nation}({nation}/)\t{way}\n")
    _write(here / "webqsp_train.jsonl", with_graphs)
    for hops in (2, 3):
        _write(here / f"pq{hops}h_kb.jsonl", facts)
        _write(here / f"pq{hops}h.jsonl", records)
        _write(here / f"DATA/pathquestion/{hops}H-kb.txt", facts)
        (here / f"DATA/pathquestion/{hops}H.txt").write_text("".join(lines))
    _, validation = write_explagraphs(here)
    # no question of the test is among those that an aligner learns from
    other_questions = validation.read_text().replace("\tPets", " later\tPets")
    validation.write_text(other_questions)
    graphqa_sets.make(graphqa_sets.MadeSets(out=here / "made", scenes=12, people=20))
    for name in ("train", "test"):
        shutil.copy(here / f"made/webqsp/{name}.jsonl", here)
    shutil.copy(here / "test.jsonl", here / "validation.jsonl")
    steps = [question_of(*one) for one in PEOPLE.items()]
    _write(here / "DATA/musique_train200/questions.jsonl", steps)
    build = "python -m ras_agent.train.subq.build --musique DATA/musique_train200/questions.jsonl --out"
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(here)
        _train([*build.split(), "subq.jsonl"])
    hotpot = {
        "_id": "h1",
        "question": "In which city was the inventor of the telephone born?",
        "answer": "Edinburgh",
        "type": "bridge",
        "supporting_facts": [["Telephone", 0], ["Bell", 0]],
        "context": [
            ["Bell", ["Bell was born in Edinburgh."]],
            ["Telephone", ["Bell was born in Edinburgh, and made the telephone."]],
        ],
    }
    (here / "hotpot").mkdir()
    (here / "hotpot/train.json").write_text(json.dumps([hotpot]))
    (here / "scores.json").write_text(json.dumps({"recall@5": 0.5}))


def _train(words: list[str]) -> Any:
    """Run a program of Python as its line says, with less to learn; return how it ended."""
    module, *given = words[words.index("-m") + 1 :]
    name = ".".join(module.split(".")[-2:])
    given += _LEARNS_LESS.get(name, "").split()
    trains = name.endswith((".train", ".reasoner", ".scorer", ".tables", "_model"))
    # a pre-training takes none
    if trains and "0" not in _values(given, "--steps"):
        given += ["--steps", "2"]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "argv", [module, *given])
        # in a process of its own nothing has imported it before
        patch.delitem(sys.modules, module, raising=False)
        runpy.run_module(module, run_name="__main__")
    return SimpleNamespace(exit_code=0, output="")


@pytest.fixture(scope="module")
def run() -> Run:
    """Run a command, given as words, in this process."""
    program = build_program()

    def run(words: list[str]) -> Any:
        if words[0] != "ras-agent":
            return _train(words)
        return CliRunner().invoke(program, words[1:])

    return run


@pytest.fixture(scope="module")
def everything(
    tmp_path_factory: pytest.TempPathFactory,
    run: Run,
    memorising_model: Callable[[str], Path],
    tiny_llm: Path,
) -> Path:
    """The folder of somebody who has done all that the pages show."""
    here = tmp_path_factory.mktemp("reader")
    shutil.copytree(tiny_llm, here / "LLAMA")
    _write_training_data(here)
    shutil.copytree(memorising_model("t5"), here / "models/t5")
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
    for name in ("corpus.jsonl", "hotpotqa/corpus.jsonl", "mine/corpus.jsonl"):
        _write(here / name, records)
    for name in (
        "questions.jsonl",
        "musique.jsonl",
        "hotpotqa/questions.jsonl",
        "mine/questions.jsonl",
        "musique/questions.jsonl",
        "held-out.jsonl",
    ):
        _write(here / name, questions)
    for name in ("musique/corpus_openie.jsonl", "text_to_triples/genwiki_test.jsonl", "text_to_triples/carb.jsonl",
                 "wikiofgraph.jsonl"):  # fmt: skip
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
            ("rivers", "docs/"),
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
            ("mine", ["--loop", "ras"]),
            ("first", ["--loop", "ras"]),
        ):
            words = f"ras-agent eval jsonl --data questions.jsonl --corpus corpus.jsonl --limit 2 --out runs/{name}"
            done = run([*words.split(), *options])
            assert done.exit_code == 0, done.output
        for name, index in (("hotpotqa", "hotpot"), ("musique", "musique")):
            words = f"ras-agent kg examples {index}.index {name}/questions.jsonl --out SETS/{name}"
            done = run(words.split())
            assert done.exit_code == 0, done.output
        words = (
            "ras-agent kg train SETS/hotpotqa --start-from packaged --steps 2 --out RUN"
        )
        assert run(words.split()).exit_code == 0
    shutil.copytree(here / "models/t5", here / "RUN/model")
    _write(here / "RUN/held_out.jsonl", triples)
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
        {"when": "from what you know", "reply": "Answer: [UNKNOWN]"},
        {"when": "Say which ones are", "reply": "2, 1"},
        {"when": "[SUBQ] Who made the telephone?", "reply": "Where was Bell born?"},
        {"when": "Write the search question", "reply": "Who made the telephone?"},
        {"reply": "[SUFFICIENT]\nAnswer: Edinburgh [1]", "repeat": True},
    )
    here = tmp_path / "here"
    shutil.copytree(everything, here)
    for words in commands:
        for name in _values(words, "--out"):
            shutil.rmtree(here / name, ignore_errors=True)
    monkeypatch.chdir(here)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    for variable in ("KEY_A", "KEY_B"):
        monkeypatch.setenv(variable, "secret")
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
