"""Questions over Freebase with a subgraph each: the record that RoG (Luo et al., 2024) made for WebQSP and CWQ.

GrailQA and WebQuestions are read in the same form, as LEGO-GraphRAG (Cao et al., 2024) uses them, and WebQSP also as
GraphQA has it, in lower case.
"""

from __future__ import annotations

from ras_agent.eval.benchmarks.graphqa import VALIDITY
from ras_agent.eval.benchmarks.registry import Benchmark, HubDataset, registered
from ras_agent.eval.question import Question, TextualGraph
from ras_agent.eval.question_file import QuestionRecord

_METRICS = (
    *("hr@1", "golden_match", "answer_f1", "answer_precision", "answer_recall", "entity_recall", "entity_f1"),
    *("substring_hr@1", "substring_f1"),  # LEGO-GraphRAG's rule beside ours
)


def kgqa_question(record: QuestionRecord) -> Question:
    """Return the question of a record with question, q_entity (where to start), a_entity or answer, and graph.

    `answer` counts where there is one, as published scores use it; `a_entity` lists the answers that are in the graph,
    `graph` its [head, relation, tail] triples.
    """
    entities = record.texts("a_entity") if "a_entity" in record else ()
    answers = record.texts("answer", "answers") if "answer" in record or "answers" in record else entities
    graph = TextualGraph.from_triples(record.triples("graph")) if "graph" in record else TextualGraph()
    return Question(
        id=record.text("id") if "id" in record else str(record.number),
        question=record.text("question"),
        answers=tuple(dict.fromkeys(answers)),
        metadata={
            "question_entities": list(record.texts("q_entity")) if "q_entity" in record else [],
            "answer_entities": list(entities),
            "graph": graph.to_dict(),
        },
    )


def _lower_case(record: QuestionRecord) -> Question:
    """Return the question with answers and graph in lower case, so that nodes which differ only in case are one."""
    lower: dict[str, object] = {
        key: [item.lower() for item in record.texts(key)] for key in ("answer", "a_entity", "q_entity") if key in record
    }
    if "graph" in record:
        lower["graph"] = [[part.lower() for part in triple] for triple in record.triples("graph")]
    return kgqa_question(QuestionRecord({**record.data, **lower}, record.where, record.number))


def _benchmark(name: str, title: str, source: str, hub: HubDataset | None = None) -> Benchmark:
    return registered(
        Benchmark(
            name=name,
            title=title,
            source=source,
            read=kgqa_question,
            metrics=_METRICS,
            instructions={"answer": "Give every answer, one a line, the surest first."},
            files={"test": "test.jsonl", "validation": "validation.jsonl", "train": "train.jsonl"},
            hub=hub,
        )
    )


_EXPORT = "get it through the datasets library or as Parquet files, huggingface.co/datasets/"
_OWN = (
    "bring its records into RoG's form, one JSON object a line: id, question, answer, q_entity, a_entity and graph (a "
    "list of [head, relation, tail]); the questions are at "
)
WEBQSP = _benchmark("webqsp", "WebQSP", _EXPORT + "rmanluo/RoG-webqsp", HubDataset("rmanluo/RoG-webqsp", split="test"))
CWQ = _benchmark("cwq", "ComplexWebQuestions", _EXPORT + "rmanluo/RoG-cwq", HubDataset("rmanluo/RoG-cwq", split="test"))
GRAILQA = _benchmark("grailqa", "GrailQA", _OWN + "dki-lab.github.io/GrailQA")
WEBQUESTIONS = _benchmark("webquestions", "WebQuestions", _OWN + "nlp.stanford.edu/software/sempre")
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
