"""`ras-agent study` with offline roles over a tiny question set in MuSiQue's own format."""

import json
import sys
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from ras_agent import Passage, PassageIndex, build_graph
from tests.messages import says

Cli = Callable[..., Any]
PARAGRAPHS = [
    (
        "Norrhamn",
        "Norrhamn is a fishing village. The lighthouse of Norrhamn was designed by Ida Falk in 1912.",
    ),
    (
        "Ida Falk",
        "Ida Falk was a Swedish architect. She was born in Visby and studied in Lund.",
    ),
    (
        "Visby",
        "Visby is a town on the island of Gotland. Its wall was built in the 13th century.",
    ),
    ("Lund", "Lund is a city in Scania. The university of Lund was founded in 1666."),
    ("Karl Ek", "Karl Ek was a painter. He was born in Lund and painted harbours."),
]


def _record(
    identity: str, question: str, answer: str, steps: list[tuple[str, str, int]]
) -> dict[str, Any]:
    gold = {at for _, _, at in steps}
    return {
        "id": identity,
        "question": question,
        "answer": answer,
        "answer_aliases": [],
        "answerable": True,
        "paragraphs": [
            {
                "idx": number,
                "title": title,
                "paragraph_text": text,
                "is_supporting": number in gold,
            }
            for number, (title, text) in enumerate(PARAGRAPHS)
        ],
        "question_decomposition": [
            {
                "id": number,
                "question": asked,
                "answer": answer,
                "paragraph_support_idx": at,
            }
            for number, (asked, answer, at) in enumerate(steps)
        ],
    }


RECORDS = [
    _record(
        "2hop__1_2",
        "Where was the designer of the lighthouse of Norrhamn born?",
        "Visby",
        [
            ("Who designed the lighthouse of Norrhamn?", "Ida Falk", 0),
            ("Where was #1 born?", "Visby", 1),
        ],
    ),
    _record(
        "2hop__3_4",
        "In which city was the painter Karl Ek born, and which region is it in?",
        "Scania",
        [
            ("Where was Karl Ek born?", "Lund", 4),
            ("Which region is #1 in?", "Scania", 3),
        ],
    ),
]


@pytest.fixture
def musique(tmp_path: Path) -> Path:
    path = tmp_path / "questions.jsonl"
    path.write_text("".join(json.dumps(record) + "\n" for record in RECORDS))
    return path


def _study(folder: Path) -> dict[str, Any]:
    return dict(json.loads((folder / "study.json").read_text()))


def _runs(folder: Path) -> dict[str, dict[str, dict[str, Any]]]:
    """Results by run name and question."""
    return {
        run["name"]: {
            row["id"]: row
            for row in map(
                json.loads, (folder / run["folder"] / "results.jsonl").open()
            )
        }
        for run in _study(folder)["runs"]
    }


def _manifest(folder: Path, name: str) -> dict[str, Any]:
    (run,) = (run for run in _study(folder)["runs"] if run["name"] == name)
    return dict(json.loads((folder / run["folder"] / "manifest.json").read_text()))


def test_oracles_cross_three_roles_and_name_the_one_that_loses_points(
    cli: Cli, musique: Path, tmp_path: Path
) -> None:
    done = cli(
        "study",
        "oracles",
        "musique",
        "--data",
        musique,
        "--out",
        tmp_path / "s",
        "--k",
        "1",
    )
    assert done.exit_code == 0, done.output
    runs = _runs(tmp_path / "s")
    assert len(runs) == 12
    planned = runs["oracle planner"]["2hop__1_2"]["trace"]
    assert [step["subquery"] for step in planned["steps"]] == [
        "Where was the designer of the lighthouse of Norrhamn born?",
        "Who designed the lighthouse of Norrhamn?",
        "Where was Ida Falk born?",
    ]
    assert planned["stop_reason"] == "sufficient"
    assert planned["roles"]["planner"] == "oracle"
    # with one passage per hop the gold plan finds what the question by itself does not find
    found = runs["oracle planner + answerer (facts)"]["2hop__1_2"]
    assert (found["answer"], found["scores"]["em"], found["scores"]["all_recall"]) == (
        "Visby",
        1.0,
        1.0,
    )
    both = runs["oracle planner + retriever + answerer (passages)"]
    assert [row["scores"]["em"] for row in both.values()] == [1.0, 1.0]
    manifest = _manifest(tmp_path / "s", "oracle planner + retriever")
    assert manifest["roles"] == {
        "planner": "oracle", "extractor": "offline", "answerer": "offline", "retriever": "oracle",
    }  # fmt: skip
    assert manifest["limits"]["stop_on_no_new_facts"] is False
    assert manifest["variant"] == {
        "oracles": {"planner": True, "retriever": True, "answerer": ""}
    }
    assert "| own roles | 2 |" in done.stdout
    assert (tmp_path / "s" / "tables.md").read_text() == done.stdout


