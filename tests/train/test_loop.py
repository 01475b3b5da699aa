"""The loop that trainings share: schedule, accumulation, early stopping, exact resume, several processes."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import timedelta
from pathlib import Path
from socket import socket
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]

torch = pytest.importorskip("torch", reason="needs the extra 'llm'")
from safetensors import safe_open
from safetensors.torch import load_file

from ras_agent.contracts.errors import SettingsError, WeightsError
from ras_agent.train.checkpoint import _write
from ras_agent.train.loop import FitConfig, FitResult, fit, validations
from ras_agent.train.options import config_from
from ras_agent.train.processes import Processes
from tests.messages import says

QUICK = FitConfig(epochs=3, rate=0.05, warmup=0.2, decay=0.0, save_every=2)


class Line(torch.nn.Module):
    """A line through points, with dropout so that random numbers matter, and a frozen part."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(3)
        self.layer = torch.nn.Linear(2, 1)
        self.frozen = torch.nn.Linear(2, 1).requires_grad_(False)
        self.norm = torch.nn.BatchNorm1d(2)
        self.dropout = torch.nn.Dropout(0.2)
        self.rate_factors: dict[str, float] = {}

    def loss(self, batch: list[tuple[float, float]]) -> torch.Tensor:
        x = torch.tensor([[one, one**2] for one, _ in batch])
        y = torch.tensor([[y] for _, y in batch])
        return (
            (self.layer(self.dropout(self.norm(x))) + 0 * self.frozen(x) - y) ** 2
        ).mean()


def points(epoch: int) -> list[list[tuple[float, float]]]:
    """Five batches of three points, in another order each epoch."""
    found = [
        [(x / 15, 2 * x / 15 - 1) for x in range(start, start + 3)]
        for start in range(0, 15, 3)
    ]
    return found[epoch % 5 :] + found[: epoch % 5]


def trained(
    folder: Path, config: FitConfig = QUICK, model: Line | None = None
) -> tuple[Line, FitResult]:
    model = model or Line()
    return model, fit(
        model, points, lambda: {"loss": float(model.loss(points(0)[0]))}, config, folder
    )


def lines(folder: Path) -> list[dict[str, float]]:
    return [
        json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()
    ]


def test_every_batch_is_seen_in_every_epoch_and_the_loss_falls(tmp_path: Path) -> None:
    _, result = trained(tmp_path, replace(QUICK, epochs=20))
    assert (result.steps, result.stopped, result.main) == (100, "steps", True)
    losses = [line["loss"] for line in lines(tmp_path)]
    assert sum(losses[-10:]) < 0.5 * sum(losses[:10])


def test_the_rate_rises_for_the_warm_up_and_falls_as_a_cosine_to_a_twentieth(
    tmp_path: Path,
) -> None:
    trained(tmp_path, replace(QUICK, steps=11, warmup=0.2, rate=1.0))
    rates = [round(line["rate"], 4) for line in lines(tmp_path)]
    # two steps of warm-up, then 0.05 + 0.95 (1 + cos(pi i / 8)) / 2
    assert rates == [
        0.5,
        1.0,
        1.0,
        0.9638,
        0.8609,
        0.7068,
        0.525,
        0.3432,
        0.1891,
        0.0862,
        0.05,
    ]


def test_frozen_weights_stay_as_they_are(tmp_path: Path) -> None:
    model, _ = trained(tmp_path)
    assert torch.equal(model.frozen.weight, Line().frozen.weight)
    assert not torch.equal(model.layer.weight, Line().layer.weight)


