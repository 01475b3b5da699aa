"""Extracts facts by a local text-to-triples model: any Hugging Face seq2seq (Flan-T5) or causal (Llama, Qwen) model.

    resolve_extractor("text2triple")                              the public model of RAS,
    pat-jj/text2triple-flan-t5
    resolve_extractor("text2triple:/path/of/a/model")             one of your own, by folder or hub name
    resolve_extractor("text2triple:/path#beams=4")                beam search

Texts are read in batches of similar length. Callers that wait while the model is busy share the next batch, so
`ras-agent structure --concurrency 64` fills batches by itself. Rounding depends on a batch's width, so a borderline
fact may occasionally differ with the other texts in its batch.
"""

from __future__ import annotations

import hashlib
import json
import re
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import asdict, dataclass, field, fields
from functools import cached_property
from itertools import chain, islice
from pathlib import Path
from typing import Any, Protocol, Self

from ras_agent.contracts.errors import (
    BudgetExceeded,
    ModelCallError,
    SettingsError,
    WeightsError,
    needs_extra,
)
from ras_agent.contracts.records import Call, Extraction, Failure, Passage, Triple
from ras_agent.running.budget import Ledger, current_ledger
from ras_agent.running.standing_facts import keep_standing
from ras_agent.tools.roles import RoleOptions
from ras_agent.tools.structure.llm import located, problem_of
from ras_agent.tools.structure.parse_triples import parse_triples
from ras_agent.tools.structure.triple_text import (
    SOURCE_TOKENS,
    TARGET_TOKENS,
    Piece,
    TripleText,
)
from ras_agent.tools.structure.two_fields import mended

PUBLIC_MODEL = "pat-jj/text2triple-flan-t5"
"""The model that RAS's authors published."""

_ROWS = 64  # most texts of a batch


@dataclass(frozen=True, slots=True)
class Decoding:
    """Sets how facts are generated. The default lengths are those of RAS; its authors' own code uses 8 beams."""

    beams: int = 1
    """The number of beams; 1 for greedy decoding."""
    source_tokens: int = SOURCE_TOKENS
    """The maximum number of tokens of a text."""
    target_tokens: int = TARGET_TOKENS
    """The maximum number of tokens of its facts."""
    batch_tokens: int = 16384
    """The maximum number of tokens of a batch, including padding and facts."""

    def __post_init__(self) -> None:
        for option in fields(self):
            if getattr(self, option.name) < 1:
                raise SettingsError(
                    f"{option.name} has to be at least 1, got {getattr(self, option.name)}"
                )


@dataclass(frozen=True, slots=True)
class ModelReply:
    """Holds a model's reply for one piece of text."""

    text: str
    tokens: int
    cut_off: bool
    """Whether the reply reached its limit before it was finished."""


class Writer(Protocol):
    """Describes a model that writes the facts of texts, wherever it runs."""

    text: TripleText

    @property
    def fingerprint(self) -> str:
        """Return a digest that identifies the model's weights."""
        ...

    def write(self, pieces: Sequence[Piece], decoding: Decoding) -> list[ModelReply]:
        """Return the model's reply for each piece, in order."""
        ...


class TripleModel:
    """Extracts facts by a local model. Each passage is read separately, and a long one in several pieces.

    A piece with unreadable or cut-off facts becomes a Failure, but its readable facts are kept. Safe between
    threads and coroutines: only one pass of the model runs at a time.
    """

    def __init__(
        self, writer: Writer, *, name: str, decoding: Decoding | None = None
    ) -> None:
        self.name = name
        self.decoding = decoding or Decoding()
        self._writer = writer
        self._passes = _Passes(lambda pieces: writer.write(pieces, self.decoding))

    @property
    def fingerprint(self) -> str:
        """Return a hash of everything that determines a passage's facts: weights, prompt and decoding."""
        turns = self._writer.text.prompt.turns
        decoding = asdict(self.decoding)
        del decoding["batch_tokens"]
        identity = [
            self._writer.fingerprint,
            [[turn.role, turn.text] for turn in turns],
            decoding,
        ]
        written = json.dumps(identity, sort_keys=True)
        digest = hashlib.sha256(written.encode()).hexdigest()
        return f"text2triple {digest[:16]}"

    def extract(self, passages: Sequence[Passage], subquery: str = "") -> Extraction:
        """Return the facts of the passages, in their order. The sub-query is ignored."""
        reading = _ReadRequest(self, passages)
        try:
            return reading.facts(self._passes.submit(reading.pieces).result())
        except ModelCallError as error:
            return reading.failed(error)
        finally:
            reading.close()

    async def aextract(
        self, passages: Sequence[Passage], subquery: str = ""
    ) -> Extraction:
        """Return the same as `extract`, as a coroutine."""
        import asyncio

        reading = _ReadRequest(self, passages)
        try:
            return reading.facts(
                await asyncio.wrap_future(self._passes.submit(reading.pieces))
            )
        except ModelCallError as error:
            return reading.failed(error)
        finally:
            reading.close()

    def pieces(self, passage: Passage) -> list[Piece]:
        """Return the pieces in which the model reads a passage."""
        return list(self._writer.text.pieces(passage))


