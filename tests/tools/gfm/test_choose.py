"""Which device a network computes on."""

from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from ras_agent.contracts.errors import SettingsError
from ras_agent.tools.gfm import choose
from ras_agent.tools.gfm.choose import MovableGFM, cuda_device, gfm_scorer, with_room
from ras_agent.tools.gfm.cpu import FastGFM
from ras_agent.tools.gfm.cuda import DeviceGFM
from ras_agent.tools.gfm.graph import GFMGraph, GFMStart
from ras_agent.tools.gfm.weights import GFMConfig, initial_weights
from tests.messages import says

VECTORS = np.ones((1, 6), dtype=np.float32)
GRAPH = GFMGraph.from_edges(3, np.array([[0, 0, 1]]), VECTORS, VECTORS)
WEIGHTS = initial_weights(GFMConfig(text_width=6, width=8, layers=2), 0)


def _pretend(
    monkeypatch: pytest.MonkeyPatch, devices: int, free: int = 10**12
) -> list[tuple[Any, ...]]:
    """CUDA devices that torch seems to see; returns the tensors that are made on them, in truth on the CPU."""
    made: list[tuple[Any, ...]] = []

    def on_cpu(weights: Any, graph: Any, on: str, **options: Any) -> DeviceGFM:
        made.append((on, options))
        return DeviceGFM(weights, graph, "cpu", **options)

    monkeypatch.setattr(torch.cuda, "is_available", lambda: devices > 0)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: devices)
    monkeypatch.setattr(torch.cuda, "mem_get_info", lambda on: (free, 10**12))
    monkeypatch.setattr(choose, "DeviceGFM", on_cpu)
    return made


@pytest.mark.parametrize("device", ["auto", "cpu"])
def test_without_cuda_it_is_the_cpus_network(
    monkeypatch: pytest.MonkeyPatch, device: str
) -> None:
    _pretend(monkeypatch, 0)
    assert isinstance(gfm_scorer(WEIGHTS, GRAPH, device), FastGFM)


def test_cpu_stays_on_the_cpu_where_there_is_cuda(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    made = _pretend(monkeypatch, 1)
    assert isinstance(gfm_scorer(WEIGHTS, GRAPH, "cpu"), FastGFM)
    assert made == []


@pytest.mark.parametrize(
    ("device", "on"), [("auto", "cuda:0"), ("cuda", "cuda:0"), ("cuda:1", "cuda:1")]
)
def test_cuda_is_taken_where_it_is(
    monkeypatch: pytest.MonkeyPatch, device: str, on: str
) -> None:
    made = _pretend(monkeypatch, 2)
    assert isinstance(gfm_scorer(WEIGHTS, GRAPH, device), DeviceGFM | MovableGFM)
    assert made == [(on, {})]


def test_a_device_that_fills_up_is_left_for_the_cpu(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    start = [GFMStart(np.array([0]), np.ones(1, dtype=np.float32))]
    _pretend(monkeypatch, 1)
    network = gfm_scorer(WEIGHTS, GRAPH)
    before = network.scores(VECTORS, start)

    def full(*given: object) -> Any:
        raise torch.cuda.OutOfMemoryError(
            "CUDA out of memory. Tried to allocate 2 GiB\nGPU 0 has ..."
        )

    monkeypatch.setattr(DeviceGFM, "scores", full)
    with pytest.warns(RuntimeWarning, match=says("moves to the CPU", "out of memory")):
        after = network.scores(VECTORS, start)
    np.testing.assert_allclose(after, before, atol=1e-4)  # another order of sums
    # without another try there
    np.testing.assert_array_equal(network.scores(VECTORS, start), after)


def test_an_explanation_that_a_device_has_no_room_for_is_made_on_the_cpu(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    _pretend(monkeypatch, 1)

    def explain(network: Any) -> str:
        if isinstance(network, DeviceGFM):
            raise torch.cuda.OutOfMemoryError("CUDA out of memory")
        return type(network).__name__

    with pytest.warns(RuntimeWarning, match="moves to the CPU"):
        assert with_room(gfm_scorer(WEIGHTS, GRAPH), explain) == "FastGFM"


def test_options_of_the_cpus_network_mean_nothing_on_cuda(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    made = _pretend(monkeypatch, 1)
    gfm_scorer(WEIGHTS, GRAPH, half_cache=True, half_products=True)
    assert [options for _, options in made] == [{}]


@pytest.mark.parametrize("broken", ["mem_get_info", "scores"])
def test_auto_takes_the_cpu_where_cuda_does_not_work(
    monkeypatch: pytest.MonkeyPatch, broken: str
) -> None:
    def fail(*given: object) -> Any:
        raise RuntimeError("CUDA error: the card is busy\nCompile with ...")

    _pretend(monkeypatch, 1)
    monkeypatch.setattr(
        torch.cuda if broken == "mem_get_info" else DeviceGFM, broken, fail
    )
    with pytest.warns(
        RuntimeWarning,
        match=says("stays on the CPU", "the card is busy", "device='cpu'"),
    ):
        assert isinstance(gfm_scorer(WEIGHTS, GRAPH), FastGFM)


def test_a_device_that_was_asked_for_and_does_not_work_is_an_error(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def fail(*given: object) -> Any:
        raise RuntimeError("CUDA out of memory")

    _pretend(monkeypatch, 1)
    monkeypatch.setattr(DeviceGFM, "scores", fail)
    with pytest.raises(
        SettingsError,
        match=says(
            "cannot compute scores on cuda:0", "CUDA out of memory", "device='cpu'"
        ),
    ):
        gfm_scorer(WEIGHTS, GRAPH, "cuda")


def test_auto_goes_where_there_is_room_and_says_so(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    made = _pretend(monkeypatch, 1, free=1000)
    with pytest.warns(
        RuntimeWarning,
        match=says("stays on the CPU", "needs about", "cuda:0", "0.0 GB"),
    ):
        assert isinstance(gfm_scorer(WEIGHTS, GRAPH), FastGFM)
    gfm_scorer(WEIGHTS, GRAPH, "cuda")
    assert [on for on, _ in made] == ["cuda:0"]


@pytest.mark.parametrize(
    ("devices", "device", "message"),
    [
        (
            0,
            "cuda",
            r"device 'cuda' does not exist on this machine \(torch sees none\): choose device='auto' or 'cpu', or install",
        ),
        (
            2,
            "cuda:2",
            r"device 'cuda:2' does not exist on this machine \(the 2 that torch .* sees are numbered from 0\)",
        ),
        (
            2,
            "cuda:",
            "unknown device 'cuda:'; choose from auto, cpu, cuda and cuda:<number>",
        ),
        (2, "gpu", "unknown device 'gpu'"),
        (2, "cuda:-1", "unknown device 'cuda:-1'"),
    ],
)
def test_a_device_that_is_not_there_is_an_error_with_its_remedy(
    monkeypatch: pytest.MonkeyPatch, devices: int, device: str, message: str
) -> None:
    _pretend(monkeypatch, devices)
    with pytest.raises(SettingsError, match=message):
        cuda_device(device)