@pytest.mark.parametrize("stops", [(4,), (3, 9), (5, 10, 14)])
def test_a_resumed_training_ends_with_the_weights_of_one_that_was_never_stopped(
    tmp_path: Path, stops: tuple[int, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    whole, _ = trained(tmp_path / "whole")
    for stop in stops:

        def halt(epoch: int, stop: int = stop) -> list[list[tuple[float, float]]]:
            found = points(epoch)
            return (
                [*found]
                if epoch < stop // 5
                else [*found[: stop % 5], *["no batch"] * (5 - stop % 5)]
            )  # type: ignore[list-item]

        model = Line()
        with pytest.raises(ValueError, match="unpack"):
            fit(
                model,
                halt,
                lambda model=model: {"loss": float(model.loss(points(0)[0]))},
                QUICK,
                tmp_path / "cut",
            )
    model, result = trained(tmp_path / "cut")
    assert result.steps == 15
    for name, value in whole.state_dict().items():
        assert torch.equal(model.state_dict()[name], value), name
    there, here = lines(tmp_path / "whole"), lines(tmp_path / "cut")
    assert [{**line, "seconds": 0} for line in here] == [
        {**line, "seconds": 0} for line in there
    ]


def test_a_training_that_is_done_trains_no_more(tmp_path: Path) -> None:
    first, result = trained(tmp_path)
    again, same = trained(tmp_path)
    assert (same, len(lines(tmp_path))) == (result, 15)
    assert torch.equal(first.layer.weight, again.layer.weight)


def test_the_time_limit_stops_a_training_that_goes_on_when_it_is_called_again(
    tmp_path: Path,
) -> None:
    _, first = trained(tmp_path / "two", replace(QUICK, minutes=1e-9))
    assert (first.steps, first.stopped) == (1, "minutes")
    model, last = trained(tmp_path / "two")
    whole, _ = trained(tmp_path / "one")
    assert (last.steps, last.stopped) == (15, "steps")
    assert torch.equal(model.layer.weight, whole.layer.weight)


def test_it_stops_after_validations_without_a_better_one_and_keeps_the_best_weights(
    tmp_path: Path,
) -> None:
    found = iter([5.0, 3.0, 4.0, 3.5, 1.0])
    model, seen = Line(), []

    def validate() -> dict[str, float]:
        seen.append(model.layer.weight.clone())
        return {"loss": next(found), "rouge": 7.0}

    result = fit(
        model, points, validate, replace(QUICK, validate_every=2, patience=2), tmp_path
    )
    assert (result.steps, result.stopped, result.best_step) == (8, "patience", 4)
    assert result.best == {"loss": 3.0, "rouge": 7.0}
    assert torch.equal(model.layer.weight, seen[1])
    assert [line["step"] for line in lines(tmp_path) if "validation" in line] == [
        2,
        4,
        6,
        8,
    ]
    assert [file.name for file in tmp_path.glob("best*")] == ["best-4.safetensors"]
    again = fit(
        Line(), points, validate, replace(QUICK, validate_every=2, patience=2), tmp_path
    )
    assert again == result


def test_the_best_validation_is_the_one_of_the_highest_goodness_and_may_come_before_the_first_step(
    tmp_path: Path,
) -> None:
    def recall(measured: Mapping[str, float]) -> tuple[float, ...]:
        return measured["recall"], -measured["loss"]

    for name, recalls, best in (
        ("later", (0.1, 0.5, 0.5), 4),
        ("first", (0.9, 0.5, 0.5), 0),
    ):
        measured = iter(
            [
                {"recall": one, "loss": loss}
                for one, loss in zip(recalls, (1.0, 3.0, 2.0), strict=True)
            ]
        )
        model, seen = Line(), list[torch.Tensor]()

        def validate(
            model: Line = model,
            seen: list[torch.Tensor] = seen,
            measured: Any = measured,
        ) -> Any:
            seen.append(model.layer.weight.clone())
            return next(measured)

        config = replace(QUICK, steps=4, validate_every=2, validate_first=True)
        result = fit(model, points, validate, config, tmp_path / name, goodness=recall)
        assert (result.best_step, result.best["recall"]) == (best, max(recalls))
        assert torch.equal(model.layer.weight, seen[best // 2])
        assert [
            (line["step"], line["recall"]) for line in validations(tmp_path / name)
        ] == [*zip((0, 2, 4), recalls, strict=True)]
        assert (
            fit(Line(), points, validate, config, tmp_path / name, goodness=recall)
            == result
        )


def test_the_parts_of_a_loss_are_logged_and_the_whole_is_trained_on(
    tmp_path: Path,
) -> None:
    class InParts(Line):
        def loss(self, batch: list[tuple[float, float]]) -> Any:
            whole = super().loss(batch)
            return {"loss": whole, "half": whole / 2}

    trained(tmp_path / "whole")
    fit(InParts(), points, None, QUICK, tmp_path / "parts")
    whole, parts = lines(tmp_path / "whole"), lines(tmp_path / "parts")
    assert [line["loss"] for line in parts] == [line["loss"] for line in whole]
    assert [line["half"] for line in parts] == pytest.approx(
        [line["loss"] / 2 for line in whole], abs=2e-5
    )


def test_batches_of_other_steps_are_not_looked_up(tmp_path: Path) -> None:
    looked_up = []

    class Lazy(list[list[tuple[float, float]]]):
        def __getitem__(self, place: Any) -> Any:
            looked_up.append(place)
            return super().__getitem__(place)

    for _ in range(3):
        fit(
            Line(),
            lambda epoch: Lazy(points(epoch)),
            None,
            replace(QUICK, minutes=1e-9),
            tmp_path,
        )
    assert looked_up == [0, 1, 2]


@pytest.mark.parametrize(("decays", "factor"), [(False, 1.0), (True, 0.5)])
def test_biases_decay_where_that_is_asked_for(
    tmp_path: Path, decays: bool, factor: float
) -> None:
    class Still(Line):
        def loss(self, batch: list[tuple[float, float]]) -> torch.Tensor:
            return super().loss(batch) * 0

    model = Still()
    before = {name: value.clone() for name, value in model.state_dict().items()}
    config = FitConfig(steps=1, rate=0.5, warmup=0.0, decay=1.0, decay_biases=decays)
    fit(model, points, None, config, tmp_path)
    # AdamW takes the rate times the decay of a weight
    torch.testing.assert_close(model.layer.weight, 0.5 * before["layer.weight"])
    torch.testing.assert_close(model.layer.bias, factor * before["layer.bias"])


def test_a_gradient_is_cut_to_the_longest_norm_or_not_at_all(tmp_path: Path) -> None:
    for clip in (0.0, 1e-3):
        fit(
            Line(),
            points,
            None,
            replace(QUICK, steps=1, clip=clip),
            tmp_path / str(clip),
        )
    one, other = (
        load_file(tmp_path / name / "training.safetensors") for name in ("0.0", "0.001")
    )
    # AdamW's first moment is a tenth of the gradient
    norms = [torch.cat([found[f"exp_avg:{name}"].flatten() for name in names]).norm() * 10 for found in (one, other)
             for names in [("layer.weight", "layer.bias", "norm.weight", "norm.bias")]]  # fmt: skip
    assert norms[1] == pytest.approx(1e-3, rel=1e-3)
    assert norms[0] == pytest.approx(lines(tmp_path / "0.0")[0]["norm"], abs=1e-4)


KILLED = """
import os, signal, sys
from dataclasses import replace
from pathlib import Path
sys.path += [{tests!r}, {root!r}]  # at the end: the package is the one that is installed
from test_loop import Line, points, QUICK
from ras_agent.train.loop import fit
def validate():
    global count
    count += 1
    if count == 2:
        os.kill(os.getpid(), signal.SIGKILL)
    return {{"loss": 1.0 / count}}
count = 0
fit(Line(), points, validate, replace(QUICK, validate_every=4), Path({out!r}))
"""


@pytest.mark.slow("kills")
def test_a_training_that_the_system_kills_resumes_to_the_bit(tmp_path: Path) -> None:
    code = KILLED.format(
        tests=str(Path(__file__).parent), root=str(ROOT), out=str(tmp_path / "killed")
    )
    assert (
        subprocess.run([sys.executable, "-P", "-c", code]).returncode == -signal.SIGKILL
    )
    # the last save was after step 6, and the step 7 was logged
    assert [line["step"] for line in lines(tmp_path / "killed")] == [
        1,
        2,
        3,
        4,
        5,
        6,
        7,
    ]
    models = []
    for name in ("killed", "whole"):
        losses = iter(
            [0.5, 0.25, 0.125] if name == "killed" else [1.0, 0.5, 0.25, 0.125]
        )
        models.append(Line())
        config = replace(QUICK, validate_every=4)
        result = fit(
            models[-1],
            points,
            lambda losses=losses: {"loss": next(losses)},
            config,
            tmp_path / name,
        )
        assert (result.steps, result.best_step) == (15, 15)
    for name, value in models[1].state_dict().items():
        assert torch.equal(models[0].state_dict()[name], value), name
    there, here = lines(tmp_path / "whole"), lines(tmp_path / "killed")
    assert [{**line, "seconds": 0} for line in here] == [
        {**line, "seconds": 0} for line in there
    ]
    one, two = (
        load_file(tmp_path / name / "training.safetensors")
        for name in ("killed", "whole")
    )
    assert all(torch.equal(one[name], two[name]) for name in two)


SAVED = """
import resource, torch
from pathlib import Path
from ras_agent.train.checkpoint import Checkpoint, Progress
model = torch.nn.Sequential(*(torch.nn.Linear(2048, 2048, bias=False) for _ in range(4)))  # of 16 MiB each
weights = dict(model.named_parameters())
optimiser = torch.optim.AdamW(weights.values())
for weight in weights.values():
    weight.grad = torch.ones_like(weight)
optimiser.step()
peak = lambda: resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
before = peak()
Checkpoint(Path({out!r}), {{}}, model, weights, optimiser).save(Progress())
print(peak() - before)
"""


@pytest.mark.slow("trainings")
def test_saving_takes_no_memory_of_all_that_is_saved(tmp_path: Path) -> None:
    code = SAVED.format(out=str(tmp_path))
    grown = int(
        subprocess.run(
            [sys.executable, "-P", "-c", code],
            capture_output=True,
            check=True,
            text=True,
        ).stdout
    )
    assert (tmp_path / "training.safetensors").stat().st_size > 192 * 2**20
    assert grown < 100 * 2**10  # kibibytes: a few tensors, not all of them


def test_a_saved_file_is_one_of_safetensors_whatever_its_numbers_are(
    tmp_path: Path,
) -> None:
    kinds = (
        torch.float64,
        torch.float32,
        torch.bfloat16,
        torch.float16,
        torch.int64,
        torch.int32,
        torch.uint8,
    )
    tensors = {str(kind): torch.arange(6).reshape(2, 3).to(kind) for kind in kinds}
    tensors |= {
        "flags": torch.tensor([True, False, True]),
        "one": torch.tensor(3.5),
        "none": torch.zeros(0, 4),
    }
    tensors |= {
        "across": torch.arange(6.0).reshape(2, 3).t(),
        "tied": tensors["torch.float32"],
    }
    _write(tmp_path / "file", tensors, {"step": "3"})
    with safe_open(tmp_path / "file", "pt") as file:
        assert file.metadata() == {"step": "3"}
        loaded = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    assert loaded.keys() == tensors.keys()
    assert all(torch.equal(loaded[name], tensors[name]) for name in tensors)
    assert all(loaded[name].dtype == tensors[name].dtype for name in tensors)


def test_a_validation_computes_in_the_numbers_of_training(tmp_path: Path) -> None:
    model, seen = Line(), []

    def validate() -> dict[str, float]:
        seen.append(model.layer(torch.zeros(1, 2)).dtype)
        return {"loss": 1.0}

    fit(model, points, validate, replace(QUICK, steps=1, bf16=True), tmp_path)
    assert seen == [torch.bfloat16]


def test_processes_wait_a_day_for_one_that_validates(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    groups: list[dict[str, Any]] = []
    monkeypatch.setenv("WORLD_SIZE", "2")
    monkeypatch.setattr(
        torch.distributed,
        "init_process_group",
        lambda backend, **options: groups.append(options),
    )
    Processes.begin()
    assert groups == [{"timeout": timedelta(days=1)}]


def test_two_batches_accumulated_are_one_of_both(tmp_path: Path) -> None:
    def halves(epoch: int) -> list[list[tuple[float, float]]]:
        return [[(0.0, 1.0), (1.0, 3.0)], [(2.0, 5.0), (3.0, 1.0)]]

    def joined(epoch: int) -> list[list[tuple[float, float]]]:
        first, second = halves(0)
        return [first + second]

    for name, batches, accumulate in (("two", halves, 2), ("one", joined, 1)):
        model = Line()
        model.dropout, model.norm = torch.nn.Identity(), torch.nn.Identity()  # type: ignore[assignment]
        fit(
            model,
            batches,
            None,
            replace(QUICK, steps=5, accumulate=accumulate),
            tmp_path / name,
        )
    one, two = lines(tmp_path / "one"), lines(tmp_path / "two")
    # sums in another order differ in the last bits
    assert [line["loss"] for line in two] == pytest.approx(
        [line["loss"] for line in one], rel=1e-4
    )


def test_other_settings_or_another_network_are_not_resumed(tmp_path: Path) -> None:
    trained(tmp_path)
    with pytest.raises(
        SettingsError,
        match=says(
            "other settings", "rate: 0.05 there, 0.1 here", "choose another --out"
        ),
    ):
        trained(tmp_path, replace(QUICK, rate=0.1))
    with pytest.raises(SettingsError, match="data"):
        fit(Line(), points, None, QUICK, tmp_path, {"data": "another"})
    other = Line()
    other.layer = torch.nn.Linear(2, 1, bias=False)
    with pytest.raises(
        WeightsError,
        match="another network, so it cannot be continued: choose another --out",
    ):
        trained(tmp_path, model=other)
    (tmp_path / "training.safetensors").write_bytes(b"damaged")
    with pytest.raises(WeightsError, match="cannot be read"):
        trained(tmp_path)


def test_nothing_to_train_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match="nothing to train"):
        fit(Line(), lambda epoch: [], None, QUICK, tmp_path)
    with pytest.raises(SettingsError, match="nothing to train"):
        fit(Line().requires_grad_(False), points, None, QUICK, tmp_path)


def test_a_training_that_diverges_says_so(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match="smaller --rate"):
        trained(tmp_path, replace(QUICK, rate=1e30))


def test_bfloat16_is_used_where_it_is_asked_for(tmp_path: Path) -> None:
    seen = []

    class Watched(Line):
        def loss(self, batch: list[tuple[float, float]]) -> torch.Tensor:
            seen.append(self.layer(torch.zeros(1, 2)).dtype)
            return super().loss(batch)

    fit(Watched(), points, None, replace(QUICK, steps=1, bf16=True), tmp_path / "bf16")
    fit(
        Watched(),
        points,
        None,
        replace(QUICK, steps=1),
        tmp_path / "as the device has it",
    )
    assert seen == [
        torch.bfloat16,
        torch.float32 if not torch.cuda.is_available() else torch.bfloat16,
    ]


def test_gradient_checkpointing_changes_no_weight(tmp_path: Path) -> None:
    transformers = pytest.importorskip("transformers", reason="needs the extra 'llm'")

    class Small(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            torch.manual_seed(0)
            config = transformers.LlamaConfig(
                vocab_size=20,
                hidden_size=8,
                intermediate_size=8,
                num_hidden_layers=2,
                num_attention_heads=2,
            )
            self.inside = transformers.LlamaForCausalLM(config)

        def loss(self, batch: list[int]) -> torch.Tensor:
            ids = torch.tensor([batch])
            found: torch.Tensor = self.inside(input_ids=ids, labels=ids).loss
            return found

    models = [Small(), Small()]
    for model, on in zip(models, (False, True), strict=True):
        config = replace(QUICK, steps=2, gradient_checkpointing=on)
        fit(model, lambda epoch: [[1, 2, 3, 4]], None, config, tmp_path / str(on))
    assert [
        any(getattr(part, "gradient_checkpointing", False) for part in model.modules())
        for model in models
    ] == [
        False,
        True,
    ]
    for one, two in zip(*(model.parameters() for model in models), strict=True):
        torch.testing.assert_close(one, two)
    with pytest.raises(SettingsError, match="--gradient-checkpointing"):
        fit(
            Line(),
            points,
            None,
            replace(QUICK, gradient_checkpointing=True),
            tmp_path / "line",
        )


TWO = """
import sys
from dataclasses import replace
from pathlib import Path
sys.path += [{tests!r}, {root!r}]  # at the end: the package is the one that is installed
import torch
from test_loop import Line, points, QUICK
from ras_agent.train.loop import fit
model = Line()
model.dropout, model.norm = torch.nn.Identity(), torch.nn.Identity()
found = fit(model, points, lambda: {{"loss": 1.0, "more": 2.0}}, replace(QUICK, steps=4, accumulate=2), Path({out!r}))
assert found.best_step == 2 or found.best_step == 3, found
assert found.best == {{"loss": 1.0, "more": 2.0}}, found
"""


@pytest.mark.slow("trainings")
def test_two_processes_train_as_one_with_batches_twice_as_large(tmp_path: Path) -> None:
    model = Line()
    model.dropout, model.norm = torch.nn.Identity(), torch.nn.Identity()  # type: ignore[assignment]
    fit(
        model,
        points,
        lambda: {"loss": 1.0},
        replace(QUICK, steps=4, accumulate=4),
        tmp_path / "one",
    )
    with socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    code = TWO.format(
        tests=str(Path(__file__).parent), root=str(ROOT), out=str(tmp_path / "two")
    )
    common = {
        **os.environ,
        "WORLD_SIZE": "2",
        "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": str(port),
    }
    processes = [
        subprocess.Popen(
            [sys.executable, "-P", "-c", code],
            env={**common, "RANK": str(rank), "OMP_NUM_THREADS": "1"},
        )
        for rank in range(2)
    ]
    assert [process.wait(100) for process in processes] == [0, 0]
    one, two = (
        load_file(tmp_path / name / "training.safetensors") for name in ("one", "two")
    )
    for name, value in one.items():
        # means of means in another order differ in the last bits
        torch.testing.assert_close(two[name], value, rtol=1e-4, atol=1e-6)


@dataclass(frozen=True, slots=True, kw_only=True)
class Own(FitConfig):
    out: Path
    data: tuple[Path, ...] = ()
    kinds: tuple[str, ...] = ("a",)
    width: int | None = None
    patience: int = field(default=3, init=False)

    def __post_init__(self) -> None:
        FitConfig.__post_init__(self)


def test_a_configuration_is_made_of_the_options_of_its_fields() -> None:
    found = config_from(
        Own,
        "about",
        ["--out", "run", "--data", "x,y", "--no-bf16", "--rate", "0.5", "--width", "3"],
    )
    assert found == Own(
        out=Path("run"), data=(Path("x"), Path("y")), bf16=False, rate=0.5, width=3
    )
    with pytest.raises(SettingsError, match="--accumulate must be at least 1, got 0"):
        config_from(Own, "about", ["--out", "run", "--accumulate", "0"])
    twice = config_from(Own, "about", ["--out", "run", "--data", "x,y", "--data", "z"])
    assert (twice.data, twice.kinds) == ((Path("x"), Path("y"), Path("z")), ("a",))
    for arguments in ([], ["--out", "run", "--patience", "2"]):
        with pytest.raises(SystemExit):
            config_from(Own, "about", arguments)


def test_what_decides_the_weights_are_the_options_that_name_no_file_and_are_no_circumstance() -> (
    None
):
    settings = Own(out=Path("run"), data=(Path("x"),), width=3, minutes=4.0).settings()
    assert {
        "out",
        "data",
        "minutes",
        "save_every",
        "gradient_checkpointing",
    }.isdisjoint(settings)
    assert {name: settings[name] for name in ("seed", "kinds", "width", "patience")} == {
        "seed": 0, "kinds": ("a",), "width": 3, "patience": 3
    }  # fmt: skip


def test_the_best_validations_weights_come_with_its_running_statistics(
    tmp_path: Path,
) -> None:
    model, means = Line(), list[torch.Tensor]()

    def validate() -> dict[str, float]:
        means.append(model.norm.running_mean.clone())
        return {"loss": float(len(means) != 2)}

    fit(model, points, validate, QUICK, tmp_path)
    assert len(means) == 3
    assert torch.equal(model.norm.running_mean, means[1])
    assert not torch.equal(means[1], means[2])


def test_weights_whose_names_begin_as_listed_have_a_rate_of_their_own(
    tmp_path: Path,
) -> None:
    model = Line()
    before = {name: value.clone() for name, value in model.state_dict().items()}
    model.rate_factors = {"layer.": 0.0}
    trained(tmp_path, model=model)
    after = model.state_dict()
    assert torch.equal(after["layer.weight"], before["layer.weight"])
    assert not torch.equal(after["norm.weight"], before["norm.weight"])


@pytest.mark.parametrize(
    ("schedule", "lowest", "rates"),
    [
        # a step of warm-up, then to the lowest at the last of five
        ("cosine", 0.05, [1e-3, 1e-3, 7.625e-4, 2.875e-4, 5e-5]),
        ("cosine", 0.5, [1e-3, 1e-3, 8.75e-4, 6.25e-4, 5e-4]),
        ("linear", 0.0, [1e-3, 1e-3, 6.667e-4, 3.333e-4, 0.0]),
    ],
)
def test_the_rate_falls_by_its_schedule_to_its_lowest(
    schedule: str, lowest: float, rates: list[float]
) -> None:
    config = FitConfig(rate=1e-3, warmup=0.2, schedule=schedule, lowest_rate=lowest)
    found = [config.rate_at(step, 5) for step in range(5)]
    assert found == pytest.approx(rates, rel=1e-3, abs=1e-9)