class _ReadRequest:
    """Holds the passages that one caller wants to have read, and the tokens reserved for them in that caller's run."""

    def __init__(self, model: TripleModel, passages: Sequence[Passage]) -> None:
        self.model = model
        self.passages = passages
        self.ledger: Ledger = current_ledger()
        self.pieces: list[Piece] = []
        self.failures: list[Failure] = []
        self.reserved: list[int] = []
        self.began = time.monotonic()
        for piece in chain.from_iterable(map(model.pieces, passages)):
            size = len(piece.tokens)
            try:
                granted = self.ledger.admit(size, model.decoding.target_tokens)
            except BudgetExceeded as error:
                self._add_failure(piece.passage, str(error))
                break
            self.pieces.append(piece)
            self.reserved.append(size + granted)

    def facts(self, outputs: list[ModelReply]) -> Extraction:
        """Return the facts of all pieces, and record a call for each."""
        seconds = (time.monotonic() - self.began) / max(1, len(outputs))
        triples: dict[str, list[Triple]] = {passage.id: [] for passage in self.passages}
        for piece, reply in zip(self.pieces, outputs, strict=True):
            call = Call(
                self.ledger.role,
                self.ledger.hop,
                self.model.name,
                len(piece.tokens),
                reply.tokens,
                seconds=seconds,
            )
            # the reservations may be taken in any order: they are all released or recorded in the end
            self.ledger.record(call, self.reserved.pop())
            parsed = mended(parse_triples(reply.text, cut_off=reply.cut_off))
            triples[piece.passage.id] += parsed.triples
            leftovers = "\n".join(parsed.leftovers)
            if reply.cut_off:
                self._add_failure(
                    piece.passage,
                    "the facts were cut off at their token limit",
                    leftovers,
                )
            elif problem_of(parsed, reply.text):
                self._add_failure(
                    piece.passage, "facts could not be read", leftovers or reply.text
                )
        facts: list[Triple] = []
        for passage in self.passages:
            for triple in dict.fromkeys(triples.pop(passage.id, ())):
                facts.append(located(triple, passage, self.model.name))
        read = Extraction(tuple(facts), tuple(self.failures))
        return keep_standing(read, self.passages, self.ledger.hop)

    def failed(self, error: ModelCallError) -> Extraction:
        """Return a failure for each passage, after the model call failed."""
        for passage in self.passages:
            self._add_failure(passage, str(error))
        return Extraction(failures=tuple(self.failures))

    def close(self) -> None:
        """Release the tokens that were reserved for calls that were not made."""
        while self.reserved:
            self.ledger.release(self.reserved.pop())

    def _add_failure(self, passage: Passage, message: str, detail: str = "") -> None:
        located = f"{message} (passage {passage.id})"
        self.failures.append(
            Failure("extractor", located, self.ledger.hop, detail[:500])
        )


class _Passes:
    """Queues the pieces of waiting callers for a model, which runs in one thread at a time.

    Each pass reads the pieces of all waiting callers.
    """

    def __init__(self, write: Callable[[Sequence[Piece]], list[ModelReply]]) -> None:
        self._write = write
        self._lock = threading.Lock()
        self._waiting: list[tuple[Sequence[Piece], Future[list[ModelReply]]]] = []
        self._running = False

    def submit(self, pieces: Sequence[Piece]) -> Future[list[ModelReply]]:
        """Return a future of the model's replies for the pieces."""
        future: Future[list[ModelReply]] = Future()
        if not pieces:
            future.set_result([])
            return future
        with self._lock:
            self._waiting.append((pieces, future))
            begin = not self._running
            self._running = True
        if begin:
            # daemon: the process may end when no caller waits for the result
            threading.Thread(target=self._run, name="text2triple", daemon=True).start()
        return future

    def _run(self) -> None:
        while True:
            with self._lock:
                jobs = self._waiting
                self._waiting = []
                if not jobs:
                    self._running = False
                    return
            jobs = [job for job in jobs if job[1].set_running_or_notify_cancel()]
            try:
                together = [piece for pieces, _ in jobs for piece in pieces]
                outputs = iter(self._write(together))
                for pieces, future in jobs:
                    future.set_result(list(islice(outputs, len(pieces))))
            except BaseException as error:
                for _, future in jobs:
                    if not future.done():
                        future.set_exception(error)


