"""The files that `ras-agent export` writes, read by the packages that it is written for, each where it is installed.

`make contracts` makes the environments: RAGAS goes with LangChain only below 1.
"""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from ras_agent.eval.formats import Exported, format_to_write
from ras_agent.eval.formats.calls import RoleCall
from ras_agent.eval.metrics import recall_at, reciprocal_rank
from ras_agent.eval.metrics.ranking import ndcg_at
from ras_agent.eval.run.result import Result

TRACE = {
    "passages": {
        "bell": {"id": "bell", "text": "Bell was born in Edinburgh."},
        "x": {"id": "x", "text": "Other."},
    }
}
RESULTS = (
    Result(
        "q 1", "Where?", ("Edinburgh", "Auld Reekie"), ("bell",), answer="Edinburgh", scores={"f1": 1.0},
        retrieved=("x", "bell"), usage={"by_model": {"m": {"input_tokens": 7, "output_tokens": 2}}}, trace=TRACE,
    ),
    Result("q2", "Who?", ("Orr",), ("a b", "c%d"), answer="Bell", scores={"f1": 0.0}, retrieved=("a b",), trace=TRACE),
)  # fmt: skip
MANIFEST = {
    "name": "my run",
    "benchmark": "jsonl",
    "roles": {"answerer": "m"},
    "started": "2026-11-26T00:00:00+00:00",
}
TEMPLATE = (
    "{% for m in messages %}<{{ m.role }}>{{ m.content }}<eos>{% endfor %}"
    "{% if add_generation_prompt %}<assistant>{% endif %}"
)


def _call(id: str, prompt: str, reply: str, rejected: str = "") -> RoleCall:
    said = {"role": "assistant", "content": rejected} if rejected else None
    messages = (
        {"role": "system", "content": "Plan."},
        {"role": "user", "content": prompt},
    )
    answer = {"role": "assistant", "content": reply}
    return RoleCall(
        id,
        "Where?",
        "planner",
        1,
        "m",
        messages,
        answer,
        scores={"f1": 1.0},
        rejected=said,
    )


def _written(name: str, path: Path, *calls: RoleCall) -> Path:
    run = Exported(MANIFEST, RESULTS, calls)
    return format_to_write(
        name, calls=bool(calls), pairs=any(call.rejected for call in calls)
    )(run, path)[0]


def test_results_are_a_data_frame_of_pandas(tmp_path: Path) -> None:
    pandas = pytest.importorskip("pandas")
    from ras_agent.config.settings import Settings
    from ras_agent.eval.run import RunFolder, load_task

    folder = RunFolder.begin(tmp_path / "run", MANIFEST)
    for result in RESULTS:
        folder.append(result)
    frame = folder.to_pandas()
    assert isinstance(frame, pandas.DataFrame)
    assert list(frame["f1"]) == [1.0, 0.0]
    frame["hops"] = [2.0, float("nan")]
    task = load_task(
        "jsonl",
        frame[["id", "question", "answers", "hops"]],
        Settings(),
        corpus=_corpus(tmp_path),
    )
    assert [(one.answers, one.metadata.get("hops")) for one in task.questions] == [
        (("Edinburgh", "Auld Reekie"), 2),
        (("Orr",), None),
    ]


def _corpus(folder: Path) -> Path:
    path = folder / "corpus.jsonl"
    path.write_text(
        json.dumps({"id": "bell", "text": "Bell was born in Edinburgh."}) + "\n"
    )
    return path


def test_ragas_reads_the_rows(tmp_path: Path) -> None:
    ragas = pytest.importorskip("ragas")
    data = ragas.EvaluationDataset.from_jsonl(
        _written("ragas", tmp_path / "rows.jsonl")
    )
    first = data[0]
    assert (first.user_input, first.response, first.reference) == (
        "Where?",
        "Edinburgh",
        "Edinburgh",
    )
    assert first.retrieved_contexts == ["Bell was born in Edinburgh.", "Other."]
    assert (first.retrieved_context_ids, first.reference_context_ids) == (
        ["x", "bell"],
        ["bell"],
    )


