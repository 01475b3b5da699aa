"""Reads GraphQA (He et al., 2024): questions that each come with a small graph.

ExplaGraphs (Saha et al., 2021) asks whether two arguments agree, given a common-sense graph. SceneGraphs are
GQA's questions (Hudson and Manning, 2019) with scene graphs in place of the images. The answerer can be asked
to list the nodes and edges behind its answer; a metric then checks that the graph contains them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path

from ras_agent.contracts.errors import IngestError
from ras_agent.eval.benchmarks.registry import Benchmark, registered
from ras_agent.eval.question import Question, TextualGraph
from ras_agent.eval.question_file import KEY, QuestionRecord, read_records

VALIDITY = ("valid_nodes", "valid_edges", "fully_valid")
_CLASSES = ("support", "counter")
_EDGE = re.compile(r"\s*+\(([^;]*+);([^;]*+);([^;]*)\)(?=\s*+(?:\(|$))")
_FILES = ("sceneGraphs.json", "train_sceneGraphs.json", "val_sceneGraphs.json")


def parse_explanation(text: str, record: QuestionRecord) -> list[tuple[str, str, str]]:
    """Return the edges in "(head; relation; tail)(head; relation; tail)...". Raises IngestError for anything else."""
    edges = []
    end = 0
    while match := _EDGE.match(text, end):
        edges.append((match[1].strip(), match[2].strip(), match[3].strip()))
        end = match.end()
    if text[end:].strip() or not edges:
        raise record.error(
            f"'graph' should be (head; relation; tail)..., found {text[end:].strip()!r:.80}"
        )
    return edges


def _read_explanation(record: QuestionRecord) -> Question:
    label = record.text("label")
    if label not in _CLASSES:
        raise record.error(
            f"'label' should be {' or '.join(_CLASSES)}, found {label!r}"
        )
    graph = TextualGraph.from_triples(parse_explanation(record.text("graph"), record))
    return Question(
        id=record.identity,
        question=f"Argument 1: {record.text('arg1')}\nArgument 2: {record.text('arg2')}\n"
        "Does the second argument support or counter the first?",
        answers=(label,),
        type=label,
        metadata={"label": label, "classes": list(_CLASSES), "graph": graph.to_dict()},
    )


def scene_graph(record: QuestionRecord) -> TextualGraph:
    """Return the graph of a scene. A node's text is "name: ...; attribute: ...; (x,y,w,h): ...", and edges are
    relations.
    """
    objects = record.inside(record.data.get("objects"), "objects")
    places = {identity: place for place, identity in enumerate(objects.data)}
    nodes = []
    edges = []
    for identity, place in places.items():
        thing = record.inside(objects.data[identity], f"object {identity}")
        attributes = thing.texts("attributes", default=())
        box = ", ".join(thing.text(side) for side in ("x", "y", "w", "h"))
        parts = [f"name: {thing.text('name')}"]
        if attributes:
            parts.append(f"attribute: {', '.join(attributes)}")
        parts.append(f"(x,y,w,h): ({box})")
        nodes.append("; ".join(parts))
        for relation in thing.objects("relations", default=()):
            target = relation.text("object")
            if target not in places:
                raise relation.error(
                    f"'object' is {target!r}, which the scene does not have: give the id of one of its objects"
                )
            edges.append((place, relation.text("name"), places[target]))
    return TextualGraph(tuple(nodes), tuple(edges))


def read_scene_graphs(path: str | Path) -> dict[str, TextualGraph]:
    """Return the scene graphs in GQA's JSON by image id.

    Raises:
        IngestError: an image's graph cannot be read; the error names its place.
    """
    return {record.text(KEY): scene_graph(record) for record in read_records(path)}


def _read_scene(graphs: Mapping[str, TextualGraph], record: QuestionRecord) -> Question:
    """Return the question of a GQA record (imageId, fullAnswer) or of a row of GraphQA's questions.csv (image_id)."""
    image = record.text("imageId", "image_id")
    if image not in graphs:
        raise record.error(
            f"image {image!r} has no scene graph: put the file of scene graphs that has it into the questions' folder"
        )
    full = record.text("fullAnswer", "full_answer", default="")
    return Question(
        id=record.identity_under("q_id", "question_id", KEY),
        question=record.text("question"),
        answers=(record.text("answer"),),
        metadata={
            "image": image,
            "full_answer": full,
            "graph": graphs[image].to_dict(),
        },
    )


def _scene_reader(questions: Path) -> Callable[[QuestionRecord], Question]:
    """Return a function that reads one record of the file `questions`, with the scene graphs from files in its
    folder.
    """

    @cache
    def graphs() -> Mapping[str, TextualGraph]:
        files = []
        for name in _FILES:
            if questions.with_name(name).is_file():
                files.append(questions.with_name(name))
        if not files:
            raise IngestError(
                f"the folder {questions.parent} has no file of scene graphs, {' or '.join(_FILES)}; {SCENE_GRAPHS.source}"
            )
        read: dict[str, TextualGraph] = {}
        for file in files:
            read |= read_scene_graphs(file)
        return read

    return lambda record: _read_scene(graphs(), record)


EXPLAGRAPHS = registered(
    Benchmark(
        name="explagraphs",
        title="GraphQA: ExplaGraphs",
        source="get train_dev.tsv (arg1, arg2, label, graph) from github.com/XiaoxinHe/G-Retriever, "
        "dataset/expla_graphs",
        read=_read_explanation,
        metrics=("accuracy", *VALIDITY),
        instructions={"answer": "Reply with one word: support or counter."},
        cites=True,
        files={"all": "train_dev.tsv"},
        counts={"train_dev.tsv": 2766},
    )
)
SCENE_GRAPHS = registered(
    Benchmark(
        name="scenegraphs",
        title="GraphQA: SceneGraphs",
        source="get sceneGraphs.zip and questions1.2.zip from cs.stanford.edu/people/dorarad/gqa (CC BY 4.0), and "
        "GraphQA's sample of 100,000 questions, questions.csv, from github.com/XiaoxinHe/G-Retriever "
        "(dataset/scene_graphs), all files in one folder",
        reader=_scene_reader,
        metrics=("golden_match", "em", *VALIDITY),
        instructions={"answer": "Reply with a word or a short phrase."},
        cites=True,
        files={
            "all": "questions.csv",
            "train": "train_balanced_questions.json",
            "validation": "val_balanced_questions.json",
        },
        counts={"questions.csv": 100_000},
    )
)