def test_oracles_are_also_compared_by_gold_hops(cli: Cli, tmp_path: Path) -> None:
    contexts = [
        {"id": title, "title": title, "text": text} for title, text in PARAGRAPHS
    ]
    questions = [
        {"id": "one", "question": "Where was Karl Ek born?", "answers": ["Lund"], "supporting_ids": ["Karl Ek"]},
        {"id": "two", "question": "Which region was Karl Ek born in?", "answers": ["Scania"],
         "supporting_ids": ["Karl Ek", "Lund"], "contexts": contexts},
    ]  # fmt: skip
    data = tmp_path / "own.jsonl"
    data.write_text("".join(json.dumps(question) + "\n" for question in questions))
    done = cli("study", "oracles", "jsonl", "--data", data, "--out", tmp_path / "s")
    table = done.stdout.partition("## em_text by gold hops")[2]
    assert "| run | 1 hops | 2 hops |" in table
    assert (
        "| oracle retriever + answerer (passages) | 100.0 (20.7 to 100.0) | 100.0 (20.7 to 100.0) |"
        in table
    )


def test_an_oracle_without_annotation_is_left_out_with_its_reason(
    cli: Cli, tmp_path: Path
) -> None:
    question = {"id": "q", "question": "Where is Lund?", "answers": ["Scania"], "supporting_titles": ["Lund"],
                "contexts": [{"title": title, "text": text} for title, text in PARAGRAPHS]}  # fmt: skip
    data = tmp_path / "own.jsonl"
    data.write_text(json.dumps(question) + "\n")
    done = cli("study", "oracles", "jsonl", "--data", data, "--out", tmp_path / "s")
    assert len(_study(tmp_path / "s")["runs"]) == 6
    assert "by gold hops" not in done.stdout
    assert (
        "Not run: planner oracle: 1 of 1 questions come without a gold decomposition."
        in done.stdout
    )


def test_each_ablation_removes_one_part(
    cli: Cli, musique: Path, tmp_path: Path
) -> None:
    done = cli(
        "study", "ablations", "musique", "--data", musique, "--out", tmp_path / "s"
    )
    assert done.exit_code == 0, done.output
    runs = _runs(tmp_path / "s")
    more = "full loop, passages beside the triples"
    assert list(runs) == [
        "full loop",
        more,
        "no planning",
        "no text-to-triples",
        "no retrieval",
    ]
    layouts = [_manifest(tmp_path / "s", name)["settings"]["layout"] for name in runs]
    assert layouts == ["chain", "evidence", "chain", "chain-of-text", "chain"]
    one = {name: results["2hop__1_2"] for name, results in runs.items()}
    assert (one["no planning"]["hops"], one["no planning"]["stop_reason"]) == (
        1,
        "single_shot",
    )
    assert (one["no retrieval"]["hops"], one["no retrieval"]["retrieved"]) == (0, [])
    facts = one["no text-to-triples"]["trace"]["graph"]["facts"]
    assert {fact["predicate"] for fact in facts} == {"text"}
    assert "She was born in Visby and studied in Lund." in {
        fact["object"] for fact in facts
    }
    assert _manifest(tmp_path / "s", "no planning")["graph"] == "single-shot"
    assert (
        _manifest(tmp_path / "s", "no text-to-triples")["roles"]["extractor"] == "none"
    )
    assert (
        "Not run: no graph encoding: the answerer offline reads the graph as text"
        in done.stdout
    )
    assert "f1 − full loop" in done.stdout