@dataclass
class TransformersWriter:
    """Runs a transformers model in this process, on a GPU if there is one."""

    model: Any
    tokenizer: Any
    prompts_dir: str | Path | None = None
    source_tokens: int = SOURCE_TOKENS
    text: TripleText = field(init=False)

    def __post_init__(self) -> None:
        self.text = TripleText(
            self.tokenizer,
            seq2seq=bool(self.model.config.is_encoder_decoder),
            prompts_dir=self.prompts_dir,
            source_tokens=self.source_tokens,
        )
        self.model.eval()

    @classmethod
    def load(
        cls,
        name: str,
        *,
        prompts_dir: str | Path | None = None,
        source_tokens: int = SOURCE_TOKENS,
    ) -> Self:
        """Load a model, given by a folder or a hub name.

        Raises WeightsError if it cannot be loaded, and MissingExtra if a package is not installed.
        """
        import torch

        model, tokenizer = load_text_model(name)
        device = "cuda" if torch.cuda.is_available() else "cpu"
        # bfloat16 is slow on a CPU, and twice as fast on a GPU that supports it
        kind = torch.float32
        if device == "cuda" and torch.cuda.is_bf16_supported():
            kind = torch.bfloat16
        return cls(model.to(device, kind), tokenizer, prompts_dir, source_tokens)

    @property
    def fingerprint(self) -> str:
        """Return a hash of the weights."""
        return self._digest

    @cached_property
    def _digest(self) -> str:
        digest = hashlib.sha256()
        for name, tensor in sorted(self.model.state_dict().items()):
            values = tensor.detach().float().cpu().contiguous()
            digest.update(name.encode())
            digest.update(values.numpy().tobytes())
        return digest.hexdigest()

    def write(self, pieces: Sequence[Piece], decoding: Decoding) -> list[ModelReply]:
        """Return the model's reply for each piece, in order."""
        replies: dict[int, ModelReply] = {}
        lengths = [len(piece.tokens) for piece in pieces]
        for places in batches_of_like_length(lengths, decoding):
            batch = [pieces[place] for place in places]
            written = self._in_memory(batch, decoding)
            replies.update(zip(places, written, strict=True))
        return [replies[place] for place in range(len(pieces))]

    def _in_memory(
        self, pieces: Sequence[Piece], decoding: Decoding
    ) -> list[ModelReply]:
        """Write the replies for a batch; if the GPU has too little memory, halve the batch. Raises ModelCallError."""
        import torch

        try:
            return self.write_batch(pieces, decoding)
        except torch.cuda.OutOfMemoryError as error:
            if len(pieces) == 1:
                raise ModelCallError(
                    f"not enough memory to read a text of {len(pieces[0].tokens)} tokens: give fewer beams or source_tokens"
                ) from error
        torch.cuda.empty_cache()
        half = len(pieces) // 2
        return self._in_memory(pieces[:half], decoding) + self._in_memory(
            pieces[half:], decoding
        )

    def write_batch(
        self, pieces: Sequence[Piece], decoding: Decoding
    ) -> list[ModelReply]:
        """Return the model's replies for pieces that fit into one batch."""
        import torch

        tokenizer = self.tokenizer
        pad = tokenizer.pad_token_id
        if pad is None:
            pad = tokenizer.eos_token_id
        longest = max(len(piece.tokens) for piece in pieces)
        rows = torch.full((len(pieces), longest), pad)
        attention = torch.zeros_like(rows)
        for row, seen, piece in zip(rows, attention, pieces, strict=True):
            size = len(piece.tokens)
            # a causal model continues at the end of its input, so padding comes first
            text = (
                slice(None, size) if self.text.seq2seq else slice(longest - size, None)
            )
            row[text] = torch.tensor(piece.tokens)
            seen[text] = 1
        options: dict[str, Any] = {}
        if decoding.beams > 1:
            # the settings of the public model's authors
            options = {
                "num_beams": decoding.beams,
                "early_stopping": True,
                "length_penalty": 0.6,
            }
        with torch.inference_mode():
            output = self.model.generate(
                input_ids=rows.to(self.model.device),
                attention_mask=attention.to(self.model.device),
                max_new_tokens=decoding.target_tokens,
                do_sample=False,
                pad_token_id=pad,
                **options,
            )
        # skip the decoder's start token, or the prompt
        begins = 1 if self.text.seq2seq else longest
        return [self._output(row[begins:]) for row in output.tolist()]

    @cached_property
    def _ends(self) -> frozenset[int]:
        """Return the ids of the tokens that end a text, by the tokenizer and the model's generation config."""
        ends = getattr(self.model.generation_config, "eos_token_id", None)
        if not isinstance(ends, list):
            ends = [ends]
        ends = [*ends, self.tokenizer.eos_token_id]
        return frozenset(end for end in ends if end is not None)

    def _output(self, tokens: list[int]) -> ModelReply:
        end = 0
        while end < len(tokens) and tokens[end] not in self._ends:
            end += 1
        text = self.tokenizer.decode(
            tokens[:end], skip_special_tokens=True, clean_up_tokenization_spaces=False
        )
        cut_off = end == len(tokens)
        return ModelReply(text.strip(), end + (not cut_off), cut_off)


