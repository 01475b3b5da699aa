"""Trains a planner of a million weights in the gym: taught by episodes, then rewarded (lab/planner-rl.md).

    python -m lab.planner_rl export DATA            # episodes of the mixed policy, as the gym writes them
    python -m lab.planner_rl teach DATA             # SFT on them
    python -m lab.planner_rl reward DATA --seed 0   # GRPO, for each seed
    python -m lab.planner_rl table DATA             # the table and the picture of lab/planner-rl.md
    python -m lab.planner_rl speed DATA             # steps a second by processes, without a model

`--setup names` is the second training of the page, for each command; each has its own folder. DATA holds
hotpotqa_train/, 2wikimultihopqa/ and reading/hotpot_2wiki_train_qa.jsonl. teach and reward need TRL: the environment
of `make contracts`.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import random
import statistics
import time
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from importlib.resources import files
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from lab.planner_model import new_model, new_tokenizer, taught_tokenizer
from ras_agent import Limits, Passage
from ras_agent.app.sample import sample_passages
from ras_agent.eval.benchmarks import benchmark
from ras_agent.eval.question import Question, context_passage
from ras_agent.eval.significance import paired_bootstrap
from ras_agent.gym import GraphSearch, RandomPolicy, Rewards, environment_factory, log_parts, play, row_of
from ras_agent.prompts import ToolCall
from ras_agent.records import Extraction
from ras_agent.text.names import names_in
from ras_agent.tools.roles import resolve_extractor

# its figures are of episodes that nothing but max_hops ends
LIMITS = Limits(max_hops=3, k=1, stop_on_repeat=False, stop_on_no_new_facts=False)
REWARDS = Rewards(f1=0.0, gold=1.0, form=0.0)
FACTS = 3
MORE = 4000
"""Questions without evidence whose episodes a model is taught by, besides four of each question to train on"""
ON_A_CORE: dict[str, Any] = {
    "save_strategy": "no",
    "report_to": "none",
    "use_cpu": True,
    "bf16": False,
    "gradient_checkpointing": False,
}
"""What both trainings are told, of SFT and of GRPO"""
GROUP, TEMPERATURE = 8, 0.8


@dataclass(frozen=True)
class Setup:
    """How a planner is taught and rewarded.

    first, later: how often the teacher searches the question, a name of it, or a name in facts, before anything is
    found and afterwards. two_wiki: 2WikiMultihopQA's training questions are trained on, too, over their passages.
    trained: parts of the names of the weights that rewards move, all of them without any.
    """

    first: Sequence[float] = (0.9, 0.1, 0.0)
    later: Sequence[float] = (0.0, 0.85, 0.15)
    two_wiki: bool = False
    trained: Sequence[str] = ()
    steps: int = 24
    questions_a_step: int = 4
    rate: float = 2e-4
    evaluated_after: int = 12  # so many steps each
    picture: str = "planner-rl.svg"


SETUPS = {
    "question": Setup(),
    # a teacher that does not know that the question is the best search, and rewards that leave alone what copies
    "names": Setup(
        (0.1, 0.9, 0.0), (0.05, 0.8, 0.15), True, ("layers.2.", "model.norm"), 40, 8, 1e-3, 10, "planner-rl-names.svg"
    ),
}
USED_AT = 0.5
"""Temperature of an evaluation: that of training leaves episodes of a group apart"""
DRAWS = 2
"""Episodes of each held-out question in an evaluation"""


# ---- questions and environments


@dataclass(frozen=True)
class Material:
    """What is searched, the questions to train on, those that settings are chosen by, and those that are reported on.

    Questions are parted by a hash of their ids.
    """

    passages: Sequence[Passage]
    train: Sequence[Question]
    choose: Sequence[Question]
    held_out: Sequence[Question]


def is_held_out(question: Question) -> bool:
    """Tell whether a question is for evaluation alone: a third of them, by a hash of the id."""
    return hashlib.sha256(question.id.encode()).digest()[0] % 3 == 0


def is_for_choosing(question: Question) -> bool:
    """Tell whether a question that is not held out is one by which settings are chosen: a quarter of them."""
    return not is_held_out(question) and hashlib.sha256(question.id.encode()).digest()[1] % 4 == 0


def material(data: Path, setup: Setup) -> Material:
    """Return the questions of DATA that a setup trains on, and those that are kept, over the passages of all."""
    folder, plain = data / "hotpotqa_train", benchmark("jsonl")
    hard = _with_contexts(folder / "hard100_contexts.jsonl")
    more = _with_contexts(data / "2wikimultihopqa" / "train500_contexts.jsonl") if setup.two_wiki else []
    with_sample = plain.load(str(files("ras_agent.data") / "sample_questions.jsonl"))
    questions = [*with_sample, *plain.load(folder / "questions.jsonl"), *hard]
    passages = [*sample_passages(), *plain.corpus(folder / "corpus.jsonl"), *plain.corpus([*hard, *more])]
    choose, held_out = (list(filter(part, questions)) for part in (is_for_choosing, is_held_out))
    train = [*(question for question in questions if question not in [*choose, *held_out]), *more]
    return Material(passages, train, choose, held_out)


def _with_contexts(file: Path) -> list[Question]:
    return [_question_of(json.loads(line)) for line in file.read_text(encoding="utf-8").splitlines()]


def _question_of(record: dict[str, Any]) -> Question:
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
    """Return a question's row without the long instruction, which a model of this size has no room for.

    Quotation marks are such as a call need not escape, so that a copy of the question is the question.
    """
    text = " ".join(question.question.replace('"', "\u201d").split())
    return {**row_of(question), "question": text, "prompt": [{"role": "user", "content": ""}]}


def more_questions(data: Path, given: Material) -> list[Question]:
    """Return training questions of HotpotQA and 2Wiki of which no evidence is known, none of the material's others."""
    held_out = {_bare(question.question) for question in (*given.choose, *given.held_out)}
    lines = (data / "reading" / "hotpot_2wiki_train_qa.jsonl").read_text(encoding="utf-8").splitlines()
    texts = dict.fromkeys(json.loads(line)["question"].strip() for line in lines)
    return [
        Question(f"more-{number}", text, ())
        for number, text in enumerate(texts)
        if text and _bare(text) not in held_out and len(text.split()) <= 30
    ]


