"""Traces as the page holds them."""

import base64
import gzip
import json

from ras_agent.eval.report.figures import Run
from ras_agent.eval.report.traces import packed_traces


def test_a_packed_trace_holds_the_trace_and_its_picture(runs: list[Run]) -> None:
    trace = runs[0].results[0].trace
    assert trace is not None
    (packed,) = packed_traces([trace])
    data = json.loads(gzip.decompress(base64.b64decode(packed)))
    assert data["trace"] == json.loads(json.dumps(trace))
    assert [node["label"] for node in data["picture"]["nodes"]][:2] == [
        "Bell",
        "Edinburgh",
    ]


def test_what_is_no_trace_is_packed_as_nothing_and_the_others_are_packed(
    runs: list[Run],
) -> None:
    trace = runs[0].results[0].trace
    assert trace is not None
    packed = packed_traces([{"schema": "ras-agent/trace", "version": 99}, trace])
    assert [bool(one) for one in packed] == [False, True]


def test_several_processes_pack_as_one_does_and_in_order(runs: list[Run]) -> None:
    first, second = runs[0].results[0].trace, runs[0].results[1].trace
    assert first is not None
    assert second is not None
    traces = [first, second] * 13
    told: list[tuple[int, int]] = []
    assert packed_traces(
        traces, workers=2, progress=lambda *done: told.append(done)
    ) == packed_traces(traces)
    assert told == [(number, 26) for number in range(1, 27)]
