"""Answers a question about one graph, showing a GraphLLM the same part of the graph in training and in use.

    reader = GraphReader.load("/path")
    reader.replies([("What is on the table?", Graph.of_texts(["cup", "table"], [(0, "on", 1)]))])

Sources: G-Retriever (arXiv:2402.07630) and Align-GRAG (arXiv:2505.16237). A prize-collecting Steiner tree extracts the
question's part of the graph, an aligner may prune it, the prompt shows the rest as two CSV blocks, and a graph encoder
reads the same rest.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from ras_agent.contracts.errors import SettingsError, WeightsError
from ras_agent.contracts.graph_batch import GraphFeatures
from ras_agent.prompts import Turn, as_data, load
from ras_agent.tools.embed.embedders import query_vector
from ras_agent.tools.graph_tokens.features import GraphVectors
from ras_agent.tools.store.card import read_card, write_card
from ras_agent.tools.subgraph.graph import Graph, Subgraph, textualise
from ras_agent.tools.subgraph.pcst import prizes_of, steiner_tree

if TYPE_CHECKING:
    from ras_agent.tools.graph_tokens.aligner import GraphAligner
    from ras_agent.tools.graph_tokens.graph_llm import Generated, GraphLLM

VIEW = "view.json"
ALIGNER = "aligner"
PROMPTS = "prompts"
_PROMPT = "graph-question"
_CITING = "graph-question-citing"
_FORM = "graph view"
_VERSION = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class GraphView:
    """Sets which part of a graph a question's prompt shows, and how. Raises SettingsError for a number below 0.

    `top_nodes` and `top_edges` are how many nodes and edges get prizes, and the greatest prizes, by the rules of
    G-Retriever's code (`prizes_of`); 0 and 0 take the whole graph.
    """

    top_nodes: int = 0
    top_edges: int = 0
    edge_cost: float = 0.5
    """The cost of an edge in the Steiner tree."""
    n_seed: int = 0
    """The number of nodes to which, with their neighbours, an aligner prunes the tree; 0 for no pruning."""
    text: bool = True
    """Whether the prompt contains the graph as CSV."""
    graph_text_tokens: int = 512
    """The maximum number of tokens of this CSV; further rows are left out."""
    task: str = ""
    """An instruction above the question."""
    cite: bool = False
    """Whether a reply should list the nodes and edges that support it."""
    reply_tokens: int = 32
    """The maximum number of tokens of a reply."""

    def __post_init__(self) -> None:
        numbers = (
            self.top_nodes,
            self.top_edges,
            self.edge_cost,
            self.n_seed,
            self.graph_text_tokens,
        )
        if min(numbers) < 0 or self.reply_tokens < 1:
            raise SettingsError(
                f"a graph view's numbers have to be at least 0, and reply_tokens at least 1; got {self}"
            )


@dataclass(frozen=True, slots=True)
class GraphInput:
    """Holds a prompt and the graph to read with it."""

    turns: tuple[Turn, ...]
    nodes: tuple[str, ...]
    """The nodes' texts."""
    edges: tuple[tuple[int, str, int], ...]
    """(index of the source, text, index of the target)."""

    def features(self, vectors: GraphVectors) -> GraphFeatures:
        """Return the graph's features for an encoder."""
        return vectors.of_graph(self.nodes, self.edges)


class GraphPrompts:
    """Builds a GraphLLM's inputs from questions and their graphs."""

    def __init__(
        self,
        view: GraphView,
        vectors: GraphVectors,
        count: Callable[[str], int],
        aligner: GraphAligner | None = None,
        prompts_dir: str | Path | None = None,
    ) -> None:
        """Take the parts. Raises SettingsError for a view that prunes without an aligner.

        Args:
            vectors: computes the vectors of the graph's texts.
            count: returns how many tokens a text has.
            aligner: prunes the graph, if the view asks for it.
            prompts_dir: a folder with a graph-question.txt that overrides the packaged prompt.
        """
        if view.n_seed and aligner is None:
            raise SettingsError(
                f"pruning to n_seed = {view.n_seed} nodes needs an aligner: give an aligner, or set n_seed to 0"
            )
        self.view = view
        self._vectors = vectors
        self.count = count
        self.aligner = aligner
        self.prompt = load(_CITING if view.cite else _PROMPT, prompts_dir)

    def input(self, question: str, graph: Graph) -> GraphInput:
        """Return the model's input for a question about a graph."""
        part = self.subgraph(question, graph)
        if self.view.text:
            rows = textualise(part).splitlines(keepends=True)
        else:
            rows = []
        turns = self.prompt.fill(
            graph=as_data("".join(self._fitting(rows)).strip()),
            task=self.view.task,
            question=as_data(question),
        )
        return GraphInput(turns, *part.texts())

    def subgraph(self, question: str, graph: Graph) -> Subgraph:
        """Return the part of the graph that the prompt shows."""
        part = self._steiner_tree(question, graph)
        if not self.view.n_seed or self.aligner is None:
            return part
        features = self.aligner.vectors.of_graph(*part.texts())
        nodes, edges = self.aligner.prune(features, question, self.view.n_seed)
        return Subgraph.of_edges(graph, part.edges[edges], part.nodes[nodes])

    def _steiner_tree(self, question: str, graph: Graph) -> Subgraph:
        view = self.view
        whole = Subgraph.full(graph)
        if not (view.top_nodes or view.top_edges) or not len(graph.edges):
            return whole
        vector = query_vector(self._vectors.embedder, question)
        prizes = prizes_of(
            self._vectors.of_texts(graph.nodes) @ vector,
            (self._vectors.of_texts(graph.relations) @ vector)[graph.edges[:, 1]],
            nodes=view.top_nodes,
            edges=view.top_edges,
            cost=view.edge_cost,
            published=True,
        )
        return steiner_tree(whole, prizes, published=True)

    def _fitting(self, rows: Sequence[str]) -> Iterator[str]:
        """Yield the first rows, up to the view's number of tokens."""
        room = self.view.graph_text_tokens
        for row in rows:
            room -= self.count(row)
            if room < 0:
                return
            yield row


