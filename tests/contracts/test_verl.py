"""verl itself reads the rows that are exported to it: questions to train on (Search-R1's form), and calls for SFT."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("verl")
from omegaconf import OmegaConf
from verl.utils.dataset.multiturn_sft_dataset import MultiTurnSFTDataset
from verl.utils.dataset.rl_dataset import RLHFDataset, collate_fn

from ras_agent.eval.formats import Exported, format_to_write
from ras_agent.eval.formats.calls import RoleCall
from ras_agent.eval.run.result import Result

TEMPLATE = (
    "{% for t in tools or [] %}<tool>{{ t.function.name }}</tool>{% endfor %}"
    "{% for m in messages %}<{{ m.role }}>{{ m.content }}"
    "{% for c in m.tool_calls or [] %}<call>{{ c.function.name }}</call>{% endfor %}<eos>{% endfor %}"
    "{% if add_generation_prompt %}<assistant>{% endif %}"
)
SEARCH = {
    "type": "function",
    "function": {"name": "search", "description": "Search.", "parameters": {}},
}


@pytest.fixture
def tokenizer() -> Any:
    """A tokenizer with a token for each byte."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers
    from transformers import PreTrainedTokenizerFast

    alphabet = {
        letter: place
        for place, letter in enumerate(sorted(pre_tokenizers.ByteLevel.alphabet()), 2)
    }
    letters = Tokenizer(models.BPE({"<pad>": 0, "<eos>": 1, **alphabet}, []))
    letters.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    letters.decoder = decoders.ByteLevel()
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=letters, pad_token="<pad>", eos_token="<eos>"
    )
    tokenizer.chat_template = TEMPLATE
    return tokenizer


@pytest.fixture
def written(tmp_path: Path) -> Callable[..., str]:
    """`written(results=...)` or `written(calls=...)`: the file of the export."""

    def write(**given: Any) -> str:
        run = Exported({"name": "run", "benchmark": "hotpotqa"}, **given)
        (path,) = format_to_write("verl", calls="calls" in given)(
            run, tmp_path / "rows.parquet"
        )
        return str(path)

    return write


def test_questions_are_rows_of_its_reinforcement_learning(
    written: Callable[..., str], tokenizer: Any, tmp_path: Path
) -> None:
    results = (
        Result("q 1", "Where was Bell born?", ("Edinburgh", "Auld Reekie"), ("bell",)),
        Result("q2", "Who?", ("Orr",), ("Orr, of Leith",), by_title=True),
    )
    config = OmegaConf.create(
        {"cache_dir": str(tmp_path), "filter_overlong_prompts_workers": None}
    )
    data = RLHFDataset(written(results=results), tokenizer, config)
    first, second = batch = [data[place] for place in range(len(data))]
    assert first["raw_prompt"] == [{"role": "user", "content": "Where was Bell born?"}]
    # the values that its reward manager hands to a reward function: compute_score(data_source, _, ground_truth, extra_info)
    assert (first["data_source"], first["reward_model"]["ground_truth"]["target"]) == (
        "hotpotqa",
        ["Edinburgh", "Auld Reekie"],
    )
    assert (
        second["index"],
        second["extra_info"]["supporting"],
        second["extra_info"]["by_title"],
    ) == (
        1,
        ["Orr, of Leith"],
        True,
    )
    assert collate_fn(batch)["data_source"].tolist() == ["hotpotqa", "hotpotqa"]


def test_calls_are_conversations_whose_replies_are_trained(
    written: Callable[..., str], tokenizer: Any
) -> None:
    prompt = (
        {"role": "system", "content": "Plan."},
        {"role": "user", "content": "Bell?"},
    )
    called = {
        "id": "c1",
        "type": "function",
        "function": {"name": "search", "arguments": {"query": "Bell"}},
    }
    calls = (
        RoleCall("q", "Bell?", "planner", 1, "m", prompt, {"role": "assistant", "content": "[SUFFICIENT]"}),
        RoleCall("r", "Bell?", "planner", 1, "m", prompt,
                 {"role": "assistant", "content": "I look.", "tool_calls": [called]}, tools=(SEARCH,)),
    )  # fmt: skip
    data = MultiTurnSFTDataset(
        written(calls=calls), tokenizer, {"ignore_input_ids_mismatch": True}
    )
    trained = [
        tokenizer.decode(row["input_ids"][row["loss_mask"].bool()])
        for row in (data[place] for place in range(2))
    ]
    assert trained == ["[SUFFICIENT]<eos>", "I look.<call>search</call><eos>"]
    assert "<tool>search</tool>" in tokenizer.decode(data[1]["input_ids"])