def test_the_ablation_removes_an_answerer_s_graph_encoding(
    cli: Cli, musique: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from ras_agent.config.registry import PLUGINS
    from ras_agent.contracts.records import Answer

    class Encoding:
        name = "encoding"

        tokens = 1

        def answer(
            self, question: str, graph: object, passages: object, steps: object
        ) -> Answer:
            return Answer(f"{self.tokens} graph tokens")

        def without_graph_tokens(self) -> "Encoding":
            read = Encoding()
            read.tokens = 0
            return read

    monkeypatch.setitem(
        PLUGINS["answerer"], "encoding", "answerers_of_this_test:encoding"
    )
    monkeypatch.setitem(
        sys.modules,
        "answerers_of_this_test",
        SimpleNamespace(encoding=lambda argument, options: Encoding()),
    )
    done = cli(
        "study",
        "ablations",
        "musique",
        "--data",
        musique,
        "--out",
        tmp_path / "s",
        "--answerer",
        "encoding",
    )
    assert done.exit_code == 0, done.output
    runs = _runs(tmp_path / "s")
    assert runs["full loop"]["2hop__1_2"]["answer"] == "1 graph tokens"
    assert runs["no graph encoding"]["2hop__1_2"]["answer"] == "0 graph tokens"


def _unreadable(tmp_path: Path, benchmark: str) -> Path:
    """Write a question whose only passage states no fact that the offline extractor reads."""
    text = {"title": "Visby", "text": "Oh Visby!"}
    own = {
        "id": "q",
        "question": "Where is Visby?",
        "answers": ["Gotland"],
        "contexts": [text],
    }
    popqa = {
        "id": "q",
        "question": "Where is Visby?",
        "possible_answers": ["Gotland"],
        "s_pop": 1,
        "ctxs": [text],
    }
    path = tmp_path / "unreadable.jsonl"
    path.write_text(json.dumps(popqa if benchmark == "popqa" else own) + "\n")
    return path


def test_the_runs_of_an_ablation_differ_in_one_part_and_not_in_whether_the_model_is_asked(
    cli: Cli, tmp_path: Path, scripted_llm: Any
) -> None:
    scripted_llm.script({"reply": "Answer: Gotland", "repeat": True})
    done = cli("study", "ablations", "jsonl", "--data", _unreadable(tmp_path, "jsonl"), "--out", tmp_path / "s",
               "--planner", "offline", "--extractor", "offline", "--answerer", scripted_llm.spec,
               "--max-hops", "1")  # fmt: skip
    assert done.exit_code == 0, done.output
    answers = {
        name: (results["q"]["answer"], results["q"]["hops"])
        for name, results in _runs(tmp_path / "s").items()
    }
    assert answers == {
        "full loop": ("Gotland", 1),
        "full loop, passages beside the triples": ("Gotland", 1),
        "no planning": ("Gotland", 1),
        "no text-to-triples": ("Gotland", 1),
        "no retrieval": ("Gotland", 0),
    }


def test_an_ablation_has_the_passages_that_a_benchmark_gives_but_without_retrieval(
    cli: Cli, tmp_path: Path, scripted_llm: Any
) -> None:
    scripted_llm.script({"reply": "Answer: Gotland", "repeat": True})
    corpus = tmp_path / "corpus.jsonl"
    corpus.write_text(
        json.dumps({"id": "lund", "text": "Lund is a city in Scania."}) + "\n"
    )
    done = cli("study", "ablations", "popqa", "--data", _unreadable(tmp_path, "popqa"), "--corpus", corpus, "--out",
               tmp_path / "s", "--planner", "offline", "--extractor", "offline", "--answerer", scripted_llm.spec,
               "--max-hops", "1")  # fmt: skip
    assert done.exit_code == 0, done.output
    traces = {
        name: json.dumps(results["q"]["trace"])
        for name, results in _runs(tmp_path / "s").items()
    }
    assert {name for name, trace in traces.items() if "Oh Visby!" not in trace} == {
        "no retrieval"
    }


def test_a_graph_that_reads_no_facts_is_ablated_with_its_passages(
    cli: Cli, tmp_path: Path, scripted_llm: Any
) -> None:
    scripted_llm.script({"reply": "So the answer is: Gotland", "repeat": True})
    done = cli("study", "ablations", "jsonl", "--data", _unreadable(tmp_path, "jsonl"), "--out", tmp_path / "s",
               "--loop", "ircot", "--llm", scripted_llm.spec)  # fmt: skip
    assert done.exit_code == 0, done.output
    assert list(_runs(tmp_path / "s")) == ["full loop", "no planning", "no retrieval"]
    assert _manifest(tmp_path / "s", "full loop")["settings"]["layout"] == "evidence"
    assert "Oh Visby!" in json.dumps(scripted_llm.requests()[-2]["messages"])


def test_abundance_asks_for_what_the_model_knows_where_no_triples_were_read(
    cli: Cli, tmp_path: Path, scripted_llm: Any
) -> None:
    scripted_llm.script({"reply": "Answer: Gotland", "repeat": True})
    done = cli("study", "abundance", "jsonl", "--data", _unreadable(tmp_path, "jsonl"), "--out", tmp_path / "s",
               "--planner", "offline", "--extractor", "offline", "--answerer", scripted_llm.spec,
               "--share", "1", "--shuffles", "1")  # fmt: skip
    assert done.exit_code == 0, done.output
    assert {results["q"]["answer"] for results in _runs(tmp_path / "s").values()} == {
        "Gotland"
    }


def test_abundance_answers_from_a_share_of_the_triples(
    cli: Cli, musique: Path, tmp_path: Path
) -> None:
    study = ["study", "abundance", "musique", "--data", musique, "--out", tmp_path / "s", "--share", "0.3",
             "--share", "1", "--shuffles", "2"]  # fmt: skip
    done = cli(*study)
    assert done.exit_code == 0, done.output
    runs = _runs(tmp_path / "s")
    assert list(runs) == [
        "full loop",
        "30 % of the triples, shuffle 1",
        "30 % of the triples, shuffle 2",
        "100 % of the triples, shuffle 1",
        "100 % of the triples, shuffle 2",
    ]
    full, part = (
        runs["full loop"]["2hop__1_2"],
        runs["30 % of the triples, shuffle 1"]["2hop__1_2"],
    )
    assert (part["hops"], part["retrieved"]) == (full["hops"], full["retrieved"])
    assert _manifest(tmp_path / "s", "30 % of the triples, shuffle 2")["variant"] == {
        "abundance": 0.3, "shuffle": 2, "evidence": "facts",
    }  # fmt: skip
    assert "| 30 % |" in done.stdout
    assert (tmp_path / "s" / "abundance.svg").read_text().startswith("<?xml")
    again = cli(*study)
    assert again.stdout == done.stdout


def test_abundance_keeps_the_best_triples_by_an_order(
    cli: Cli, musique: Path, tmp_path: Path
) -> None:
    study = [
        "study",
        "abundance",
        "musique",
        "--data",
        musique,
        "--out",
        tmp_path / "s",
        "--share",
        "0.3",
    ]
    done = cli(*study, "--order", "use")
    assert done.exit_code == 0, done.output
    assert list(_runs(tmp_path / "s")) == ["full loop", "30 % of the triples, by use"]
    assert _manifest(tmp_path / "s", "30 % of the triples, by use")["variant"] == {
        "abundance": 0.3, "order": "use", "evidence": "facts",
    }  # fmt: skip
    assert "| 30 %, use |" in done.stdout
    wrong = cli(*study, "--order", "beauty")
    assert wrong.exit_code != 0
    assert says(
        "unknown order of facts 'beauty'", "known: aligner:FOLDER, likeness, use"
    ).search(wrong.stderr)


def test_with_all_triples_the_answerer_says_what_it_said_in_the_full_loop(
    cli: Cli, musique: Path, tmp_path: Path
) -> None:
    done = cli("study", "abundance", "musique", "--data", musique, "--out", tmp_path / "s", "--share", "1",
               "--shuffles", "1")  # fmt: skip
    assert done.exit_code == 0, done.output
    runs = _runs(tmp_path / "s")
    alone, full = (
        runs[name]["2hop__1_2"]
        for name in ("100 % of the triples, shuffle 1", "full loop")
    )
    assert (alone["answer"], alone["scores"]) == (full["answer"], full["scores"])
    assert (alone["abstained"], alone["scores"]["answer_in_facts"]) == (False, 1.0)


def test_beside_the_triples_the_answerer_may_see_their_sentences(
    cli: Cli, musique: Path, tmp_path: Path
) -> None:
    done = cli("study", "abundance", "musique", "--data", musique, "--out", tmp_path / "s", "--share", "0.3",
               "--shuffles", "1", "--evidence", "kept")  # fmt: skip
    assert done.exit_code == 0, done.output
    runs = _runs(tmp_path / "s")
    part, full = (
        runs[name]["2hop__1_2"]
        for name in ("30 % of the triples, shuffle 1", "full loop")
    )
    assert set(part["retrieved"]) <= set(full["retrieved"])
    assert _manifest(tmp_path / "s", "full loop")["settings"]["layout"] == "evidence"


def test_roles_are_swapped_pair_by_pair_with_one_extractor(
    cli: Cli, musique: Path, tmp_path: Path, scripted_llm: Any
) -> None:
    scripted_llm.script({"reply": "Answer: Visby", "repeat": True})
    study = ["study", "roles", "musique", "--data", musique, "--out", tmp_path / "s", "--planner", "offline",
             "--answerer", "offline", "--answerer", scripted_llm.spec]  # fmt: skip
    done = cli(*study)
    assert done.exit_code == 0, done.output
    names = list(_runs(tmp_path / "s"))
    assert len(names) == 2
    assert {
        _manifest(tmp_path / "s", name)["roles"]["extractor"] for name in names
    } == {"offline"}
    assert "| planner / answerer | offline | vllm:" in done.stdout
    assert "planner" in (tmp_path / "s" / "f1.svg").read_text()
    asked = len(scripted_llm.requests())
    assert asked == 2
    cli(*study)
    assert len(scripted_llm.requests()) == asked


def test_a_prompt_that_two_runs_share_is_sent_once(
    cli: Cli, musique: Path, tmp_path: Path, scripted_llm: Any
) -> None:
    scripted_llm.script({"reply": "Answer: Visby", "repeat": True})
    done = cli("study", "oracles", "jsonl", "--data", _plain(tmp_path), "--out", tmp_path / "s", "--answerer",
               scripted_llm.spec, "--extractor", "offline")  # fmt: skip
    assert done.exit_code == 0, done.output
    # own roles and the oracle retriever find the one passage alike; oracle answerers ask no model
    assert len(scripted_llm.requests()) == 1


def _plain(tmp_path: Path) -> Path:
    contexts = [{"id": "ida", "title": "Ida Falk", "text": PARAGRAPHS[1][1]}]
    question = {"id": "q", "question": "Where was Ida Falk born?", "answers": ["Visby"], "supporting_ids": ["ida"],
                "contexts": contexts}  # fmt: skip
    path = tmp_path / "plain.jsonl"
    path.write_text(json.dumps(question) + "\n")
    return path


def test_a_sweep_crosses_hops_with_k(cli: Cli, musique: Path, tmp_path: Path) -> None:
    done = cli("study", "sweep", "musique", "--data", musique, "--out", tmp_path / "s", "--max-hops", "1", "--max-hops",
               "2", "--k", "1", "--k", "2")  # fmt: skip
    assert done.exit_code == 0, done.output
    runs = _runs(tmp_path / "s")
    assert [len(row["retrieved"]) for row in runs["1 hops, k 2"].values()] == [2, 2]
    assert _manifest(tmp_path / "s", "2 hops, k 1")["variant"] == {
        "max_hops": 2,
        "k": 1,
    }
    assert "| hops / k | 1 | 2 |" in done.stdout
    assert (tmp_path / "s" / "all_recall.svg").exists()


def test_whether_the_graph_pays_is_answered_over_an_index_that_the_study_makes(
    cli: Cli, musique: Path, tmp_path: Path
) -> None:
    out, shown = tmp_path / "s", ("--retriever", "bm25", "--retriever", "ppr")
    done = cli(
        "study", "graph-pays", "musique", "--questions", musique, "--out", out, *shown
    )
    assert done.exit_code == 0, done.output
    assert list(_runs(out)) == ["bm25", "ppr"]
    assert _manifest(out, "ppr")["roles"]["retriever"] == "ppr"
    assert _manifest(out, "ppr")["knowledge_graph"]
    assert "5 passages: index" in done.stderr
    head, _, bm25, ppr, _, verdict = done.stdout.splitlines()
    assert head.startswith(
        "| retriever | graph | n | squad_f1 | f1 | recall@5 | all_recall | hops | s | squad_f1 − best without |"
    )
    assert (
        bm25.startswith("| bm25 | no | 2 |"),
        ppr.startswith("| ppr | yes | 2 |"),
    ) == (True, True)
    assert verdict.startswith("No, not over these 2 questions: ppr")
    again = cli(
        "study", "graph-pays", "musique", "--questions", musique, "--out", out, *shown
    )
    assert again.stdout == done.stdout


def test_whether_the_graph_pays_takes_an_index_that_has_one(
    cli: Cli, musique: Path, tmp_path: Path
) -> None:
    index = tmp_path / "own.index"
    PassageIndex.create(index).add(
        [Passage(title, text, title) for title, text in PARAGRAPHS]
    )
    asked = (
        "study",
        "graph-pays",
        "musique",
        "--questions",
        musique,
        "--index",
        index,
        "--out",
        tmp_path / "s",
    )
    none = cli(*asked, "--retriever", "bm25", "--retriever", "ppr")
    assert (none.exit_code, "ras-agent kg build" in none.stderr) == (1, True)
    build_graph(index)
    assert cli(*asked, "--retriever", "bm25", "--retriever", "ppr").exit_code == 0
    assert not (tmp_path / "s" / "index").exists()


def test_tables_say_how_many_questions_lack_a_gold_passage(
    cli: Cli, musique: Path, tmp_path: Path
) -> None:
    with closing(PassageIndex.create(tmp_path / "index")) as index:
        index.add([Passage("Visby", PARAGRAPHS[2][1], "Visby")])
    command = [
        "arena",
        "musique",
        "--data",
        musique,
        "--retriever",
        "bm25",
        "--out",
        tmp_path / "s",
    ]
    done = cli(*command, "--index", tmp_path / "index")
    assert done.exit_code == 0, done.output
    told = "Note: of 2 questions, 2 have a gold passage that is not in the index: no search finds all of theirs.\n"
    assert (tmp_path / "s/musique/tables.md").read_text("utf-8").endswith(told)
    assert told in done.stdout


def test_extractors_are_compared_with_gold_triples_and_tried_in_the_loop(
    cli: Cli, musique: Path, tmp_path: Path
) -> None:
    gold = tmp_path / "gold.jsonl"
    texts = [{"text": "Ida Falk was born in Visby.", "triples": [["Ida Falk", "was born in", "Visby"]]},
             {"text": "Lund is a city.", "triples": [["Lund", "country", "Sweden"]]}]  # fmt: skip
    gold.write_text("".join(json.dumps(text) + "\n" for text in texts))
    done = cli(
        "study",
        "extractors",
        "musique",
        "--data",
        musique,
        "--gold",
        gold,
        "--out",
        tmp_path / "s",
    )
    assert done.exit_code == 0, done.output
    runs = _runs(tmp_path / "s")
    assert list(runs) == ["offline on gold", "offline in the loop"]
    assert runs["offline on gold"]["1"]["scores"]["triple_f1"] == 1.0
    assert runs["offline on gold"]["2"]["scores"]["triple_ends_f1"] == 0.0
    assert _manifest(tmp_path / "s", "offline on gold")["roles"] == {
        "extractor": "offline"
    }
    assert "tokens/s read" in done.stdout
    alone = cli(
        "study",
        "extractors",
        "--gold",
        gold,
        "--gold-limit",
        "1",
        "--out",
        tmp_path / "alone",
    )
    assert list(_runs(tmp_path / "alone")["offline on gold"]) == ["1"]
    assert "In the loop" not in alone.stdout


def test_an_interrupted_study_is_finished(
    cli: Cli, musique: Path, tmp_path: Path
) -> None:
    study = [
        "study",
        "ablations",
        "musique",
        "--data",
        musique,
        "--out",
        tmp_path / "s",
    ]
    whole = cli(*study).stdout
    results = tmp_path / "s" / "runs" / "no-planning" / "results.jsonl"
    lines = results.read_text("utf-8").splitlines(keepends=True)
    results.write_text(lines[0] + lines[1][:30], "utf-8")
    kept = (tmp_path / "s" / "runs" / "full-loop" / "results.jsonl").read_bytes()
    again = cli(*study)
    assert again.stdout == whole
    assert "1 of 2 are done" in again.stderr
    assert (
        tmp_path / "s" / "runs" / "full-loop" / "results.jsonl"
    ).read_bytes() == kept


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ["abundance", "--share", "1.5"],
            "shares of the triples must be above 0 and at most 1",
        ),
        (["ablations", "--k", "3"], "limits.k: 5 there, 3 here"),
    ],
)
def test_wrong_choices_are_reported_in_one_line(
    cli: Cli, musique: Path, tmp_path: Path, arguments: list[str], message: str
) -> None:
    if message.startswith("limits"):
        cli("study", "ablations", "musique", "--data", musique, "--out", tmp_path / "s")
    done = cli(
        "study",
        arguments[0],
        "musique",
        "--data",
        musique,
        "--out",
        tmp_path / "s",
        *arguments[1:],
    )
    assert (done.exit_code, message in done.stderr) == (1, True), done.output


