"""`ras-agent arena` over a tiny sample in the files that HippoRAG publishes, with digests of its own."""

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from ras_agent.eval.study import arena
from tests.app.test_cli_study import PARAGRAPHS, RECORDS
from tests.messages import says

Cli = Callable[..., Any]
SMALL = ("--retriever", "dense", "--retriever", "bm25")


def _write(folder: Path) -> Path:
    folder.mkdir()
    corpus = [{"title": title, "text": text} for title, text in PARAGRAPHS]
    (folder / "musique.json").write_text(json.dumps(RECORDS))
    # HippoRAG's corpora repeat a passage here and there
    (folder / "musique_corpus.json").write_text(json.dumps([*corpus, corpus[0]]))
    return folder


@pytest.fixture
def sample(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with the two files of a set `musique`, which is known by their digests."""
    folder = _write(tmp_path / "dataset")
    digests = {}
    for name in ("musique.json", "musique_corpus.json"):
        digests[name] = arena.git_digest((folder / name).read_bytes())
    published = [
        {"system": "Theirs", "setting": "a large model", "scores": {"recall@2": 90.1}}
    ]
    known = replace(
        arena.public_sets()["musique"], digests=digests, published=published
    )
    monkeypatch.setattr(arena, "public_sets", lambda: {"musique": known})
    return folder


def test_a_digest_is_what_git_says_of_the_file() -> None:
    # git hash-object of a file with this line
    assert arena.git_digest(b"hello\n") == "ce013625030ba8dba906f756967f9e9ca394464a"


def test_retrievers_are_measured_on_a_set_beside_what_others_have_published(
    cli: Cli, sample: Path, tmp_path: Path
) -> None:
    done = cli("arena", "musique", "--data", sample, "--out", tmp_path / "a", *SMALL)
    assert done.exit_code == 0, done.output
    table = (tmp_path / "a/musique/tables.md").read_text()
    assert table == done.stdout
    assert "2 questions over 5 passages, files known by their digests" in table
    assert (
        "| run | n | recall@2 | recall@5 | all_recall@5 | mrr | s | recall@5 − dense | p |"
        in table
    )
    assert "| bm25 | 2 |" in table
    assert "| Theirs | a large model | 90.1 |" in table
    assert "- musique.json: sha256 " in table
    assert "- ras-agent " in table
    figures = json.loads((tmp_path / "a/musique/tables.json").read_text())
    # all five passages are among five, so that every gold one is found
    found = [row["scores"]["recall@5"]["mean"] for row in figures["retrieval"]]
    assert found == [1.0, 1.0]
    assert figures["built"]["passages"] == 5
    assert figures["checked"] is True


def test_the_second_time_nothing_is_asked_and_nothing_is_built(
    cli: Cli, sample: Path, tmp_path: Path
) -> None:
    words = ("arena", "musique", "--data", sample, "--out", tmp_path / "a", *SMALL)
    first = cli(*words)
    built = (tmp_path / "a/musique/built.json").read_text()
    assert "making the index" in first.stderr
    again = cli(*words)
    assert again.stdout == first.stdout
    assert "making the index" not in again.stderr
    assert (tmp_path / "a/musique/built.json").read_text() == built


def test_a_score_above_the_ceiling_of_the_questions_is_remarked_on(
    cli: Cli, sample: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    questions = json.loads((sample / "musique.json").read_text())
    for paragraph in questions[0]["paragraphs"]:
        paragraph["is_supporting"] = paragraph["idx"] < 4
    (sample / "musique.json").write_text(json.dumps(questions))
    known = arena.public_sets()["musique"]
    digest = arena.git_digest((sample / "musique.json").read_bytes())
    changed = replace(known, digests={**known.digests, "musique.json": digest})
    monkeypatch.setattr(arena, "public_sets", lambda: {"musique": changed})
    done = cli("arena", "musique", "--data", sample, "--out", tmp_path / "a", *SMALL)
    # two of four gold passages at best, and both of the other question's
    assert (
        "At most recall@2 75.0: some questions have more gold passages than that."
        in done.stdout
    )
    assert "| 90.1, above the 75.0 that these questions allow |" in done.stdout


def test_with_answers_the_agent_answers_over_each_retriever(
    cli: Cli, sample: Path, tmp_path: Path
) -> None:
    words = ("arena", "musique", "--data", sample, "--out", tmp_path / "a", *SMALL)
    done = cli(*words, "--answers")
    assert done.exit_code == 0, done.output
    answers = done.stdout.partition("## Answers, %")[2]
    assert "| run | n | squad_f1 | f1 | em | all_recall | hops | abstained |" in answers
    assert "| dense | 2 |" in answers
    assert "| bm25 | 2 |" in answers


def test_a_run_with_a_model_is_checked_from_its_replies_without_the_model(
    cli: Cli, sample: Path, tmp_path: Path, scripted_llm: Any
) -> None:
    scripted_llm.script({"reply": "Visby", "repeat": True})
    words = ("arena", "musique", "--data", sample, "--retriever", "bm25",
             "--answers", "--answerer", scripted_llm.spec)  # fmt: skip
    first = cli(*words, "--out", tmp_path / "a")
    assert first.exit_code == 0, first.output
    asked = len(scripted_llm.requests())
    replies = tmp_path / "a/musique/replies.sqlite"
    again = cli(*words, "--out", tmp_path / "b", "--cache", replies, "--replay")
    assert again.exit_code == 0, again.output
    assert len(scripted_llm.requests()) == asked

    def scores(name: str) -> Any:
        figures = json.loads((tmp_path / name / "musique/tables.json").read_text())
        return figures["answers"][0]["scores"]

    assert scores("a") == scores("b")


def test_another_file_is_refused_by_name_with_the_remedy(
    cli: Cli, sample: Path, tmp_path: Path
) -> None:
    corpus = sample / "musique_corpus.json"
    expected = arena.git_digest(corpus.read_bytes())
    corpus.write_text("[]")
    done = cli("arena", "musique", "--data", sample, "--out", tmp_path / "a", *SMALL)
    assert done.exit_code == 1
    refusal = says(
        f"{corpus}: this is not the file of MuSiQue, HippoRAG's sample",
        "0637a088a01e8ddab3bf3fa98dbe804cbde1a0dc",
        f"the official file has {expected}",
        "Copy reproduce/dataset from github.com/OSU-NLP-Group/HippoRAG, with its line ends",
        "for questions of your own give their file to --data",
    )
    assert refusal.match(done.stderr)
    corpus.unlink()
    done = cli("arena", "musique", "--data", sample, "--out", tmp_path / "a", *SMALL)
    missing = says(f"{corpus}: no such file", "copy reproduce/dataset from github.com")
    assert missing.match(done.stderr)


def test_a_question_file_is_read_as_the_benchmark_s_own(
    cli: Cli, sample: Path, tmp_path: Path
) -> None:
    words = (
        "arena",
        "musique",
        "--data",
        sample / "musique.json",
        "--retriever",
        "bm25",
    )
    done = cli(*words, "--k", "20", "--out", tmp_path / "a")
    assert done.exit_code == 0, done.output
    assert "# MuSiQue\n\n2 questions over 5 passages" in done.stdout
    assert "| mrr | recall@20 | all_recall@20 | s |" in done.stdout
    results = tmp_path / "a/musique/runs/bm25/results.jsonl"
    stops = {json.loads(line)["stop_reason"] for line in results.open()}
    assert stops == {"retrieval_only"}
    done = cli("arena", "musique", "--data", sample, "--corpus", tmp_path / "c.jsonl")
    assert says("musique already has passages", "leave --corpus out").match(done.stderr)


def test_questions_without_gold_passages_can_only_be_answered(
    cli: Cli, tmp_path: Path
) -> None:
    question = {"id": "q", "question": "Where is Lund?", "answers": ["Scania"],
                "contexts": [{"title": "Lund", "text": PARAGRAPHS[3][1]}]}  # fmt: skip
    file = tmp_path / "questions.jsonl"
    file.write_text(json.dumps(question) + "\n")
    words = ("arena", "jsonl", "--data", file, "--retriever", "bm25")
    done = cli(*words, "--out", tmp_path / "a")
    assert done.exit_code == 1
    assert says("names no gold passages", "--answers").match(done.stderr)
    done = cli(*words, "--answers", "--out", tmp_path / "b")
    assert done.exit_code == 0, done.output
    assert "Passages found" not in done.stdout
    assert "## Answers, %" in done.stdout


def test_files_of_one_s_own_are_measured_without_a_digest_to_know_them_by(
    cli: Cli, tmp_path: Path
) -> None:
    folder = tmp_path / "own"
    folder.mkdir()
    passages = [
        {"id": title, "title": title, "text": text} for title, text in PARAGRAPHS
    ]
    question = {"id": "q", "question": "Where was Karl Ek born?", "answers": ["Lund"],
                "supporting_ids": ["Karl Ek"]}  # fmt: skip
    for name, rows in (("corpus.jsonl", passages), ("questions.jsonl", [question])):
        (folder / name).write_text("".join(json.dumps(row) + "\n" for row in rows))
    done = cli("arena", "jsonl", "--data", folder, "--out", tmp_path / "a", *SMALL)
    assert done.exit_code == 0, done.output
    assert "1 questions over 5 passages" in done.stdout
    assert "Published by others" not in done.stdout
    figures = json.loads((tmp_path / "a/jsonl/tables.json").read_text())
    assert figures["checked"] is False
    assert set(figures["files"]) == {"questions.jsonl", "corpus.jsonl"}


@pytest.mark.parametrize("name", ["2wiki", "hotpotqa", "musique"])
def test_each_set_names_both_its_files_and_their_digests(name: str) -> None:
    known = arena.public_sets()[name]
    assert set(known.digests) == {known.questions, known.corpus}
    assert {len(digest) for digest in known.digests.values()} == {40}
    for row in known.published:
        assert row["system"]
        assert row["setting"]
        assert row["scores"]
