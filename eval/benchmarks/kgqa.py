"""Reads question sets over Freebase: their official files, and RoG's records with a subgraph (Luo et al.,
2024).

Official records have no subgraph. They are asked over an index, or over a graph that the user has added to each
record under the key `graph`, as LEGO-GraphRAG (Cao et al., 2024) does for the four sets. WebQSP can also be
read in lower case, as in GraphQA.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from ras_agent.eval.benchmarks.graphqa import VALIDITY
from ras_agent.eval.benchmarks.registry import (
    Benchmark,
    HubDataset,
    ReadRecord,
    registered,
)
from ras_agent.eval.question import Question, TextualGraph
from ras_agent.eval.question_file import QuestionRecord

_METRICS = (
    # as published: a gold answer anywhere in the reply, the F1 of those in it, and Align-GRAG's accuracy, their share
    *("golden_match", "contained_f1", "contained_recall"),
    # each listed answer as a whole, with its rank
    *("hr@1", "answer_f1", "answer_precision", "answer_recall"),
    *("entity_recall", "entity_f1"),
    # LEGO-GraphRAG's rule
    *("substring_hr@1", "substring_f1"),
)


def kgqa_question(record: QuestionRecord) -> Question:
    """Return the question of a record with question, q_entity (where the search starts), a_entity or answer,
    and graph.

    The gold answer is `answer`, as in published scores, if the record has it; otherwise `a_entity`, the answers
    that are in the graph. `graph` lists [head, relation, tail] triples.
    """
    entities = record.texts("a_entity", default=())
    answers = record.texts("answer", "answers", default=entities)
    graph = _graph_of(record)
    return Question(
        id=record.identity,
        question=record.text("question"),
        answers=tuple(dict.fromkeys(answers)),
        metadata={
            "question_entities": list(record.texts("q_entity", default=())),
            "answer_entities": list(entities),
            "graph": graph.to_dict(),
        },
    )


def webqsp_question(record: QuestionRecord) -> Question:
    """Return the question of a record of WebQSP.train.json or WebQSP.test.json, which has Parses, or of RoG's.

    The gold answers are those of all parses: names of entities, and values unchanged. The search starts at the
    parses' topic entities.
    """
    if "Parses" not in record:
        return kgqa_question(record)
    answers = []
    topics = []
    for parse in record.objects("Parses"):
        for answer in parse.objects("Answers"):
            answers.append(answer.text("EntityName", "AnswerArgument"))
        if "TopicEntityName" in parse:
            topics.append(parse.text("TopicEntityName"))
    name = record.text("QuestionId")
    return _official(record, name, record.text("RawQuestion"), answers, topics)


def cwq_question(record: QuestionRecord) -> Question:
    """Return the question of a record of ComplexWebQuestions_train.json or _dev.json, or of RoG's.

    Of an answer's names the first is the gold answer; the others are in the metadata as aliases. The official
    test file has no answers, so it cannot be scored.
    """
    if "ID" not in record:
        return kgqa_question(record)
    aliases = {}
    for answer in record.objects("answers", default=()):
        if "answer" in answer:
            aliases[answer.text("answer")] = list(answer.texts("aliases", default=()))
    kind = record.text("compositionality_type", default="")
    return _official(
        record,
        record.text("ID"),
        record.text("question"),
        aliases,
        (),
        kind,
        aliases=aliases,
    )


def grailqa_question(record: QuestionRecord) -> Question:
    """Return the question of a record of grailqa_v1.0_train.json, _dev.json or _test_public.json, or of RoG's.

    The search starts at the entities and values of the gold query graph, whose edges are the gold triples.
    `level` says how different the question is from the training questions. The public test file has neither.
    """
    if "qid" not in record:
        return kgqa_question(record)
    answers = record.objects("answer", default=())
    nodes: list[QuestionRecord] = []
    edges: list[QuestionRecord] = []
    if "graph_query" in record:
        query = record.inside(record.data["graph_query"], "graph_query")
        nodes = query.objects("nodes")
        edges = query.objects("edges")
    names = {}
    starts = []
    for node in nodes:
        name = node.text("friendly_name", "id")
        names[node.text("nid")] = name
        if node.text("node_type") in ("entity", "literal"):
            starts.append(name)
    triples = []
    for edge in edges:
        head = names.get(edge.text("start"))
        tail = names.get(edge.text("end"))
        if head is not None and tail is not None:
            triples.append([head, edge.text("relation"), tail])
    return _official(
        record,
        record.text("qid"),
        record.text("question"),
        [answer.text("entity_name", "answer_argument") for answer in answers],
        starts,
        record.text("level", default=""),
        triples=triples,
    )


def webquestions_question(record: QuestionRecord) -> Question:
    """Return the question of a record of webquestions.examples.train.json or .test.json, or of RoG's.

    The search starts at the entity in its page's address, as in http://www.freebase.com/view/en/fell_mill.
    """
    if "targetValue" not in record:
        return kgqa_question(record)
    address = record.text("url", default="")
    page = address.rpartition("/")[2].replace("_", " ")
    answers = _described(record.text("targetValue"), record)
    return _official(
        record,
        str(record.number),
        record.text("utterance"),
        answers,
        [page] if page else [],
    )


def _described(text: str, record: QuestionRecord) -> list[str]:
    """Return the names in SEMPRE's `(list (description "Tam Orr") (description Ardle))`. Raises IngestError for
    another form.
    """
    if not _TARGETS.fullmatch(text):
        raise record.error(
            f"'targetValue' should be (list (description NAME) ...), found {text!r:.80}"
        )
    found = _DESCRIPTION.findall(text)
    described = []
    for quoted, bare in found:
        described.append(re.sub(r"\\(.)", r"\1", quoted) if quoted else bare)
    return described


def _graph_of(record: QuestionRecord) -> TextualGraph:
    """Return the graph of a record, or an empty graph if the record has none."""
    if "graph" in record:
        return TextualGraph.from_triples(record.triples("graph"))
    return TextualGraph()


def _official(
    record: QuestionRecord,
    identity: str,
    question: str,
    answers: Iterable[str],
    starts: Iterable[str],
    kind: str = "",
    **more: object,
) -> Question:
    """Return the question of an official record, with the graph if the user has added one."""
    graph = _graph_of(record)
    known: Mapping[str, object] = {
        "question_entities": list(dict.fromkeys(starts)),
        "graph": graph.to_dict(),
        **more,
    }
    return Question(
        id=identity,
        question=question,
        answers=tuple(dict.fromkeys(answers)),
        type=kind,
        metadata={name: value for name, value in known.items() if value},
    )


def _lower_case(record: QuestionRecord) -> Question:
    """Return the question with answers and graph in lower case, which merges nodes that differ only in case."""
    lower: dict[str, object] = {}
    for key in ("answer", "a_entity", "q_entity"):
        if key in record:
            lower[key] = [item.lower() for item in record.texts(key)]
    if "graph" in record:
        triples = record.triples("graph")
        lower["graph"] = [list(map(str.lower, triple)) for triple in triples]
    return kgqa_question(
        QuestionRecord({**record.data, **lower}, record.where, record.number)
    )


def _benchmark(
    name: str,
    title: str,
    source: str,
    read: ReadRecord,
    files: Mapping[str, str],
    hub: HubDataset | None = None,
) -> Benchmark:
    return registered(
        Benchmark(
            name=name,
            title=title,
            source=source,
            read=read,
            metrics=_METRICS,
            instructions={"answer": "Give every answer, one a line, the surest first."},
            files={
                "test": "test.jsonl",
                "validation": "validation.jsonl",
                "train": "train.jsonl",
                **files,
            },
            hub=hub,
            under="Questions" if name == "webqsp" else "",
        )
    )


_DESCRIPTION = re.compile(r'\(description (?:"((?:[^"\\]|\\.)*+)"|([^()\s"]++))\)')
_TARGETS = re.compile(rf"\(list(?: {_DESCRIPTION.pattern})*+\)")
_EXPORT = (
    "get it through the datasets library or as Parquet files, huggingface.co/datasets/"
)
_OWN = (
    "; for questions over graphs of their own put a list of [head, relation, tail] under the key graph of each record, "
    "or write RoG's form, one JSON object a line: id, question, answer, q_entity, a_entity and graph"
)
WEBQSP = _benchmark(
    "webqsp",
    "WebQSP",
    _EXPORT + "rmanluo/RoG-webqsp" + ", or the official files at aka.ms/WebQSP",
    webqsp_question,
    {"official test": "WebQSP.test.json", "official train": "WebQSP.train.json"},
    HubDataset("rmanluo/RoG-webqsp", split="test"),
)
CWQ = _benchmark(
    "cwq",
    "ComplexWebQuestions",
    _EXPORT
    + "rmanluo/RoG-cwq"
    + ", or the official files at tau-nlp.sites.tau.ac.il/compwebq"
    + _OWN,
    cwq_question,
    {
        "official validation": "ComplexWebQuestions_dev.json",
        "official train": "ComplexWebQuestions_train.json",
    },
    HubDataset("rmanluo/RoG-cwq", split="test"),
)
GRAILQA = _benchmark(
    "grailqa",
    "GrailQA",
    "get the official files at dki-lab.github.io/GrailQA" + _OWN,
    grailqa_question,
    {
        "official validation": "grailqa_v1.0_dev.json",
        "official train": "grailqa_v1.0_train.json",
    },
)
WEBQUESTIONS = _benchmark(
    "webquestions",
    "WebQuestions",
    "get the official files at nlp.stanford.edu/software/sempre" + _OWN,
    webquestions_question,
    {
        "official test": "webquestions.examples.test.json",
        "official train": "webquestions.examples.train.json",
    },
)
GRAPHQA_WEBQSP = registered(
    Benchmark(
        name="graphqa-webqsp",
        title="GraphQA: WebQSP",
        source=_EXPORT + "rmanluo/RoG-webqsp",
        read=_lower_case,
        metrics=(*_METRICS, *VALIDITY),
        instructions=WEBQSP.instructions,
        cites=True,
        files=WEBQSP.files,
        hub=WEBQSP.hub,
    )
)