def test_a_study_without_texts_or_questions_is_reported(
    cli: Cli, tmp_path: Path
) -> None:
    assert "give --gold" in cli("study", "extractors", "--out", tmp_path / "s").stderr
    assert (
        "Missing argument 'benchmark'"
        in cli("study", "roles", "--out", tmp_path / "s").stderr
    )
    assert (
        "Missing option '--data'"
        in cli("study", "roles", "jsonl", "--out", tmp_path / "s").stderr
    )


def test_an_unknown_study_is_reported_with_those_like_it(cli: Cli) -> None:
    done = cli("study", "ablation")
    assert (done.exit_code, "Did you mean 'ablations'?" in done.stderr) == (2, True), (
        done.output
    )


def test_each_study_has_the_options_that_it_varies_and_no_other_s(cli: Cli) -> None:
    varied = {
        "ablations": set(), "abundance": {"--share", "--shuffles", "--order", "--evidence"},
        "extractors": {"--gold", "--gold-limit"}, "oracles": set(), "roles": set(), "sweep": set(),
    }  # fmt: skip
    every = set().union(*varied.values())
    for name, own in varied.items():
        shown = cli("study", name, "--help-all").stdout
        assert {flag for flag in every if f" {flag} " in shown} == own, name


def test_no_arm_of_the_ablation_of_triples_sees_both_triples_and_passages(
    cli: Cli, musique: Path, tmp_path: Path, scripted_llm: Any
) -> None:
    scripted_llm.script(
        {"when": "You steer the research", "reply": "[SUFFICIENT]", "repeat": True},
        {"when": "You answer questions", "reply": "Answer: Visby [1]", "repeat": True},
    )
    done = cli("study", "ablations", "musique", "--data", musique, "--limit", 1, "--out", tmp_path / "s",
               "--llm", scripted_llm.spec, "--extractor", "offline")  # fmt: skip
    assert done.exit_code == 0, done.output
    prompts = [request["messages"] for request in scripted_llm.requests()]
    last = [turns[-1]["content"] for turns in prompts]
    asked = {
        role: [
            text
            for turns, text in zip(prompts, last, strict=True)
            if turns[0]["content"].startswith(begins)
        ]
        for role, begins in (("planner", "You steer"), ("answerer", "You answer"))
    }
    for texts in asked.values():
        triples = [
            text for text in texts if "Retrieved Graph Information:\n<facts>" in text
        ]
        raw = [text for text in texts if "Retrieved Text:\n<passage>" in text]
        assert (len(triples) > 0, len(raw) > 0) == (True, True)
        assert not any("<passage>" in text for text in triples)
        assert not any("<facts>" in text for text in raw)
