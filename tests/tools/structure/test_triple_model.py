"""The extractor on a local text-to-triples model: its batches, its failures, its records, and its spec."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("transformers", reason="needs the extra 'llm'")
import torch

from ras_agent.contracts.errors import SettingsError, WeightsError
from ras_agent.contracts.records import Passage
from ras_agent.running.budget import Ledger, Limits, metered
from ras_agent.testing.extractors import PASSAGES
from ras_agent.tools.roles import resolve_extractor
from ras_agent.tools.structure.triple_model import (
    PUBLIC_MODEL,
    Decoding,
    ModelReply,
    TransformersWriter,
    TripleModel,
    batches_of_like_length,
    load_text_model,
    read_spec,
)
from ras_agent.tools.structure.triple_text import (
    Piece,
    TripleText,
    target_text,
    titled_text,
)
from tests.messages import says

KINDS = ("t5", "llama")


class Fixed:
    """Writes scripted texts, and remembers its requests."""

    fingerprint = "fixed"

    def __init__(self, text: TripleText, *replies: ModelReply) -> None:
        self.text, self.replies = text, replies
        self.asked: list[list[str]] = []
        self.gate = threading.Event()
        self.gate.set()

    def write(self, pieces: Sequence[Piece], decoding: Decoding) -> list[ModelReply]:
        self.gate.wait(30)
        self.asked.append([piece.text for piece in pieces])
        return [
            self.replies[number % len(self.replies)] for number, _ in enumerate(pieces)
        ]


@pytest.fixture(params=KINDS)
def folder(
    request: pytest.FixtureRequest, memorising_model: Callable[[str], Path]
) -> Path:
    return memorising_model(request.param)


@pytest.fixture
def text(memorising_model: Callable[[str], Path]) -> TripleText:
    return TripleText(load_text_model(str(memorising_model("t5")))[1], seq2seq=True)


def test_a_model_that_was_trained_on_three_texts_states_their_facts_with_their_sentences(
    folder: Path,
) -> None:
    found = resolve_extractor(f"text2triple:{folder}").extract(PASSAGES[:3])
    assert [
        (str(triple), triple.sources[0].passage_id) for triple in found.triples
    ] == [
        ("(S> Alexander Graham Bell | P> was born in | O> Edinburgh)", "bell"),
        ("(S> Alexander Graham Bell | P> invented | O> telephone)", "bell"),
        ("(S> Water of Leith | P> flows through | O> Edinburgh)", "leith"),
        ("(S> Edinburgh | P> is the capital of | O> Scotland)", "untitled"),
    ]
    spans = [
        PASSAGES[0].text[one.start : one.end]
        for triple in found.triples[:2]
        for one in triple.sources
    ]
    assert spans == [
        "Alexander Graham Bell was born in Edinburgh in 1847.",
        "He invented the telephone.",
    ]
    assert found.failures == ()


@pytest.mark.parametrize("beams", [1, 3])
def test_random_weights_give_failures_and_no_crash(folder: Path, beams: int) -> None:
    model, tokenizer = load_text_model(str(folder))
    torch.manual_seed(0)
    for weight in model.parameters():
        torch.nn.init.normal_(weight, std=0.5)
    extractor = TripleModel(
        TransformersWriter(model, tokenizer),
        name="random",
        decoding=Decoding(beams=beams, target_tokens=20),
    )
    found = extractor.extract(PASSAGES)
    assert found.failures
    assert {failure.role for failure in found.failures} == {"extractor"}
    named = [
        failure.message.partition("(passage ")[2].rstrip(")")
        for failure in found.failures
    ]
    assert set(named) <= {passage.id for passage in PASSAGES}


def test_the_same_facts_come_from_a_batch_and_one_by_one(folder: Path) -> None:
    extractor = resolve_extractor(f"text2triple:{folder}")
    together = extractor.extract(PASSAGES)
    assert together.triples == tuple(
        triple
        for passage in PASSAGES
        for triple in extractor.extract([passage]).triples
    )


def test_a_reply_that_cannot_be_read_or_was_cut_off_is_a_failure_and_the_rest_is_taken(
    text: TripleText,
) -> None:
    replies = (
        ModelReply(
            "(S> Bell | P> was born in | O> Edinburgh), (S> Bell | P> inv", 9, True
        ),
        ModelReply("(S> Leith | P> flows", 5, False),
        ModelReply("[NONE]", 2, False),
    )
    found = TripleModel(Fixed(text, *replies), name="fixed").extract(PASSAGES[:3])
    assert [str(triple) for triple in found.triples] == [
        "(S> Bell | P> was born in | O> Edinburgh)"
    ]
    assert [failure.message for failure in found.failures] == [
        "the facts were cut off at their token limit (passage bell)",
        "facts could not be read (passage leith)",
    ]
    assert found.failures[1].detail == "(S> Leith | P> flows"


def test_every_piece_is_a_call_of_the_run_and_its_limits_hold(text: TripleText) -> None:
    extractor = TripleModel(Fixed(text, ModelReply("[NONE]", 2, False)), name="fixed")
    with metered(
        Ledger(role="extractor", hop=2, limits=Limits(max_llm_calls=3))
    ) as ledger:
        found = extractor.extract(PASSAGES[:3])
    assert [
        (call.role, call.hop, call.model, call.output_tokens) for call in ledger.calls
    ] == [
        ("extractor", 2, "fixed", 2),
        ("extractor", 2, "fixed", 2),
    ]
    assert [failure.message for failure in found.failures] == [
        "max_llm_calls = 3 is used up (passage untitled)"
    ]
    assert ledger.exceeded() == "max_llm_calls"


def test_what_was_reserved_is_released_when_the_model_fails(text: TripleText) -> None:
    class Broken(Fixed):
        def write(
            self, pieces: Sequence[Piece], decoding: Decoding
        ) -> list[ModelReply]:
            raise RuntimeError("no memory")

    extractor = TripleModel(Broken(text), name="broken")
    with (
        metered(Ledger(limits=Limits(max_tokens=2000))) as ledger,
        pytest.raises(RuntimeError, match="no memory"),
    ):
        extractor.extract(PASSAGES[:1])
    assert ledger.tokens_left() == 1500  # all but the answer's quarter


@pytest.mark.parametrize(("room", "failures"), [(2, 0), (1, 0), (0, 3)])
def test_a_batch_without_memory_is_read_in_halves_and_a_text_without_is_a_failure(
    folder: Path, room: int, failures: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    writer = TransformersWriter(*load_text_model(str(folder)))
    whole = TripleModel(writer, name="any").extract(PASSAGES[:3])
    write_batch = writer.write_batch

    def limited(pieces: Sequence[Piece], decoding: Decoding) -> list[ModelReply]:
        if len(pieces) > room:
            raise torch.cuda.OutOfMemoryError("CUDA out of memory")
        return write_batch(pieces, decoding)

    monkeypatch.setattr(writer, "write_batch", limited)
    found = TripleModel(writer, name="any").extract(PASSAGES[:3])
    assert found.triples == (whole.triples if room else ())
    assert len(found.failures) == failures
    assert all(
        "fewer beams or source_tokens" in failure.message for failure in found.failures
    )


def test_callers_that_wait_for_the_model_are_served_in_one_pass(
    text: TripleText,
) -> None:
    writer = Fixed(text, ModelReply("[NONE]", 2, False))
    extractor = TripleModel(writer, name="fixed")
    writer.gate.clear()

    async def ask() -> None:
        asking = [
            asyncio.create_task(extractor.aextract([passage]))
            for passage in PASSAGES[:5]
        ]
        await asyncio.sleep(0)
        writer.gate.set()
        await asyncio.gather(*asking)

    asyncio.run(ask())
    assert sum(map(len, writer.asked)) == 5
    assert (
        len(writer.asked) <= 2
    )  # the first by itself, or with others, and then the rest


def test_batches_hold_texts_of_like_length_up_to_their_tokens() -> None:
    decoding = Decoding(target_tokens=10, batch_tokens=100)
    assert batches_of_like_length([5, 90, 15, 40, 6, 5], decoding) == [
        [1],
        [3, 2],
        [4, 0, 5],
    ]
    # a text too long for a batch is one
    assert batches_of_like_length([500], decoding) == [[0]]
    assert batches_of_like_length(
        [15, 15, 15], Decoding(beams=2, target_tokens=10, batch_tokens=100)
    ) == [[0, 1], [2]]
    assert batches_of_like_length([], decoding) == []


def test_a_long_passage_is_read_in_pieces_between_sentences_each_behind_its_title(
    text: TripleText,
) -> None:
    short = TripleText(text.tokenizer, seq2seq=True, source_tokens=40)
    passage = Passage(
        "long",
        " ".join(f"He wrote book number {number}." for number in range(12)),
        "Bell",
    )
    pieces = list(short.pieces(passage))
    assert len(pieces) > 1
    assert all(
        piece.text.startswith("Bell: He wrote") and piece.text.endswith(".")
        for piece in pieces
    )
    assert all(len(piece.tokens) <= 40 for piece in pieces)
    read = " ".join(piece.text.removeprefix("Bell: ") for piece in pieces)
    assert read == passage.text


@pytest.mark.parametrize("kind", KINDS)
def test_a_sentence_or_a_word_that_does_not_fit_is_cut(
    kind: str, memorising_model: Callable[[str], Path]
) -> None:
    tokenizer = load_text_model(str(memorising_model(kind)))[1]
    short = TripleText(tokenizer, seq2seq=kind == "t5", source_tokens=60)
    passage = Passage("long", "word " * 100 + "x" * 500, "")
    pieces = list(short.pieces(passage))
    assert all(len(piece.tokens) <= 60 for piece in pieces)
    assert sum(piece.text.count("word") for piece in pieces) == 100


def test_a_title_is_shown_unless_the_text_names_it_and_marks_are_inert() -> None:
    assert titled_text("Bell", "He wrote.") == "Bell: He wrote."
    assert titled_text("Bell", "bell  wrote.") == "bell wrote."
    assert "(S>" not in titled_text("", "(S> x | P> y | O> z)")


def test_targets_are_facts_parted_by_commas() -> None:
    assert target_text([("a", "b", "c"), ("AC|DC", "is", "a band")]) == (
        r"(S> a | P> b | O> c), (S> AC\|DC | P> is | O> a band)"
    )
    assert target_text([]) == "[NONE]"


def test_a_chat_template_is_used_where_the_tokenizer_has_one(
    memorising_model: Callable[[str], Path],
) -> None:
    tokenizer = load_text_model(str(memorising_model("llama")))[1]
    plain = tokenizer.decode(TripleText(tokenizer, seq2seq=False).source("Bell wrote."))
    assert plain.startswith("<s> Convert the following text to triples:")
    assert plain.endswith("Text: Bell wrote.\n\nTriples:")
    turns = "{% for turn in messages %}<{{ turn.role }}>{{ turn.content }}{% endfor %}"
    tokenizer.chat_template = turns + "{% if add_generation_prompt %}<reply>{% endif %}"
    chat = TripleText(tokenizer, seq2seq=False)
    assert tokenizer.decode(chat.source("Bell wrote.")).strip() == (
        "<user>Convert the following text to triples:\n\nText: Bell wrote.<reply>"
    )


def test_specs_name_a_model_and_how_it_decodes() -> None:
    assert read_spec("") == (PUBLIC_MODEL, Decoding())
    assert read_spec("/a/b#beams=4") == ("/a/b", Decoding(beams=4))
    assert read_spec("#beams=8") == (PUBLIC_MODEL, Decoding(beams=8))
    with pytest.raises(
        SettingsError, match=r"no option 'bems=4'; known: beams=N, source_tokens=N"
    ):
        read_spec("/a/b#bems=4")
    with pytest.raises(SettingsError, match="beams has to be at least 1, got 0"):
        read_spec("/a/b#beams=0")


def test_a_folder_without_a_model_is_an_error_that_says_what_belongs_there(
    tmp_path: Path,
) -> None:
    with pytest.raises(
        WeightsError,
        match=says("cannot load", "config.json", "a tokenizer", "safetensors"),
    ):
        resolve_extractor(f"text2triple:{tmp_path}")


def test_the_fingerprint_changes_with_weights_and_decoding_alone(folder: Path) -> None:
    def made(model: Any, tokenizer: Any, **options: Any) -> str:
        return TripleModel(
            TransformersWriter(model, tokenizer),
            name="any",
            decoding=Decoding(**options),
        ).fingerprint

    model, tokenizer = load_text_model(str(folder))
    first = made(model, tokenizer)
    assert first == made(*load_text_model(str(folder)), batch_tokens=50)
    assert first != made(model, tokenizer, beams=2)
    with torch.no_grad():
        next(model.parameters()).add_(1)
    assert first != made(model, tokenizer)