def _bare(text: str) -> str:
    return "".join(filter(str.isalnum, text.lower()))


@dataclass
class MixedPolicy:
    """Policy whose episodes a model is taught by: the kinds of search that rewards are to choose among, at random.

    It searches the question, a name of it that is no title of what was found, or a name in the facts found, none of
    them twice, and ends where it is told that no search is left, which needs no counting, or where nothing is left.
    """

    seed: int = 0
    setup: Setup = SETUPS["question"]

    def __post_init__(self) -> None:
        self._random, self._refused = random.Random(self.seed), False

    def act(self, environment: GraphSearch) -> ToolCall:
        question, searched = environment.question.question, {step.subquery for step in environment.steps}
        objects = [fact.object for fact in environment.graph.by_id.values()]
        kinds = ([question], names_in(question), [name for name in objects if name in names_in(name)])
        known = {*searched, *(passage.title for passage in environment.passages)}
        left = [[query for query in queries if query not in known] for queries in kinds]
        shares = self.setup.later if searched else self.setup.first
        weights = [share * bool(queries) for queries, share in zip(left, shares, strict=True)]
        if (self._refused and searched) or not any(weights):
            return ToolCall("finish", {"reason": "enough"})
        self._refused = not environment.searches_left
        [queries] = self._random.choices(left, weights)
        return ToolCall("search", {"query": self._random.choice(queries)})


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


def baseline(make: Any, questions: Sequence[Question], policies: Sequence[Any]) -> dict[str, list[float]]:
    """Return for each question, by its id, the share of its gold passages that each policy reaches."""
    environment = make()
    return {
        question.id: [play(environment, policy, bare_row(question))["parts"]["gold"] for policy in policies]
        for question in questions
    }