def test_pytrec_eval_scores_a_run_as_we_do(tmp_path: Path) -> None:
    pytrec_eval = pytest.importorskip("pytrec_eval")
    run = _written("trec", tmp_path / "run.trec")
    with run.open() as lines, Path(f"{run}.qrels").open() as judged:
        evaluator = pytrec_eval.RelevanceEvaluator(
            pytrec_eval.parse_qrel(judged), {"recall.5", "recip_rank", "ndcg_cut.10"}
        )
        scores = evaluator.evaluate(pytrec_eval.parse_run(lines))
    for name, result in (("q%201", RESULTS[0]), ("q2", RESULTS[1])):
        gold = dict.fromkeys(result.supporting, 1)
        assert scores[name]["recall_5"] == pytest.approx(
            recall_at(5, result.retrieved, gold)
        )
        assert scores[name]["recip_rank"] == pytest.approx(
            reciprocal_rank(result.retrieved, gold)
        )
        assert scores[name]["ndcg_cut_10"] == pytest.approx(
            ndcg_at(10, result.retrieved, gold)
        )


def test_inspect_reads_the_log(tmp_path: Path) -> None:
    log = pytest.importorskip("inspect_ai.log")
    read = log.read_eval_log(str(_written("inspect", tmp_path / "log.json")))
    assert (read.status, read.eval.task, read.eval.dataset.samples) == (
        "success",
        "ras-agent/jsonl",
        2,
    )
    assert read.results.scores[0].metrics["mean"].value == 0.5
    assert (read.samples[0].scores["f1"].value, read.samples[0].output.completion) == (
        1.0,
        "Edinburgh",
    )
    assert (
        read.samples[0].model_usage["m"].total_tokens
        == read.stats.model_usage["m"].total_tokens
        == 9
    )


def test_the_example_runs_under_inspect(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, scripted_llm: Any
) -> None:
    inspect_ai = pytest.importorskip("inspect_ai")
    pytest.importorskip("langchain_openai")
    from examples.inspect_task import multi_hop

    replies = (
        "[SUBQ] x",
        "[SUBQ] Where was Alfred Nobel born?",
        "[SUFFICIENT]",
        "Answer: Stockholm [1]",
    )
    scripted_llm.script(*({"reply": reply} for reply in replies))
    monkeypatch.setenv("LOOPBACK_API_KEY", "none")
    monkeypatch.setenv("LOOPBACK_BASE_URL", scripted_llm.base_url)
    (log,) = inspect_ai.eval(
        multi_hop(limit=1),
        model="openai-api/loopback/m",
        log_dir=str(tmp_path),
        display="none",
    )
    (sample,) = log.samples
    assert (log.status, sample.output.completion, sample.scores["em"].value) == (
        "success",
        "Stockholm",
        1.0,
    )
    assert sum(event.event == "model" for event in sample.events) == 4
    assert sample.model_usage["openai-api/loopback/m"].total_tokens > 0


def test_harbor_finds_trajectories_valid(tmp_path: Path) -> None:
    validator = pytest.importorskip(
        "harbor.utils.trajectory_validator"
    ).TrajectoryValidator()
    search = {
        "id": "c1",
        "type": "function",
        "function": {"name": "search", "arguments": {"query": "Bell"}},
    }
    said = {
        "role": "assistant",
        "content": "I look.",
        "reasoning_content": "Bell?",
        "tool_calls": [search],
    }
    first = _call("q", "Where?", "")
    first = replace(
        first,
        reply=said,
        usage={"input_tokens": 9, "output_tokens": 3, "cached_tokens": 0},
    )
    result = {
        "role": "tool",
        "tool_call_id": "c1",
        "content": "[1] Bell was born in Edinburgh.",
    }
    second = replace(
        _call("q", "Where?", "Edinburgh [1]"),
        prompt=(*first.prompt, said, result),
        hop=2,
    )
    valid = validator.validate(_written("atif", tmp_path / "atif", first, second))
    assert (valid, validator.errors) == (True, [])


