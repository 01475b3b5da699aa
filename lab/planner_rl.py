"""Trains a planner of under a million weights in the gym: taught by random episodes, then rewarded (lab/planner-rl.md).

    python -m lab.planner_rl teach DATA             # SFT on episodes of the random policy; --seed 1 goes on
    python -m lab.planner_rl reward DATA --seed 0   # GRPO, for each seed
    python -m lab.planner_rl table DATA             # the table and the picture of lab/planner-rl.md
    python -m lab.planner_rl speed DATA             # steps a second by processes, without a model

DATA holds hotpotqa_train/. The first two need TRL: the environment of `make contracts`.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import math
import random
import statistics
import time
from collections.abc import Iterable, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from importlib.resources import files
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from ras_agent import Limits, Passage
from ras_agent.app.sample import sample_passages
from ras_agent.eval.benchmarks import benchmark
from ras_agent.eval.question import Question, context_passage
from ras_agent.gym import GraphSearch, RandomPolicy, Rewards, environment_factory, log_parts, play, row_of
from ras_agent.prompts import ToolCall
from ras_agent.records import Extraction
from ras_agent.text.names import names_in
from ras_agent.text.sentences import sentence_spans
from ras_agent.tools.roles import resolve_extractor

LIMITS = Limits(max_hops=3, k=1)
REWARDS = Rewards(f1=0.0, gold=1.0, form=0.1)
WIDTH, LAYERS, VOCABULARY = 128, 2, 3000
FACTS = 6
ON_A_CORE: dict[str, Any] = {
    "save_strategy": "no",
    "report_to": "none",
    "use_cpu": True,
    "bf16": False,
    "gradient_checkpointing": False,
}
"""What both trainings are told, of SFT and of GRPO"""
STEPS, GROUP, QUESTIONS_A_STEP, TEMPERATURE = 50, 8, 4, 0.6
CHAT_TEMPLATE = (
    "<s>{% for message in messages %}<|{{ message.role }}|>"
    "{% if message.role == 'assistant' %}{% generation %}{{ message.content or '' }}"
    "{% for call in message.tool_calls or [] %}<tool_call>"
    "{% set arguments = call.function.arguments %}"
    '{"name": "{{ call.function.name }}", "arguments": '
    "{{ arguments if arguments is string else arguments | tojson }}}"
    "</tool_call>{% endfor %}</s>{% endgeneration %}"
    "{% else %}{{ message.content or '' }}</s>{% endif %}{% endfor %}"
    "{% if add_generation_prompt %}<|assistant|>{% endif %}"
)
RESPONSE_TEMPLATE = {
    "defaults": {"role": "assistant"},
    "start_anchor": "<|assistant|>",
    "fields": {
        "tool_calls": {
            "open": "<tool_call>",
            "close_pattern": r"</tool_call>\s*",
            "repeats": True,
            "content": "json",
            "transform": {"type": "function", "function": "{content}"},
        },
        "content": {"close_pattern": r"</s>\s*", "content": "text"},
    },
}
WHOLE = (  # pieces of a call that are one token each, so that what is learnt is whom to call with what
    *("<|system|>", "<|user|>", "<|assistant|>", "<|tool|>", "<tool_call>", "</tool_call>"),
    '{"name": "search", "arguments": {"query": "',
    '{"name": "finish", "arguments": {"reason": "',
    '"}}',
    *("(S>", "| P>", "| O>"),
)


# ---- questions and environments


@dataclass(frozen=True)
class Material:
    """What is searched, the questions to train on, and those held out by a hash of their ids."""

    passages: Sequence[Passage]
    train: Sequence[Question]
    held_out: Sequence[Question]


def is_held_out(question: Question) -> bool:
    """Tell whether a question is for evaluation alone: a third of them, by a hash of the id."""
    return hashlib.sha256(question.id.encode()).digest()[0] % 3 == 0


def material(data: Path) -> Material:
    """Return HotpotQA's training questions in DATA and the bundled sample, over all their passages."""
    folder, plain = data / "hotpotqa_train", benchmark("jsonl")
    hard = [_hard_question(json.loads(line)) for line in (folder / "hard100_contexts.jsonl").read_text().splitlines()]
    with_sample = plain.load(str(files("ras_agent.data") / "sample_questions.jsonl"))
    questions = [*with_sample, *plain.load(folder / "questions.jsonl"), *hard]
    passages = [*sample_passages(), *plain.corpus(folder / "corpus.jsonl"), *plain.corpus(hard)]
    return Material(
        passages,
        [question for question in questions if not is_held_out(question)],
        [question for question in questions if is_held_out(question)],
    )