# ---- trainings


def export(given: Material, data: Path, out: Path, setup: Setup) -> None:
    """Let the mixed policy play, and write OUT/trajectories.jsonl: a line for each episode, as SFTTrainer takes it."""
    environment = gym(given)()
    questions = [*random.Random(0).sample(more_questions(data, given), MORE), *list(given.train) * 4]
    out.mkdir(parents=True, exist_ok=True)
    with (out / "trajectories.jsonl").open("w", encoding="utf-8") as file:
        for number, question in enumerate(questions):
            messages = play(environment, MixedPolicy(number, setup), bare_row(question))["messages"]
            for call in (call for message in messages for call in message.get("tool_calls", ())):
                # as text, because `datasets` gives every dictionary of a column the keys of all
                call["function"]["arguments"] = json.dumps(call["function"]["arguments"], ensure_ascii=False)
            messages.append({"role": "assistant", "content": "Done."})
            file.write(json.dumps({"messages": messages}, ensure_ascii=False) + "\n")
    print(f"{len(questions)} episodes", flush=True)


def teach(given: Material, out: Path) -> None:
    """Teach a new model by the episodes in OUT/trajectories.jsonl, and keep it in OUT/taught."""
    from datasets import Dataset  # pyright: ignore[reportMissingImports]
    from trl import SFTConfig, SFTTrainer  # pyright: ignore[reportMissingImports]

    episodes = [json.loads(line) for line in (out / "trajectories.jsonl").read_text(encoding="utf-8").splitlines()]
    texts = [message["content"] for episode in episodes for message in episode["messages"]]
    tokenizer = new_tokenizer([*texts, *(passage.text for passage in given.passages)])
    model = new_model(tokenizer)
    print(f"{len(episodes)} episodes, {sum(weight.numel() for weight in model.parameters()):,} weights", flush=True)
    began = time.process_time()
    trainer = SFTTrainer(
        model=model,
        processing_class=tokenizer,
        train_dataset=Dataset.from_list(episodes),
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
            **ON_A_CORE,
        ),
    )
    one_thread()
    trainer.train()
    print(f"taught in {time.process_time() - began:.0f} s of one core", flush=True)
    model.save_pretrained(out / "taught")
    tokenizer.save_pretrained(out / "taught")


def one_thread() -> None:
    """Compute on one core: accelerate has set as many threads as there are, and they wait for each other."""
    import torch

    torch.set_num_threads(1)


def gym(given: Material) -> Any:
    """Return a factory of environments over the material's passages, each passage once."""
    passages = list({passage.id: passage for passage in given.passages}.values())
    return environment_factory(index=passages, extractor=ReadOnce(), rewards=REWARDS, limits=LIMITS)


@dataclass
class EpisodeLog:
    """Reward function that rewards nothing, and writes a line to `path` for each episode of a held-out question."""

    path: Path
    held_out: Sequence[Question]
    __name__ = "episodes"

    def __post_init__(self) -> None:
        self._ids = {question.id for question in self.held_out}

    def __call__(
        self, environments: Sequence[GraphSearch], completions: Any, trainer_state: Any, **more: Any
    ) -> list[None]:
        with self.path.open("a", encoding="utf-8") as file:
            for environment, turns in zip(environments, completions, strict=True):
                if environment.question.id in self._ids:
                    line = {"step": trainer_state.global_step, **episode_line(environment, turns)}
                    file.write(json.dumps(line) + "\n")
        return log_parts(environments, **more)


