"""GraphLLM: soft tokens in front of the text, losses only on targets, batches, and the saved files."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ras_agent.contracts.errors import SettingsError, WeightsError
from ras_agent.prompts import Turn
from tests.messages import says

torch = pytest.importorskip("torch")

PROMPT = (
    Turn("system", "You plan."),
    Turn("user", "Question: Which river flows through the city?"),
)
SHORT = (Turn("user", "Where?"),)
BELL = ("Alexander Graham Bell", "was born in", "Edinburgh")
LEITH = ("Water of Leith", "flows through", "Edinburgh")


def test_graph_tokens_stand_behind_the_beginning_of_the_text(
    graph_llm: Callable[..., Any],
) -> None:
    model = graph_llm(graph_tokens=3)
    words = model.prompt_embeddings(PROMPT, None)
    with_graph = model.prompt_embeddings(PROMPT, model.vectors.of_facts([BELL]))
    assert with_graph.shape == (len(words) + 3, 64)
    assert torch.equal(with_graph[0], words[0])  # <s>
    assert torch.equal(with_graph[4:], words[1:])


def test_the_graph_changes_its_tokens_and_trained_tokens_know_no_graph(
    graph_llm: Callable[..., Any],
) -> None:
    for config, same in (({}, False), ({"encoder": None}, True)):
        model = graph_llm(**config)
        one, other = (
            model.prompt_embeddings(PROMPT, model.vectors.of_facts([fact]))
            for fact in (BELL, LEITH)
        )
        assert torch.equal(one, other) is same


def test_a_sub_graph_counts_as_much_as_another_however_many_facts_it_has(
    graph_llm: Callable[..., Any],
) -> None:
    model = graph_llm()
    of_steps = model.vectors.of_steps
    first, second = of_steps([[BELL]]), of_steps([[LEITH, ("Leith", "is", "a port")]])
    from ras_agent.contracts.graph_batch import GraphBatch
    from ras_agent.tools.graph_tokens.encoders import pool

    def pooled(graph: Any) -> Any:
        batch = GraphBatch.of([graph], 384)
        return pool(model.graph_tokens.encoder(batch), batch)

    both = of_steps([[BELL], [LEITH, ("Leith", "is", "a port")]])
    assert torch.allclose(pooled(both), (pooled(first) + pooled(second)) / 2, atol=1e-5)


def test_a_graphs_token_is_the_projection_of_its_pooled_states(
    graph_llm: Callable[..., Any],
) -> None:
    from ras_agent.contracts.graph_batch import GraphBatch
    from ras_agent.tools.graph_tokens.encoders import pool

    model = graph_llm(graph_tokens=2)
    graph = model.vectors.of_facts([BELL, LEITH])
    batch = GraphBatch.of([graph], 384)
    state = pool(model.graph_tokens.encoder(batch), batch)
    wide, _, narrow = model.graph_tokens.projector
    hidden = torch.nn.functional.gelu(state @ wide.weight.T + wide.bias)
    expected = (hidden @ narrow.weight.T + narrow.bias).reshape(1, 2, 64)
    assert torch.allclose(model.graph_tokens([graph]), expected, atol=1e-5)


def test_the_loss_is_the_mean_cross_entropy_of_the_targets_tokens(
    graph_llm: Callable[..., Any],
) -> None:
    model = graph_llm()
    graph, target = model.vectors.of_facts([BELL]), "[SUBQ] Where?"
    loss = model([PROMPT], [graph], [target])
    wanted = [
        *model.tokenizer(target, add_special_tokens=False)["input_ids"],
        model.tokenizer.eos_token_id,
    ]
    prompt = model.prompt_embeddings(PROMPT, graph)
    words = model.language_model.get_input_embeddings()(torch.tensor(wanted))
    logits = model.language_model(
        inputs_embeds=torch.cat([prompt, words]).unsqueeze(0)
    ).logits[0]
    spelled = torch.nn.functional.cross_entropy(
        logits[len(prompt) - 1 : -1], torch.tensor(wanted)
    )
    assert torch.allclose(loss, spelled, atol=1e-5)


def test_rows_are_read_without_padding_and_give_what_a_padded_batch_gives(
    graph_llm: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    model = graph_llm()
    graphs = [model.vectors.of_facts([BELL]), model.vectors.of_facts([LEITH])]
    padded = []
    read = type(model)._target_logits

    def watched(self: Any, vectors: Any, labels: Any) -> Any:
        padded.append((vectors, labels))
        return read(self, vectors, labels)

    monkeypatch.setattr(type(model), "_target_logits", watched)
    logits, tokens = model.target_logits(
        [PROMPT, SHORT], graphs, ["[SUFFICIENT]", "[SUBQ] Where?"]
    )
    assert [len(vectors) for vectors, _ in padded] == [1, 1]
    rows = [vectors[0] for vectors, _ in padded]
    labels = [of_row[0] for _, of_row in padded]
    together, same_tokens = read(model, rows, labels)
    assert torch.equal(tokens, same_tokens)
    assert torch.allclose(logits, together, atol=1e-5)  # sums in another order


def test_a_batch_gives_what_each_prompt_gives_alone(
    graph_llm: Callable[..., Any],
) -> None:
    model = graph_llm()
    graphs = [model.vectors.of_facts([BELL]), model.vectors.of_facts([]), None]
    prompts = [PROMPT, SHORT, PROMPT]
    together = model.generate(prompts, graphs, 12)
    assert together == [
        model.generate([prompt], [graph], 12)[0]
        for prompt, graph in zip(prompts, graphs, strict=True)
    ]
    loss = model(prompts[:2], graphs[:2], ["Edinburgh", "Leith"])
    alone = [
        model(prompts[:1], graphs[:1], ["Edinburgh"]),
        model(prompts[1:2], graphs[1:2], ["Leith"]),
    ]
    sizes = [
        len(model.tokenizer(text)["input_ids"]) + 1 for text in ("Edinburgh", "Leith")
    ]
    mean = sum(one * size for one, size in zip(alone, sizes, strict=True)) / sum(sizes)
    assert torch.allclose(loss, mean, atol=1e-5)


def test_a_reply_as_long_as_it_may_be_is_truncated(
    graph_llm: Callable[..., Any],
) -> None:
    model = graph_llm()
    (made,) = model.generate([SHORT], [None], 3)
    assert (made.output_tokens, made.truncated) == (3, True)
    assert made.input_tokens == len(model.prompt_tokens(SHORT))


def test_no_prompts_have_no_replies(graph_llm: Callable[..., Any]) -> None:
    assert graph_llm().generate([], []) == []


def test_the_beginning_of_a_prompt_that_is_too_long_is_cut_off(
    graph_llm: Callable[..., Any],
) -> None:
    long = (Turn("user", "telephone " * 200 + "Where?"),)
    whole, cut = (
        graph_llm().prompt_tokens(long),
        graph_llm(text_tokens=20).prompt_tokens(long),
    )
    assert len(cut) == 20
    assert cut == [whole[0], *whole[-19:]]


def test_a_model_without_a_chat_template_reads_its_turns_as_paragraphs(
    graph_llm: Callable[..., Any],
) -> None:
    model = graph_llm()
    model.tokenizer.chat_template = None
    assert model.tokenizer.decode(model.prompt_tokens(PROMPT)) == (
        "<s>You plan.\n\nQuestion: Which river flows through the city?\n"
    )


def test_a_template_without_a_system_turn_has_its_text_in_the_first_turn(
    graph_llm: Callable[..., Any],
) -> None:
    model = graph_llm()
    model.tokenizer.chat_template = (
        "{% for message in messages %}{% if message['role'] == 'system' %}{{ raise_exception('no system') }}{% endif %}"
        "<|{{ message['role'] }}|>{{ message['content'] }}{% endfor %}"
    )
    assert model.tokenizer.decode(model.prompt_tokens(PROMPT)) == (
        "<|user|>You plan.\n\nQuestion: Which river flows through the city?"
    )


@pytest.mark.parametrize("tuning", ["frozen", "lora", "full"])
def test_training_changes_what_the_tuning_says_and_a_saved_model_replies_alike(
    graph_llm: Callable[..., Any], tmp_path: Path, tuning: str
) -> None:
    model = graph_llm(tuning=tuning).train()
    before = {
        name: weight.detach().clone() for name, weight in model.named_parameters()
    }
    optimizer = torch.optim.AdamW(
        [weight for weight in model.parameters() if weight.requires_grad], 3e-3
    )
    graphs = [model.vectors.of_facts([BELL]), model.vectors.of_facts([LEITH])]
    losses = []
    for _ in range(12):
        loss = model(
            [PROMPT, PROMPT], graphs, ["[SUBQ] Where was Bell born?", "[SUFFICIENT]"]
        )
        losses.append(float(loss.detach()))
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
    assert losses[-1] < losses[0]
    changed = {
        name
        for name, weight in model.named_parameters()
        if not torch.equal(weight, before[name])
    }
    of_text = {name for name in changed if name.startswith("language_model")}
    assert any(name.startswith("graph_tokens.encoder") for name in changed)
    if tuning == "frozen":
        assert of_text == set()
    elif tuning == "lora":
        assert of_text
        assert all("lora_" in name for name in of_text)
    else:
        assert {
            name for name in before if name.startswith("language_model")
        } - of_text <= {"language_model.lm_head.weight"}
    model.eval()
    model.save(tmp_path / "model")
    again = type(model).load(tmp_path / "model")
    assert again.generate([PROMPT, SHORT], graphs, 12) == model.generate(
        [PROMPT, SHORT], graphs, 12
    )
    assert not list((tmp_path / "model").rglob("*.bin"))
    assert not list((tmp_path / "model").rglob("*.pt*"))


def test_a_folder_without_a_model_says_what_makes_one(tmp_path: Path) -> None:
    from ras_agent.tools.graph_tokens.graph_llm import GraphLLM

    with pytest.raises(
        WeightsError, match=says("no GraphLLM", "python -m ras_agent.train.graphllm")
    ):
        GraphLLM.load(tmp_path)
    (tmp_path / "config.json").write_text('{"language_model": "x", "colour": "red"}')
    with pytest.raises(
        WeightsError,
        match=says("config.json", "not a GraphLLM's configuration", "colour"),
    ):
        GraphLLM.load(tmp_path)


def test_weights_of_another_shape_are_refused(
    graph_llm: Callable[..., Any], tmp_path: Path
) -> None:
    graph_llm(graph_tokens=1).save(tmp_path / "one")
    graph_llm(graph_tokens=2).save(tmp_path / "two")
    (tmp_path / "two" / "graph_tokens.safetensors").replace(
        tmp_path / "one" / "graph_tokens.safetensors"
    )
    from ras_agent.tools.graph_tokens.graph_llm import GraphLLM

    with pytest.raises(
        WeightsError,
        match=says("graph_tokens.safetensors", "no weights", "config.json"),
    ):
        GraphLLM.load(tmp_path / "one")
    (tmp_path / "one" / "graph_tokens.safetensors").write_bytes(b"damaged")
    with pytest.raises(
        WeightsError,
        match=says("graph_tokens.safetensors", "no weights", "config.json"),
    ):
        GraphLLM.load(tmp_path / "one")


def test_a_language_model_that_is_not_there_is_named(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    pytest.importorskip("transformers")
    from ras_agent.tools.graph_tokens.graph_llm import load_language_model

    with pytest.raises(WeightsError, match=r"cannot load the language model .*nowhere"):
        load_language_model(str(tmp_path / "nowhere"))


def test_layers_that_are_not_there_cannot_be_adapted(
    graph_llm: Callable[..., Any],
) -> None:
    from ras_agent.tools.graph_tokens.graph_llm import Lora

    with pytest.raises(SettingsError, match=r"name the layers in lora\.targets"):
        graph_llm(tuning="lora", lora=Lora(targets=("nothing_of_this_name",)))