class GraphReader:
    """Answers questions about graphs by a GraphLLM, in the way it was trained to."""

    def __init__(self, model: GraphLLM, prompts: GraphPrompts) -> None:
        """Take the model, and the builder of its inputs."""
        self.model = model
        self.prompts = prompts

    def replies(
        self, questions: Sequence[tuple[str, Graph]], batch: int = 8
    ) -> list[Generated]:
        """Return a reply to each question about its graph, generating `batch` of them at once."""
        inputs = [self.prompts.input(*pair) for pair in questions]
        return self.replies_to(inputs, batch)

    def replies_to(
        self, inputs: Sequence[GraphInput], batch: int = 8
    ) -> list[Generated]:
        """Return a reply to each input made by `prompts`, generating `batch` of them at once."""
        replies: list[Generated] = []
        most_tokens = self.prompts.view.reply_tokens
        for first in range(0, len(inputs), batch):
            turns = []
            graphs = []
            for item in inputs[first : first + batch]:
                turns.append(item.turns)
                graphs.append(self.model.features(item))
            replies += self.model.generate(turns, graphs, most_tokens)
        return replies

    def save(self, folder: str | Path, aligner: str | Path | None = None) -> None:
        """Write model, view and prompt into a folder.

        Args:
            aligner: the folder of the aligner that prunes, which is copied.
        """
        folder = Path(folder)
        self.model.save(folder)
        card = {
            "format": f"ras-agent {_FORM}",
            "version": _VERSION,
            "view": asdict(self.prompts.view),
        }
        write_card(folder / VIEW, card)
        (folder / PROMPTS).mkdir(exist_ok=True)
        turns = "\n".join(
            f"--- {turn.role}\n{turn.text}" for turn in self.prompts.prompt.turns
        )
        (folder / PROMPTS / f"{self.prompts.prompt.name}.txt").write_text(
            f"{turns}\n", encoding="utf-8"
        )
        if aligner is not None and self.prompts.view.n_seed:
            from ras_agent.tools.graph_tokens.aligner import CONFIG, WEIGHTS

            (folder / ALIGNER).mkdir(exist_ok=True)
            for name in (CONFIG, WEIGHTS):
                shutil.copyfile(Path(aligner) / name, folder / ALIGNER / name)

    @classmethod
    def load(cls, folder: str | Path, **changes: Any) -> Self:
        """Load the GraphReader in a folder, on a GPU if there is one. Raises WeightsError for a folder without one.

        Args:
            changes: fields of the view to change, such as `cite`.
        """
        import torch

        from ras_agent.tools.graph_tokens.aligner import GraphAligner
        from ras_agent.tools.graph_tokens.graph_llm import GraphLLM

        folder = Path(folder)
        view = replace(_read_view(folder / VIEW), **changes)
        model = GraphLLM.load(folder).to("cuda" if torch.cuda.is_available() else "cpu")
        if view.n_seed:
            aligner = GraphAligner.load(folder / ALIGNER)
        else:
            aligner = None
        return cls(
            model,
            GraphPrompts(
                view, model.vectors, model.count_tokens, aligner, folder / PROMPTS
            ),
        )


def _read_view(file: Path) -> GraphView:
    """Return the view in a file. Raises WeightsError if it is missing or has another format."""
    card = read_card(file, _FORM, _VERSION, "python -m ras_agent.train.graphqa.train")
    try:
        return GraphView(**card["view"])
    except (ValueError, KeyError, TypeError, SettingsError) as error:
        raise WeightsError(
            f"{file}: not the settings of a graph view ({error}): train the model again"
        ) from error