def episode_line(environment: GraphSearch, turns: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Return the figures of an episode that has ended.

    turns: its messages after the question. copied: how many of its searches are a part of a text that it was shown;
    whole: how many are the question; repeated: how many had been made before.
    """
    shown = [environment.question.question, *(turn["content"] for turn in turns if turn["role"] == "tool")]
    queries = [step.subquery.strip() for step in environment.steps]
    return {
        "id": environment.question.id,
        "gold": environment.reward_parts["gold"],
        "ended": float(environment.done),
        "searches": len(queries),
        "copied": sum(any(query in text for text in shown) for query in queries),
        "whole": queries.count(shown[0]),
        "repeated": len(queries) - len(set(queries)),
    }


def reward(given: Material, out: Path, setup: Setup, seed: int, choose: bool) -> None:
    """Train the taught model by GRPO on the reward, and keep it in OUT/rewarded-SEED.

    Writes OUT/seed-SEED.jsonl, a line for each step that is logged, and OUT/episodes-SEED.jsonl, a line for each
    episode of an evaluation.
    """
    import torch
    from datasets import Dataset  # pyright: ignore[reportMissingImports]
    from transformers import AutoModelForCausalLM
    from trl import GRPOConfig, GRPOTrainer  # pyright: ignore[reportMissingImports]

    class Trainer(GRPOTrainer):  # type: ignore[misc]
        def evaluate(self, *args: Any, **more: Any) -> Any:
            self.generation_config.temperature = USED_AT
            result = super().evaluate(*args, **more)
            self.generation_config.temperature = TEMPERATURE
            return result

    torch.manual_seed(seed)
    held_out = given.choose if choose else given.held_out
    (out / f"episodes-{seed}.jsonl").unlink(missing_ok=True)
    model = AutoModelForCausalLM.from_pretrained(out / "taught")
    for name, weight in model.named_parameters():
        weight.requires_grad = not setup.trained or any(part in name for part in setup.trained)
    trainer = Trainer(
        model=model,
        processing_class=taught_tokenizer(out),
        train_dataset=Dataset.from_list([bare_row(question) for question in given.train]),
        eval_dataset=Dataset.from_list([bare_row(question) for question in held_out]),
        reward_funcs=[EpisodeLog(out / f"episodes-{seed}.jsonl", held_out)],
        environment_factory=gym(given),
        args=GRPOConfig(
            output_dir=str(out / f"seed-{seed}"),
            max_steps=setup.steps,
            per_device_train_batch_size=GROUP * setup.questions_a_step,
            num_generations=GROUP,
            per_device_eval_batch_size=len(held_out) * DRAWS,
            num_generations_eval=DRAWS,
            learning_rate=setup.rate,
            lr_scheduler_type="constant_with_warmup",
            warmup_steps=2,
            max_completion_length=1200,
            generation_kwargs={"max_new_tokens": 48, "cache_implementation": "static"},  # of one turn
            max_tool_calling_iterations=5,
            temperature=TEMPERATURE,
            beta=0.0,
            scale_rewards="batch",  # by a group, one lucky episode of a hopeless question would weigh most
            eval_strategy="steps",
            eval_steps=setup.evaluated_after,
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
    given = material(data, SETUPS["question"])
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


Draws = dict[str, list[float]]
"""Shares of gold passages by the question's id, one for each episode"""


def draws_by_step(lines: Iterable[dict[str, Any]]) -> dict[int, Draws]:
    """Return the shares of gold passages by training step, of the lines of an EpisodeLog."""
    steps: dict[int, Draws] = {}
    for line in lines:
        steps.setdefault(line["step"], {}).setdefault(line["id"], []).append(line["gold"])
    return steps


def mean_of(draws: Draws) -> float:
    """Return the mean over questions of the mean over a question's episodes."""
    return statistics.mean(statistics.mean(shares) for shares in draws.values())


def pooled(runs: Iterable[Draws]) -> Draws:
    """Return all runs' episodes of each question together."""
    together: Draws = {}
    for run in runs:
        for name, shares in run.items():
            together.setdefault(name, []).extend(shares)
    return together


def difference(one: Draws, other: Draws) -> str:
    """Return the mean of one minus other over the questions of both, with its interval: questions are resampled."""
    names = sorted(one.keys() & other.keys())
    mine, theirs = ([statistics.mean(draws[name]) for name in names] for draws in (one, other))
    result = paired_bootstrap(mine, theirs)
    return f"{result.mean:+.3f} ({result.low:+.3f} to {result.high:+.3f})"


def table(given: Material, out: Path, setup: Setup, picture: Path) -> None:
    """Print shares of gold passages on the held-out questions, and draw the curves into a picture."""
    make = gym(given)
    policies: dict[str, list[Any]] = {
        "random policy": [RandomPolicy(seed) for seed in range(5)],
        "mixed policy": [MixedPolicy(seed, setup) for seed in range(5)],
        "question, then names": [QuestionFirst()],
    }
    scripted = {name: baseline(make, given.held_out, players) for name, players in policies.items()}
    for name, draws in scripted.items():
        by_seed = [statistics.mean(shares) for shares in zip(*draws.values(), strict=True)]
        print(f"| {name} | {', '.join(f'{share:.3f}' for share in by_seed)} | {mean_of(draws):.3f} |")
    import matplotlib

    matplotlib.use("svg")
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(figsize=(6, 3.5), layout="tight")
    for (name, draws), style in zip(scripted.items(), (":", "-.", "--"), strict=True):
        axes.axhline(mean_of(draws), ls=style, c="grey", label=name)
    runs = []
    for path in sorted(out.glob("episodes-*.jsonl")):
        lines = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
        runs.append(draws_by_step(lines))
        means = {step: mean_of(draws) for step, draws in runs[-1].items()}
        axes.plot(
            list(means), list(means.values()), marker="o", label=f"GRPO, {path.stem.replace('episodes-', 'seed ')}"
        )
        print(f"| {path.stem} | {', '.join(f'{mean:.3f}' for mean in means.values())} |")
        for step in (min(means), max(means)):
            played = [line for line in lines if line["step"] == step]
            searches = sum(line["searches"] for line in played)
            ended = statistics.mean(line["ended"] for line in played)
            kinds = ("copied", "whole", "repeated")
            shares = (f"{sum(line[kind] for line in played) / max(searches, 1):.2f} {kind}" for kind in kinds)
            print(f"    step {step}: {ended:.2f} ended, {searches / len(played):.2f} searches, {', '.join(shares)}")
    before, *after = pooled(run[min(run)] for run in runs), *(run[max(run)] for run in runs)
    for name, draws in [*((f"seed {seed}", draws) for seed, draws in enumerate(after)), ("all seeds", pooled(after))]:
        print(f"| {name} | {mean_of(draws):.3f} | before its reward: {difference(draws, before)} | random policy: "
              f"{difference(draws, scripted['random policy'])} |")  # fmt: skip
    print(f"before its reward against the random policy: {difference(before, scripted['random policy'])}")
    axes.set(xlabel="steps of GRPO", ylabel="gold passages, held out", ylim=(0, None))
    axes.legend(fontsize="small", loc="lower right")
    figure.savefig(picture, metadata={"Date": None})


def main() -> None:
    """Run one of the five commands."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("command", choices=("export", "teach", "reward", "table", "speed"))
    parser.add_argument("data", type=Path)
    parser.add_argument("--out", type=Path, help="build/planner-SETUP, if not given")
    parser.add_argument(
        "--setup", choices=tuple(SETUPS), default="question", help="what it is taught, and how rewarded"
    )
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--choose", action="store_true", help="evaluate on questions that settings are chosen by")
    options = parser.parse_args()
    setup, out = SETUPS[options.setup], options.out or Path(f"build/planner-{options.setup}")
    given = material(options.data, setup)
    picture = Path(__file__).with_name(setup.picture)
    commands: dict[str, Callable[[], None]] = {
        "export": lambda: export(given, options.data, out, setup),
        "teach": lambda: teach(given, out),
        "reward": lambda: reward(given, out, setup, options.seed, options.choose),
        "table": lambda: table(given, out, setup, picture),
        "speed": lambda: speed(options.data),
    }
    commands[options.command]()


if __name__ == "__main__":
    main()
