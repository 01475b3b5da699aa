"""docs/howto/train-a-planner.md with real programs: a teacher and a student behind an engine, and `trl sft` between.

The teacher is tests/engines/model, which has learnt its replies by heart; the student begins with random weights and
the teacher's tokenizer, and is asked the questions that it was taught by, since a model of its size learns no more than
replies. `ras-agent report` then holds the student after its training against the one before.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

pytest.importorskip("trl")
import torch
from transformers import AutoConfig, AutoTokenizer, LlamaForCausalLM

from ras_agent.app.sample import sample_passages
from tests.engines.lessons import ANSWERS, SEARCHES
from tests.engines.servers import ENGINES, serving
from tests.engines.train import FOLDER

TAUGHT = (
    "--max_steps",
    "300",
    "--per_device_train_batch_size",
    "4",
    "--learning_rate",
    "2e-3",
    "--warmup_steps",
    "20",
)
ON_A_CORE = (
    "--use_cpu",
    "true",
    "--bf16",
    "false",
    "--gradient_checkpointing",
    "false",
    "--report_to",
    "none",
)
QUIET = ("--save_strategy", "no", "--logging_steps", "50", "--max_length", "2048")


def _run(*command: str | Path, ends: Sequence[int] = (0,)) -> str:
    """Run a program of this environment; return its output. Raises AssertionError with that if it ends otherwise."""
    program = Path(sys.executable).parent / command[0]
    environment = {
        **os.environ,
        "HF_HUB_OFFLINE": "1",
        "OMP_NUM_THREADS": "1",
        "NO_PROXY": "127.0.0.1",
    }
    done = subprocess.run(
        [program, *command[1:]],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode in ends, done.stdout[-3000:] + done.stderr[-3000:]
    return done.stdout


def test_a_student_plans_as_its_teacher_after_trl_has_trained_it_on_exported_calls(
    tmp_path: Path,
) -> None:
    questions, corpus = tmp_path / "questions.jsonl", tmp_path / "corpus.jsonl"
    rows = [
        {"id": f"q{n}", "question": asked, "answers": [ANSWERS[asked][0]]}
        for n, asked in enumerate(SEARCHES)
    ]
    questions.write_text("".join(json.dumps(row) + "\n" for row in rows))
    corpus.write_text(
        "".join(json.dumps(passage.to_dict()) + "\n" for passage in sample_passages())
    )
    student, trained = tmp_path / "student", tmp_path / "planner"
    torch.manual_seed(0)
    LlamaForCausalLM(AutoConfig.from_pretrained(FOLDER)).save_pretrained(student)
    AutoTokenizer.from_pretrained(FOLDER).save_pretrained(student)

    engine = ENGINES["transformers"]
    with serving(engine, FOLDER) as teacher:

        def evaluate(
            planner: str, name: str, *limits: str, ends: Sequence[int] = (0,)
        ) -> None:
            others = [f"--{role}={teacher.spec}" for role in ("extractor", "answerer")]
            asked = (
                "--data",
                questions,
                "--corpus",
                corpus,
                "--k",
                "2",
                "--temperature",
                "0",
                "--concurrency",
                "4",
            )
            roles = (f"--planner={planner}", *others)
            _run(
                "ras-agent",
                "eval",
                "jsonl",
                *asked,
                *roles,
                *limits,
                "--out",
                tmp_path / name,
                ends=ends,
            )

        evaluate(teacher.spec, "teacher")
        kept = ("--role", "planner", "--min", "f1=1", "--cited", "--to", "trl")
        said = _run(
            "ras-agent",
            "export",
            tmp_path / "teacher",
            *kept,
            "--out",
            tmp_path / "sft" / "train.jsonl",
        )
        assert said.endswith("11 calls of 4 questions\n")
        with serving(engine, student) as before:
            # random weights end few replies: a planner that gave none in time is an error
            evaluate(before.spec, "before", "--max-seconds", "5", ends=(0, 3))
        data = ("--dataset_name", tmp_path / "sft", "--output_dir", trained)
        _run(
            "trl",
            "sft",
            "--model_name_or_path",
            student,
            *data,
            *TAUGHT,
            *ON_A_CORE,
            *QUIET,
        )
        with serving(engine, trained) as after:
            evaluate(after.spec, "after")

    scores = {
        name: json.loads((tmp_path / name / "summary.json").read_text())["scores"][
            "em"
        ]["mean"]
        for name in ("teacher", "before", "after")
    }
    assert scores["teacher"] == scores["after"] == 1.0
    assert scores["before"] < 1.0
    searches = {
        name: [
            [step["subquery"] for step in json.loads(line)["trace"]["steps"]]
            for line in sorted(
                (tmp_path / name / "results.jsonl").read_text().splitlines()
            )
        ]
        for name in ("teacher", "after")
    }
    assert searches["after"] == searches["teacher"]
    report = _run("ras-agent", "report", tmp_path / "before", tmp_path / "after")
    assert re.search(r"after.*\+\d", report)