def _hard_question(record: dict[str, Any]) -> Question:
    contexts = tuple(context_passage(title, " ".join(sentences)) for title, sentences in record["context"])
    gold = tuple(dict.fromkeys(fact[0] for fact in record["supporting_facts"]))
    return Question(record["_id"], record["question"], (record["answer"],), gold, True, record["type"], contexts)


class ReadOnce:
    """Extractor that reads each passage by itself and once, and keeps its first facts, so that texts are short."""

    name = "offline, each passage once, its first facts"

    def __init__(self) -> None:
        self._extractor = resolve_extractor("offline")
        self._known: dict[str, Extraction] = {}

    def extract(self, passages: Sequence[Passage], subquery: str = "") -> Extraction:
        for passage in passages:
            if passage.id not in self._known:
                extraction = self._extractor.extract([passage])
                self._known[passage.id] = Extraction(extraction.triples[:FACTS])
        readings = [self._known[passage.id] for passage in passages]
        return Extraction(tuple(triple for reading in readings for triple in reading.triples))


def bare_row(question: Question) -> dict[str, Any]:
    """Return a question's row without the long instruction, which a model of this size has no room for."""
    return {**row_of(question), "prompt": [{"role": "user", "content": ""}]}


def pseudo_questions(material: Material, count: int, seed: int) -> list[Question]:
    """Return sentences of passages as questions, none of a passage that a held-out question needs."""
    gold = {name for question in material.held_out for name in question.supporting}
    texts = [
        passage.text[start:end]
        for passage in material.passages
        if passage.title not in gold and passage.id not in gold
        for start, end in sentence_spans(passage.text)
        if 40 < end - start < 160
    ]
    chosen = random.Random(seed).sample(texts, min(count, len(texts)))
    return [Question(f"pseudo-{number}", text, ()) for number, text in enumerate(chosen)]


class QuestionFirst:
    """Scripted policy for comparison: the question first, then names in it that are no title of what was found."""

    def act(self, environment: GraphSearch) -> ToolCall:
        if not environment.steps:
            return ToolCall("search", {"query": environment.question.question})
        titles = {passage.title for passage in environment.passages}
        queries = {step.subquery for step in environment.steps}
        names = [name for name in names_in(environment.question.question) if name not in titles | queries]
        if not names or not environment.searches_left:
            return ToolCall("finish", {"reason": "enough"})
        return ToolCall("search", {"query": names[-1]})


def baseline(make: Any, questions: Sequence[Question], policies: Iterable[Any]) -> list[float]:
    """Return the share of gold passages that each policy reaches over the questions."""
    shares = []
    for policy in policies:
        environment = make()
        shares.append(statistics.mean(play(environment, policy, bare_row(q))["parts"]["gold"] for q in questions))
    return shares


# ---- the model


