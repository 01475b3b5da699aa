"""Speed, exactness and memory of the GFM network's fast scores, beside two plain passes in the same run.

    python -m ras_agent.eval.bench_gfm --openie corpus_openie.jsonl --questions questions.jsonl --zipf
    python -m ras_agent.eval.bench_gfm --index my.index --questions questions.jsonl

Three graphs: one of a file of OpenIE facts, with equivalence edges, as `ras-agent kg build` makes it; one that was
built beside an index; and a synthetic one of the size of GFM-RAG's HotpotQA graph (87,768 entities, 45,112 relations,
279,112 facts) whose degrees follow Zipf's law. Width 512, six layers, sentence vectors of 768; weights and vectors are
random, which changes no time.
The questions: of real graphs, 50 from the file that name an entity, which is then where they start; of the synthetic
one, a tenth as many, of three entities drawn as facts draw them. Then ten (synthetic: two) that start at one of the
best connected hundredth. The plain systems and the autograd network take long: they answer --slow of each kind.

    plain           every state of every entity, relation states too, with the compiled kernel for the messages, as the
                    published code works
    plain, kept     the same with relation states that were kept
    autograd        ras_agent.tools.encode.gfm.network's plain_scores, the reference for exactness (real graphs only)
    fast            FastGFM
    fast, half      with its half-precision cache
    fast, bfloat16  with that and products in bfloat16, which pays on processors that have them

Every system has a process of its own, so that peak memory is its own. Times are medians over what it answered. Other
programs disturb the time by the clock, less so the seconds of processor time over all threads: `CPU ratio` is of the
median usual question's processor time against the first system, `to kept` against "plain, kept", `connected` against
the first system for the well connected. `moved` are the bytes that the fast pass has to read and write, `floor` is what
they and its products take at the rates this machine reached in the same run, beside whatever else ran on it.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from ras_agent.canonical import canonical_key
from ras_agent.records import Source, Triple
from ras_agent.tools.encode.gfm.config import GFMConfig
from ras_agent.tools.encode.gfm.fast import FastGFM, Start
from ras_agent.tools.encode.gfm.graph import GFMGraph
from ras_agent.tools.encode.gfm.index_states import ROWS
from ras_agent.tools.encode.gfm.kept import Kept
from ras_agent.tools.encode.gfm.kernel import hear
from ras_agent.tools.encode.gfm.network import (
    Messages,
    initial_weights,
    layer_relations,
    plain_scores,
    relation_inputs,
    update,
)
from ras_agent.tools.encode.gfm.reach import Outgoing, reach
from ras_agent.tools.index.kg.facts import PassageFacts
from ras_agent.tools.index.kg.index import KGIndex

if TYPE_CHECKING:
    from torch import Tensor

__all__ = ["main", "openie_case", "zipf_case"]

Case = dict[str, npt.NDArray[Any]]
CONFIG = GFMConfig()
ENTITIES, RELATIONS, FACTS = 87_768, 45_112, 279_112
COLUMNS = {
    "answered": "answered",
    "median ms": "median_ms",
    "p95 ms": "p95_ms",
    "CPU ms": "cpu_ms",
    "CPU ratio": "cpu_ratio",
    "to kept": "kept_cpu_ratio",
    "connected": "connected_cpu_ratio",
    "difference": "difference",
    "kept MB": "kept_mb",
    "peak MB": "peak_mb",
    "moved MB": "moved_mb",
    "floor ms": "floor_ms",
}
SYSTEMS = ("plain", "plain, kept", "autograd", "fast", "fast, half", "fast, bfloat16")


def openie_case(openie: Path, questions: Path, count: int, connected: int) -> Case:
    """Edges and questions' entities of a file of OpenIE facts and a file of questions."""
    return real_case(KGIndex.in_memory(_facts(openie), embedder="minilm"), questions, count, connected)


def real_case(kg: KGIndex, questions: Path, count: int, connected: int) -> Case:
    """Edges of `kg`, and the entities of the first `count` questions of a file that name some."""
    texts = [json.loads(line)["question"] for line in questions.read_text("utf-8").splitlines()]
    starts = [found for text in texts if len(found := _named(kg, text))][:count]
    return _case(len(kg.entities), len(kg.relations), kg.edges, starts, connected)