def batches_of_like_length(
    lengths: Sequence[int], decoding: Decoding
) -> list[list[int]]:
    """Return the numbers of texts, grouped into batches of at most `decoding.batch_tokens`, the longest texts first.

    The longest batch comes first so that a lack of memory shows early. Each row counts with the longest text of its
    batch plus the room for facts, times the number of beams.

    Args:
        lengths: the tokens of each text.
    """
    batches: list[list[int]] = []
    most = 0
    for place in sorted(range(len(lengths)), key=lambda place: -lengths[place]):
        if not batches or len(batches[-1]) >= most:
            row = decoding.beams * (lengths[place] + decoding.target_tokens)
            most = min(_ROWS, decoding.batch_tokens // row)
            batches.append([])
        batches[-1].append(place)
    return batches


def load_text_model(name: str) -> tuple[Any, Any]:
    """Load a model, seq2seq or causal by its config, and its tokenizer, given by a folder or a hub name.

    Only safetensors are read. Raises WeightsError if the model cannot be loaded, and MissingExtra without
    transformers.
    """
    with needs_extra("a local text-to-triples model", "llm"):
        from transformers import (
            AutoConfig,
            AutoModelForCausalLM,
            AutoModelForSeq2SeqLM,
            AutoTokenizer,
        )
    try:
        config = AutoConfig.from_pretrained(name)
        kind = (
            AutoModelForSeq2SeqLM if config.is_encoder_decoder else AutoModelForCausalLM
        )
        model = kind.from_pretrained(name, dtype="auto", use_safetensors=True)
        return model, AutoTokenizer.from_pretrained(name)
    except (OSError, ValueError, KeyError) as error:
        why = str(error).strip().partition("\n")[0]
        raise WeightsError(
            f"cannot load the text-to-triples model {name!r}, a folder with config.json, a tokenizer and safetensors, "
            f"or a hub name: {why}"
        ) from error


_OPTION = re.compile(r"(?P<name>[a-z_]+)(?:=(?P<value>\d+))?")


def read_spec(argument: str) -> tuple[str, Decoding]:
    """Return the model and the decoding in an argument such as "/path#beams=4". Raises SettingsError for unknown
    options.
    """
    model, _, written = argument.partition("#")
    known = Decoding.__dataclass_fields__
    options = {}
    for option in filter(None, written.split(",")):
        match = _OPTION.fullmatch(option.strip())
        if match is None or match["name"] not in known:
            listed = ", ".join(f"{name}=N" for name in known)
            raise SettingsError(
                f"a text-to-triples model has no option {option.strip()!r}; known: {listed}"
            )
        options[match["name"]] = int(match["value"] or 0)
    return model or PUBLIC_MODEL, Decoding(**options)


def text2triple(argument: str, options: RoleOptions) -> TripleModel:
    """Build the extractor on a transformers model.

    Args:
        argument: a model and options, see `read_spec`; "" for the public model.
    """
    argument = argument or PUBLIC_MODEL
    name, decoding = read_spec(argument)
    writer = TransformersWriter.load(
        name, prompts_dir=options.prompts_dir, source_tokens=decoding.source_tokens
    )
    return TripleModel(writer, name=f"text2triple:{argument}", decoding=decoding)