def new_tokenizer(texts: Iterable[str]) -> Any:
    """Return a tokenizer of the texts' pieces, in which a word is the same tokens wherever it stands."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
    from transformers import PreTrainedTokenizerFast

    bpe = Tokenizer(models.BPE(byte_fallback=True, unk_token="<unk>"))
    bpe.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.Metaspace(prepend_scheme="always"), pre_tokenizers.Punctuation()]
    )
    bpe.decoder = decoders.Metaspace(prepend_scheme="always")
    special = ["<unk>", "<s>", "</s>", "<pad>"]
    trainer = trainers.BpeTrainer(vocab_size=VOCABULARY, special_tokens=special, show_progress=False)
    bpe.train_from_iterator(texts, trainer)
    new: Any = PreTrainedTokenizerFast
    tokenizer = new(tokenizer_object=bpe, bos_token="<s>", eos_token="</s>", pad_token="<pad>", unk_token="<unk>")
    tokenizer.add_tokens(list(WHOLE))
    tokenizer.chat_template = CHAT_TEMPLATE
    tokenizer.response_template = RESPONSE_TEMPLATE
    return tokenizer


def new_model(tokenizer: Any, seed: int = 0) -> Any:
    """Return a Llama of two layers with random weights, but for one head in each, which are set to copy.

    The head of the first layer looks at the token before; that of the second looks for where the last token stood
    before, and says what followed (an induction head; Olsson et al., 2022). Learning that from nothing takes a model of
    this size longer than all the rest, and every model that anybody would train as a planner can do it.
    """
    import torch
    from transformers import LlamaConfig, LlamaForCausalLM

    torch.manual_seed(seed)
    theta, half = 1e6, WIDTH // 2  # a token's own embedding is in the first half, the token before goes to the second
    config = LlamaConfig(
        vocab_size=len(tokenizer),
        hidden_size=WIDTH,
        intermediate_size=2 * WIDTH,
        num_hidden_layers=LAYERS,
        num_attention_heads=2,
        num_key_value_heads=2,
        attention_bias=True,
        max_position_embeddings=4096,
        rope_parameters={"rope_type": "default", "rope_theta": theta},
        tie_word_embeddings=True,
        **{f"{name}_token_id": getattr(tokenizer, f"{name}_token_id") for name in ("bos", "eos", "pad")},
    )
    model: Any = LlamaForCausalLM(config)
    pairs, size = half // 2, 0.2
    before, copy = (layer.self_attn for layer in model.model.layers)
    with torch.no_grad():
        embeddings = model.model.embed_tokens.weight
        embeddings[:, :half] = torch.randn(len(tokenizer), half) * size
        embeddings[:, half:] *= 0.1
        for pair in range(6):  # the highest frequencies; a query meets the key one place back in phase
            angle = theta ** (-pair / pairs)
            before.q_proj.bias[pair] = 9.0
            before.k_proj.bias[pair], before.k_proj.bias[pair + pairs] = 9 * math.cos(angle), 9 * math.sin(angle)
        for projection in (before.q_proj, before.k_proj):
            projection.weight[:half] *= 0.1
        for head in (before, copy):
            head.v_proj.weight[:half] = torch.eye(half, WIDTH)
            head.o_proj.weight[:, :half] = 0.0
        before.o_proj.weight[half:, :half] = torch.eye(half) * size / math.sqrt(2)
        copy.o_proj.weight[:half, :half] = torch.eye(half) * 4 * size
        match = 2.0 * torch.linalg.qr(torch.randn(half, half))[0][:pairs]
        slow = [*range(pairs // 2, pairs), *range(pairs + pairs // 2, half)]  # the frequencies that turn least
        for projection, columns in ((copy.q_proj, slice(half)), (copy.k_proj, slice(half, WIDTH))):
            projection.weight[:half] = 0.0
            projection.weight[slow, columns] = match
    return model


def taught_rows(make: Any, material: Material, seed: int = 0) -> list[dict[str, Any]]:
    """Return conversations of the random policy: many first turns, which are short, and whole episodes."""
    environment = make()
    rows: list[list[dict[str, Any]]] = []
    sentences = pseudo_questions(material, 5000, seed)
    for number, question in enumerate(sentences):
        environment.reset(question)
        call = RandomPolicy(seed + number).act(environment)
        function = {"name": call.name, "arguments": call.arguments}
        rows.append(
            [
                {"role": "user", "content": f"Question: {question.question}"},
                {"role": "assistant", "content": "", "tool_calls": [{"type": "function", "function": function}]},
            ]
        )
    for number, question in enumerate([*list(material.train) * 4, *sentences[:300]]):
        episode = play(environment, RandomPolicy(seed + number), bare_row(question))
        rows.append([*episode["messages"], {"role": "assistant", "content": "Done."}])
    for message in (message for messages in rows for message in messages):
        for call in message.get("tool_calls", ()):  # `datasets` gives every dictionary of a column the keys of all
            call["function"]["arguments"] = json.dumps(call["function"]["arguments"], ensure_ascii=False)
    return [{"messages": messages} for messages in rows]


def teach(data: Path, out: Path, seed: int = 0) -> None:
    """Teach a model by the random policy's episodes, and keep it in OUT/taught: a new one for seed 0, else that one."""
    from datasets import Dataset  # pyright: ignore[reportMissingImports]
    from trl import SFTConfig, SFTTrainer  # pyright: ignore[reportMissingImports]

    given = material(data)
    make = gym(given)
    rows = taught_rows(make, given, seed)
    texts = [str(message["content"]) for row in rows[-900:] for message in row["messages"]]
    tokenizer = new_tokenizer([*texts, *(passage.text for passage in given.passages)])
    model = new_model(tokenizer)
    if seed:
        from transformers import AutoModelForCausalLM

        tokenizer, model = taught_tokenizer(out), AutoModelForCausalLM.from_pretrained(out / "taught")
    print(f"{len(rows)} conversations, {sum(weight.numel() for weight in model.parameters()):,} weights", flush=True)
    began = time.process_time()
    trainer = SFTTrainer(
        model=model,
        processing_class=tokenizer,
        train_dataset=Dataset.from_list(rows),
        args=SFTConfig(
            output_dir=str(out / "sft"),
            assistant_only_loss=True,
            max_length=1024,
            per_device_train_batch_size=16,
            num_train_epochs=1,
            learning_rate=1e-3,
            lr_scheduler_type="cosine",
            warmup_steps=20,
            train_sampling_strategy="group_by_length",
            logging_steps=20,
            seed=seed,
            **ON_A_CORE,
        ),
    )
    one_thread()
    trainer.train()
    print(f"taught in {time.process_time() - began:.0f} s of one core", flush=True)
    model.save_pretrained(out / "taught")
    tokenizer.save_pretrained(out / "taught")


