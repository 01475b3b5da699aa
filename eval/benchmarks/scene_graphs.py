"""SceneGraphs in GraphQA (Hudson and Manning, 2019; He et al., 2024): GQA's questions, scene graphs for images."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path

from ras_agent.errors import IngestError
from ras_agent.eval.benchmarks.citing_graphs import CITING, VALIDITY
from ras_agent.eval.benchmarks.record import Benchmark
from ras_agent.eval.question import Question, TextualGraph
from ras_agent.eval.question_file import KEY, QuestionRecord, read_records

__all__ = ["SCENE_GRAPHS", "read_scene_graphs", "scene_graph"]

_FILES = ("sceneGraphs.json", "train_sceneGraphs.json", "val_sceneGraphs.json")


def scene_graph(record: QuestionRecord) -> TextualGraph:
    """A scene's objects as nodes, "name: ...; attribute: ...; (x,y,w,h): ...", their relations as edges."""
    objects = record.inside(record.data.get("objects"), "objects")
    places = {identity: place for place, identity in enumerate(objects.data)}
    nodes, edges = [], []
    for identity, place in places.items():
        thing = record.inside(objects.data[identity], f"object {identity}")
        attributes = thing.texts("attributes") if "attributes" in thing else ()
        box = ", ".join(thing.text(side) for side in ("x", "y", "w", "h"))
        parts = [f"name: {thing.text('name')}", f"attribute: {', '.join(attributes)}", f"(x,y,w,h): ({box})"]
        nodes.append("; ".join(part for part in parts if attributes or not part.startswith("attribute")))
        for relation in thing.objects("relations") if "relations" in thing else ():
            target = relation.text("object")
            if target not in places:
                raise relation.error(f"there is no object {target!r} in the scene")
            edges.append((place, relation.text("name"), places[target]))
    return TextualGraph(tuple(nodes), tuple(edges))


def read_scene_graphs(path: str | Path) -> dict[str, TextualGraph]:
    """Scene graphs by image id from GQA's JSON. Raises IngestError with the image's place."""
    return {record.text(KEY): scene_graph(record) for record in read_records(path)}


def _read(graphs: Mapping[str, TextualGraph], record: QuestionRecord) -> Question:
    """GQA's question record (imageId, question, answer, fullAnswer) or a row of GraphQA's questions.csv (image_id)."""
    image = record.text("imageId", "image_id")
    if image not in graphs:
        raise record.error(f"there is no scene graph of image {image!r}; put its file beside the questions")
    identity = next((record.text(key) for key in ("q_id", "question_id", KEY) if key in record), "")
    full = next((record.text(key) for key in ("fullAnswer", "full_answer") if key in record), "")
    return Question(
        id=identity or str(record.number),
        question=record.text("question"),
        answers=(record.text("answer"),),
        metadata={"image": image, "full_answer": full, "graph": graphs[image].to_dict()},
    )


def _beside(questions: Path) -> Callable[[QuestionRecord], Question]:
    """The reader for a file of questions: it looks into all scene graphs in the file's folder."""

    @cache
    def graphs() -> Mapping[str, TextualGraph]:
        found = [questions.with_name(name) for name in _FILES if questions.with_name(name).is_file()]
        if not found:
            raise IngestError(f"{questions.parent}: holds none of {', '.join(_FILES)}; {SCENE_GRAPHS.source}")
        return {image: graph for file in found for image, graph in read_scene_graphs(file).items()}

    return lambda record: _read(graphs(), record)


SCENE_GRAPHS = Benchmark(
    name="scenegraphs",
    title="GraphQA: SceneGraphs",
    source="get sceneGraphs.zip and questions1.2.zip from cs.stanford.edu/people/dorarad/gqa (CC BY 4.0), and "
    "GraphQA's sample of 100,000 questions, questions.csv, from github.com/XiaoxinHe/G-Retriever "
    "(dataset/scene_graphs), all files in one folder",
    reader=_beside,
    metrics=("golden_match", "em", *VALIDITY),
    instructions={"answer": "Reply with a word or a short phrase.", "answer_citing": CITING},
    files={
        "all": "questions.csv",
        "train": "train_balanced_questions.json",
        "validation": "val_balanced_questions.json",
    },
    counts={"questions.csv": 100_000},
)