@pytest.fixture
def tiny(tmp_path: Path) -> tuple[Any, Any]:
    """A model and tokenizer with the letters of the rows, from nothing."""
    transformers, tokenizers = (
        pytest.importorskip("transformers"),
        pytest.importorskip("tokenizers"),
    )
    pytest.importorskip("trl")
    letters = tokenizers.Tokenizer(tokenizers.models.BPE())
    letters.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
    letters.decoder = tokenizers.decoders.ByteLevel()
    alphabet = tokenizers.pre_tokenizers.ByteLevel.alphabet()
    trainer = tokenizers.trainers.BpeTrainer(
        vocab_size=300, special_tokens=["<pad>", "<eos>"], initial_alphabet=alphabet
    )
    letters.train_from_iterator(["Plan."], trainer)
    tokenizer = transformers.PreTrainedTokenizerFast(
        tokenizer_object=letters, pad_token="<pad>", eos_token="<eos>"
    )
    tokenizer.chat_template = TEMPLATE
    sizes = {
        "hidden_size": 64,
        "intermediate_size": 128,
        "num_hidden_layers": 2,
        "num_attention_heads": 2,
    }
    config = transformers.LlamaConfig(vocab_size=len(tokenizer), **sizes)
    transformers.set_seed(0)
    transformers.LlamaForCausalLM(config).save_pretrained(tmp_path / "tiny")
    return transformers.LlamaForCausalLM.from_pretrained(tmp_path / "tiny"), tokenizer


@pytest.mark.timeout(900)
def test_trl_trains_on_the_replies_alone(tmp_path: Path, tiny: tuple[Any, Any]) -> None:
    datasets, trl = pytest.importorskip("datasets"), pytest.importorskip("trl")

    (model, tokenizer), said = (
        tiny,
        {"Ann?": "[SUBQ] Where was Ann born?", "Bob?": "[SUFFICIENT]"},
    )
    file = _written(
        "trl",
        tmp_path / "sft.jsonl",
        *(_call(name, name, reply) for name, reply in said.items()),
    )
    rows = datasets.load_dataset("json", data_files=str(file), split="train")
    settings = {
        "use_cpu": True,
        "report_to": [],
        "save_strategy": "no",
        "per_device_train_batch_size": 2,
    }
    arguments = trl.SFTConfig(
        str(tmp_path / "out"),
        max_steps=30,
        learning_rate=1e-2,
        lr_scheduler_type="constant",
        **settings,
    )
    trainer = trl.SFTTrainer(
        model, arguments, train_dataset=rows, processing_class=tokenizer
    )
    labels = next(iter(trainer.get_train_dataloader()))["labels"]
    assert sorted(tokenizer.decode(row[row != -100]) for row in labels) == sorted(
        f"{reply}<eos>" for reply in said.values()
    )
    trainer.train()
    losses = [entry["loss"] for entry in trainer.state.log_history if "loss" in entry]
    assert losses[-1] < losses[0] / 2


def test_trl_trains_on_pairs(tmp_path: Path, tiny: tuple[Any, Any]) -> None:
    datasets, trl = pytest.importorskip("datasets"), pytest.importorskip("trl")

    model, tokenizer = tiny
    file = _written(
        "trl",
        tmp_path / "dpo.jsonl",
        _call("q", "Ann?", "[SUBQ] good", rejected="[SUBQ] bad"),
    )
    rows = datasets.load_dataset("json", data_files=str(file), split="train")
    settings = {
        "use_cpu": True,
        "report_to": [],
        "save_strategy": "no",
        "per_device_train_batch_size": 1,
    }
    arguments = trl.DPOConfig(str(tmp_path / "out"), max_steps=3, **settings)
    trainer = trl.DPOTrainer(
        model, args=arguments, train_dataset=rows, processing_class=tokenizer
    )
    assert trainer.train().training_loss < 0.7  # log 2 where neither is preferred


def test_datasets_reads_every_file_of_rows(tmp_path: Path) -> None:
    datasets = pytest.importorskip("datasets")
    pytest.importorskip("pyarrow")
    call = _call("q", "Ann?", "[SUFFICIENT]")
    for name, ending in (("trl", "jsonl"), ("prime", "jsonl"), ("verl", "parquet")):
        file = _written(name, tmp_path / f"{name}.{ending}", call)
        kind = "json" if ending == "jsonl" else "parquet"
        (row,) = datasets.load_dataset(kind, data_files=str(file), split="train")
        assert (row["question"], row["hop"]) == ("Where?", 1)
    trajectory = json.loads(_written("atif", tmp_path / "atif", call).read_text())
    assert [step["source"] for step in trajectory["steps"]] == [
        "system",
        "user",
        "agent",
    ]