def taught_tokenizer(out: Path) -> Any:
    """Return the tokenizer in OUT/taught."""
    from transformers import AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(out / "taught")
    tokenizer.chat_template, tokenizer.response_template = CHAT_TEMPLATE, RESPONSE_TEMPLATE
    return tokenizer


def one_thread() -> None:
    """Compute on one core: accelerate has set as many threads as there are, and they wait for each other."""
    import torch

    torch.set_num_threads(1)


def gym(given: Material) -> Any:
    """Return a factory of environments over the material's passages, each passage once."""
    passages = list({passage.id: passage for passage in given.passages}.values())
    return environment_factory(index=passages, extractor=ReadOnce(), rewards=REWARDS, limits=LIMITS)


def reward(data: Path, out: Path, seed: int) -> None:
    """Train the taught model by GRPO on the reward, and write OUT/seed-SEED.jsonl: a line for each evaluation."""
    import torch
    from datasets import Dataset  # pyright: ignore[reportMissingImports]
    from transformers import AutoModelForCausalLM
    from trl import GRPOConfig, GRPOTrainer  # pyright: ignore[reportMissingImports]

    given = material(data)
    torch.manual_seed(seed)
    tokenizer = taught_tokenizer(out)
    rows = [bare_row(question) for question in given.train]
    trainer = GRPOTrainer(
        model=AutoModelForCausalLM.from_pretrained(out / "taught"),
        processing_class=tokenizer,
        train_dataset=Dataset.from_list(rows),
        eval_dataset=Dataset.from_list([bare_row(question) for question in given.held_out]),
        reward_funcs=[log_parts],
        environment_factory=gym(given),
        args=GRPOConfig(
            output_dir=str(out / f"seed-{seed}"),
            max_steps=STEPS,
            per_device_train_batch_size=GROUP * QUESTIONS_A_STEP,
            num_generations=GROUP,
            per_device_eval_batch_size=79,
            num_generations_eval=1,
            learning_rate=4e-4,
            lr_scheduler_type="constant_with_warmup",
            warmup_steps=2,
            max_completion_length=1200,
            generation_kwargs={"max_new_tokens": 60},  # of one turn
            max_tool_calling_iterations=5,
            temperature=TEMPERATURE,
            beta=0.0,
            eval_strategy="steps",
            eval_steps=10,
            eval_on_start=True,
            logging_steps=2,
            seed=seed,
            **ON_A_CORE,
        ),
    )
    one_thread()
    began = time.process_time()
    trainer.train()
    seconds = time.process_time() - began
    lines = [{**line, "seconds": round(seconds)} for line in trainer.state.log_history]
    (out / f"seed-{seed}.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    trainer.save_model(str(out / f"rewarded-{seed}"))
    print(f"seed {seed}: {seconds:.0f} s of one core", flush=True)


# ---- what was measured


def play_for(data: Path, seconds: float, seed: int) -> tuple[int, float, float]:
    """Return how many calls a random policy makes, and the seconds that they took, by the clock and of a core.

    Everything is as a user has it: BM25, five passages a search, facts read anew by the offline extractor.
    """
    given = material(data)
    passages = list({passage.id: passage for passage in given.passages}.values())
    make = environment_factory(index=passages, extractor="offline", rewards=REWARDS, limits=Limits(max_hops=4))
    environment, policy, calls = make(), RandomPolicy(seed), 0
    play(environment, policy, bare_row(given.train[0]))  # what is made at first use
    began, core = time.perf_counter(), time.process_time()
    while time.perf_counter() - began < seconds:
        episode = play(environment, policy, bare_row(given.train[calls % len(given.train)]))
        calls += sum(message["role"] == "tool" for message in episode["messages"])
    return calls, time.perf_counter() - began, time.process_time() - core


def speed(data: Path, seconds: float = 10.0) -> None:
    """Print steps a second for one and two processes, in turns."""
    for processes in (1, 2, 1, 2):
        with ProcessPoolExecutor(processes, mp_context=get_context("spawn")) as pool:
            runs = list(pool.map(play_for, [data] * processes, [seconds] * processes, range(processes)))
        by_clock = sum(calls / clock for calls, clock, _ in runs)
        core = sum(core for _, _, core in runs) / sum(calls for calls, _, _ in runs)
        print(
            f"{processes} processes: {by_clock:.1f} steps a second, {1000 * core:.1f} ms of a core a step", flush=True
        )


def table(data: Path, out: Path) -> None:
    """Print shares of gold passages on the held-out questions, and draw the curves into lab/planner-rl.svg."""
    given = material(data)
    make = gym(given)
    means = {}
    for name, policies in (
        ("random policy", [RandomPolicy(seed) for seed in range(5)]),
        ("question first, then names", [QuestionFirst()]),
    ):
        shares = baseline(make, given.held_out, policies)
        means[name] = statistics.mean(shares)
        print(f"| {name} | {' / '.join(f'{share:.3f}' for share in shares)} | {means[name]:.3f} |")
    import matplotlib

    matplotlib.use("svg")
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(figsize=(6, 3.5), layout="tight")
    for (name, mean), style in zip(means.items(), (":", "--"), strict=True):
        axes.axhline(mean, ls=style, c="grey", label=name)
    for path in sorted(out.glob("seed-*.jsonl")):
        lines = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
        points = [(line["step"], line["eval_parts/gold"], line["eval_parts/form"]) for line in lines
                  if "eval_parts/gold" in line]  # fmt: skip
        axes.plot([step for step, _, _ in points], [gold for _, gold, _ in points], marker="o", label=path.stem)
        print(path.stem, *(f"| {step}: {gold:.3f} ({form:.2f})" for step, gold, form in points))
    axes.set(xlabel="steps of GRPO", ylabel="gold passages, held out", ylim=(0, None))
    axes.legend(fontsize="small")
    figure.savefig(Path(__file__).with_name("planner-rl.svg"), metadata={"Date": None})


def main() -> None:
    """Run one of the four commands."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("command", choices=("teach", "reward", "table", "speed"))
    parser.add_argument("data", type=Path)
    parser.add_argument("--out", type=Path, default=Path("build/planner"))
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    if options.command == "teach":
        teach(options.data, options.out, options.seed)
    elif options.command == "reward":
        reward(options.data, options.out, options.seed)
    elif options.command == "table":
        table(options.data, options.out)
    else:
        speed(options.data)


if __name__ == "__main__":
    main()