def zipf_case(entities: int, relations: int, facts: int, count: int, connected: int, seed: int = 0) -> Case:
    """Facts whose ends and relations follow Zipf's law (exponent 0.8), numbered at random."""
    rng = np.random.default_rng(seed)

    names, kinds = rng.permutation(entities), rng.permutation(relations)

    def drawn(numbers: npt.NDArray[np.int64], size: int) -> npt.NDArray[np.int64]:
        chances = np.cumsum(np.arange(1, len(numbers) + 1) ** -0.8)
        found: npt.NDArray[np.int64] = numbers[np.searchsorted(chances, rng.random(size) * chances[-1])]
        return found

    edges = np.column_stack((drawn(names, facts), drawn(kinds, facts), drawn(names, facts)))
    starts = [np.unique(edges[rng.integers(0, facts, 3), 0]) for _ in range(count)]
    return _case(entities, relations, edges, starts, connected)


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure and print a table a graph."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--openie", type=Path, help="JSON lines with id, title, text, entities, triples")
    parser.add_argument("--questions", type=Path, help="JSON lines with question")
    parser.add_argument("--index", type=Path, help="an index that `ras-agent kg build` has given a graph")
    parser.add_argument("--zipf", action="store_true", help="the synthetic graph too")
    parser.add_argument("--count", type=int, default=50, help="questions of a graph, beside the well connected (50)")
    parser.add_argument("--connected", type=int, default=10, help="well connected ones (10)")
    parser.add_argument("--slow", type=int, default=5, help="how many of each kind the plain systems answer (5)")
    parser.add_argument("--systems", default=";".join(SYSTEMS), help="parted by semicolons")
    parser.add_argument("--json", type=Path, help="write the records there too, one a line")
    parser.add_argument("--job", nargs=2, metavar=("SYSTEM", "FOLDER"), help=argparse.SUPPRESS)
    given = parser.parse_args(arguments)
    if given.job:
        print(json.dumps(_measure(given.job[0], Path(given.job[1]))))
        return
    if (given.openie or given.index) and not given.questions:
        parser.error("--openie and --index need --questions")
    size = given.count, given.connected
    cases: dict[str, Callable[[], Case]] = {}
    if given.openie:
        cases["OpenIE"] = lambda: openie_case(given.openie, given.questions, *size)
    if given.index:
        cases["index"] = lambda: real_case(KGIndex.open(given.index), given.questions, *size)
    if given.zipf:
        cases["Zipf"] = lambda: zipf_case(
            ENTITIES, RELATIONS, FACTS, max(2, given.count // 10), max(2, given.connected // 5)
        )
    for name, make in cases.items():
        systems = [one for one in given.systems.split(";") if name != "Zipf" or one != "autograd"]
        case = {**make(), "slow": np.array(given.slow)}
        for record in _compare(name, case, systems):
            if given.json:
                with given.json.open("a", encoding="utf-8") as file:
                    file.write(json.dumps(record) + "\n")


def _compare(name: str, case: Case, systems: Sequence[str]) -> Iterator[dict[str, Any]]:
    with tempfile.TemporaryDirectory() as folder:
        np.savez(Path(folder) / "case.npz", allow_pickle=False, **case)
        size = f"{case['entities']} entities, {case['relations']} relations, {len(case['edges'])} edges"
        print(f"{name}: {size}, {len(case['indptr']) - 1} questions, {case['connected']} of them well connected")
        print(_row("system", *COLUMNS))
        base: dict[str, Any] | None = None
        kept: dict[str, Any] | None = None
        for system in systems:
            record = {"graph": name, **_in_process(system, folder)}
            base = base or record
            kept = record if system == "plain, kept" else kept
            for unit in ("", "cpu_", "connected_", "connected_cpu_"):
                time_of = f"{unit}ms" if unit.endswith(("cpu_", "connected_")) else "median_ms"
                record[f"{unit}ratio"] = base[time_of] / record[time_of]
            record["kept_cpu_ratio"] = kept["cpu_ms"] / record["cpu_ms"] if kept else None
            expected, found = (np.load(Path(folder) / f"{one}.npy") for one in (base["system"], system))
            record["difference"] = float(np.nanmax(np.abs(expected - found)))
            record["range"] = float(np.nanmax(expected) - np.nanmin(expected))
            print(_row(system, *(_shown(record.get(column)) for column in COLUMNS.values())), flush=True)
            if "gflop" in record:
                print(
                    f"  of the median question: {record['gflop']:.3g} GFLOP, {record['reached']:.0f} entities reached; "
                    f"this machine: {record['gflop_per_s']:.0f} GFLOP/s, {record['copy_gb_per_s']:.3g} GB/s copied"
                )
            yield record


def _measure(system: str, folder: Path) -> dict[str, Any]:
    """Times and peak memory of one system; its scores go to a file beside the case."""
    import torch

    with np.load(folder / "case.npz") as stored:
        case = dict(stored)
    rng = np.random.default_rng(1)
    vectors = rng.normal(size=(2, int(case["relations"]), CONFIG.text_width)).astype(np.float32) / 28
    graph = GFMGraph.from_edges(int(case["entities"]), case["edges"], *vectors)
    del vectors
    starts = [case["starts"][low:high] for low, high in pairwise(case["indptr"])]
    questions = rng.normal(size=(len(starts), CONFIG.text_width)).astype(np.float32) / 28
    weights = initial_weights(CONFIG, 0)
    began = time.perf_counter()
    with torch.inference_mode():
        score, kept = _prepared(system, weights, graph)
        record: dict[str, Any] = {"system": system, "prepare_s": time.perf_counter() - began, "kept_mb": kept / 1e6}
        score(questions[0], starts[0])  # compiles, and maps memory
        first_connected = len(starts) - int(case["connected"])
        times, processor = np.full((2, len(starts)), np.nan)
        scores = np.full((len(starts), graph.entities), np.nan, dtype=np.float32)
        slow = int(case["slow"])
        for row, (question, start) in enumerate(zip(questions, starts, strict=True)):
            last = any(0 < end - row <= slow for end in (first_connected, len(starts)))
            if not last and not system.startswith("fast"):
                continue
            began, used = time.perf_counter(), time.process_time()
            scores[row] = score(question, start)
            times[row], processor[row] = 1e3 * (time.perf_counter() - began), 1e3 * (time.process_time() - used)
    np.save(folder / f"{system}.npy", scores)
    usual, connected = times[:first_connected], times[first_connected:]
    record |= {"answered": int(np.count_nonzero(~np.isnan(times)))}
    record |= {"median_ms": float(np.nanmedian(usual)), "p95_ms": float(np.nanquantile(times, 0.95))}
    record |= {"cpu_ms": float(np.nanmedian(processor[:first_connected]))}
    record |= {"connected_cpu_ms": float(np.nanmedian(processor[first_connected:]))}
    record |= {"connected_ms": float(np.nanmedian(connected)), "peak_mb": _peak_mb()}
    if system == "fast":
        record |= _floor(graph, starts[:first_connected])
    return record


def _prepared(
    system: str, weights: dict[str, Tensor], graph: GFMGraph
) -> tuple[Callable[[Any, Any], npt.NDArray[np.float32]], int]:
    """A function from a question's vector and entities to scores, and the bytes it keeps."""
    import torch

    if system.startswith("fast"):
        half = system in ("fast, half", "fast, bfloat16")
        fast = FastGFM(weights, graph, half_cache=half, half_products=system == "fast, bfloat16")
        ones = np.ones(graph.entities, dtype=np.float32)
        return lambda asked, start: fast.scores(asked[None], [Start(start, ones[: len(start)])])[0], fast.known.bytes
    messages = Messages.of(graph)
    if system == "autograd":

        def reference(asked: Any, start: Any) -> npt.NDArray[np.float32]:
            dense = torch.zeros(1, graph.entities)
            dense[0, start] = 1
            found = plain_scores(weights, messages, torch.from_numpy(asked)[None], dense)
            scores: npt.NDArray[np.float32] = found[0].numpy()
            return scores

        return reference, 0
    kinds: list[Tensor] | None = None
    if system == "plain, kept":
        inputs = relation_inputs(weights, messages.vectors)
        kinds = [layer_relations(weights, layer, inputs) for layer in range(CONFIG.layers)]
    kept = sum(tensor.nbytes for tensor in kinds or ())
    return lambda asked, start: _published(weights, graph, messages.vectors, asked, start, kinds), kept


def _published(
    weights: dict[str, Tensor], graph: GFMGraph, vectors: Tensor, asked: Any, start: Any, kinds: list[Tensor] | None
) -> npt.NDArray[np.float32]:
    """The plain pass as the published code runs it: one kernel for the messages, then whole-graph products."""
    import torch
    from torch.nn.functional import linear, relu

    query = linear(torch.from_numpy(asked), weights["question_mlp.weight"], weights["question_mlp.bias"])
    initial = torch.zeros(graph.entities, CONFIG.width)
    initial[start] = query
    inputs = relation_inputs(weights, vectors) if kinds is None else None
    everyone, ones = np.arange(graph.entities), torch.ones(len(vectors))
    state = initial
    for layer in range(CONFIG.layers):
        kind = layer_relations(weights, layer, inputs) if inputs is not None else (kinds or [])[layer]
        total = torch.empty_like(state)
        hear(graph, everyone, everyone, state, Kept(kind, ones), total)
        state = update(weights, layer, state, total + initial)
    features = torch.cat((state, query.expand_as(state)), dim=-1)
    hidden = relu(linear(features, weights["entity_model.mlp.0.weight"], weights["entity_model.mlp.0.bias"]))
    out = linear(hidden, weights["entity_model.mlp.2.weight"], weights["entity_model.mlp.2.bias"])
    scores: npt.NDArray[np.float32] = out[:, 0].numpy()
    return scores


def _floor(graph: GFMGraph, starts: Sequence[npt.NDArray[np.int64]]) -> dict[str, float]:
    """The median question's work, and the time that its products and bytes take at this machine's measured rates."""
    import torch

    outgoing, d = Outgoing.of(graph), CONFIG.width
    work = []
    for start in starts:
        keys, products, moved = start, 0, 0
        for _ in range(CONFIG.layers):
            reached = reach(outgoing, keys)
            products += 2 * d * d * (len(reached) + len(keys))
            # each message reads a state and a relation; each one reached reads its background and writes itself
            messages = int((outgoing.indptr[keys + 1] - outgoing.indptr[keys]).sum())
            moved += 4 * d * (2 * messages + 2 * len(reached) + len(keys))
            keys = reached
        products += 4 * d * d * len(keys)
        moved += 8 * d * graph.entities  # the part of the score that knows no question
        work.append((products, moved, len(keys)))
    products, moved, touched = np.median(np.array(work, dtype=np.float64), axis=0)
    left, right = torch.randn(ROWS, d), torch.randn(d, d)
    rate = 2 * ROWS * d * d / _best(lambda: left @ right)
    source = torch.randn(64_000_000)
    target = torch.empty_like(source)
    copied = 2 * source.nbytes / _best(lambda: target.copy_(source))
    return {
        "gflop": products / 1e9,
        "moved_mb": moved / 1e6,
        "reached": touched,
        "gflop_per_s": rate / 1e9,
        "copy_gb_per_s": copied / 1e9,
        "floor_ms": 1e3 * max(products / rate, moved / copied),
    }


def _best(call: Callable[[], object]) -> float:
    def seconds() -> float:
        began = time.perf_counter()
        call()
        return time.perf_counter() - began

    return min(seconds() for _ in range(5))


def _case(entities: int, relations: int, edges: Any, starts: list[Any], connected: int) -> Case:
    """A case as arrays; the well connected questions come last."""
    degrees = np.bincount(np.asarray(edges)[:, [0, 2]].ravel(), minlength=entities)
    best = np.argsort(-degrees, kind="stable")[: max(connected, entities // 100)]
    chosen = np.random.default_rng(0).choice(best, connected, replace=False)
    starts = [*starts, *(np.array([one]) for one in chosen)]
    return {
        "entities": np.array(entities),
        "relations": np.array(relations),
        "edges": np.asarray(edges),
        "starts": np.concatenate(starts).astype(np.int64),
        "indptr": np.cumsum([0, *map(len, starts)]),
        "connected": np.array(connected),
    }


def _facts(path: Path) -> Iterator[PassageFacts]:
    for line in path.read_text("utf-8").splitlines():
        row = json.loads(line)
        source = (Source(row["id"], 0, 0),)
        facts = [fact for fact in row["triples"] if len(fact) == 3 and all(fact)]
        triples = tuple(Triple(head, kind, tail, source) for head, kind, tail in facts)
        yield PassageFacts(row["id"], triples, tuple(filter(None, row["entities"])))


def _named(kg: KGIndex, question: str) -> npt.NDArray[np.int64]:
    """The entities whose names stand in a question, the longest at each place."""
    words = question.rstrip("?").split()
    found, place = set(), 0
    while place < len(words):
        for end in range(min(len(words), place + 8), place, -1):
            name = " ".join(words[place:end]).removesuffix("'s")
            entity = kg.entity_id(name) if len(canonical_key(name)) > 3 else None
            if entity is not None and name[:1].isupper():
                found.add(entity)
                break
        place = max(end, place + 1)
    return np.array(sorted(found), dtype=np.int64)


def _in_process(system: str, folder: str) -> dict[str, Any]:
    command = [sys.executable, "-P", "-m", "ras_agent.eval.bench_gfm", "--job", system, folder]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
    record: dict[str, Any] = json.loads(done.stdout)
    return record


def _row(first: str, *cells: str) -> str:
    return f"{first:<15}" + "".join(f"{cell:>11}" for cell in cells)


def _shown(value: object) -> str:
    if isinstance(value, float):
        return f"{value:.3g}" if value < 100 else f"{value:.0f}"
    return "" if value is None else str(value)


def _peak_mb() -> float:
    """The most memory this process has held, in MB."""
    import resource

    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit / 1e6


if __name__ == "__main__":
    main()
