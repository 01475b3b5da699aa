"""Every function that reads a text from outside, and the modules whose patterns it runs."""

from __future__ import annotations

import importlib
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple
from unittest.mock import patch

from langchain_core.language_models.fake_chat_models import GenericFakeChatModel

import ras_agent
from ras_agent.app.cli.terminal import inert
from ras_agent.app.serve.errors import without_places
from ras_agent.app.serve.page_tasks import reply_to_task
from ras_agent.app.serve.wire import Message
from ras_agent.config.address import without_login
from ras_agent.config.registry import names
from ras_agent.contracts import marks
from ras_agent.contracts.errors import RasError
from ras_agent.contracts.records import (
    Answer,
    Citation,
    Exchange,
    Hit,
    Passage,
    Source,
    Span,
    Step,
    Triple,
)
from ras_agent.eval.benchmarks.graphqa import parse_explanation
from ras_agent.eval.benchmarks.kgqa import webquestions_question
from ras_agent.eval.formats.verl import read_question as verl_question
from ras_agent.eval.judge import RULES
from ras_agent.eval.metrics.answer_sets import split_answers
from ras_agent.eval.metrics.answers import golden_match, token_f1
from ras_agent.eval.metrics.choices import chosen_class, chosen_label, stated_verdict
from ras_agent.eval.metrics.cited_graph import answer_apart, read_cited_graph
from ras_agent.eval.metrics.own_text import text_f1
from ras_agent.eval.metrics.suites import fanout_share
from ras_agent.eval.question_file import QuestionRecord
from ras_agent.eval.run.result import Result
from ras_agent.graphs.observe import _reason
from ras_agent.graphs.tool import without_sources
from ras_agent.page.examples import example_questions
from ras_agent.prompts import as_line, passage_block
from ras_agent.question_graph import QuestionGraph
from ras_agent.question_graph.conflicts import conflicts_of
from ras_agent.question_graph.disputes import with_dispute
from ras_agent.question_graph.export import to_mermaid
from ras_agent.question_graph.proof import proof_of
from ras_agent.question_graph.support import with_support
from ras_agent.text.canonical import canonical_key
from ras_agent.text.languages import foreign_language
from ras_agent.text.lines import one_line, shown_name
from ras_agent.text.loose_json import is_json, json_objects
from ras_agent.text.markup import inert_markup, markup_start
from ras_agent.text.names import DEMONYM, is_name, name_spans
from ras_agent.text.normal_form import storable
from ras_agent.text.options import options_of
from ras_agent.text.overlap import best_sentence, sentences_of
from ras_agent.text.sentences import sentence_spans
from ras_agent.text.standing import fact_text as standing_text
from ras_agent.text.terms import terms_of
from ras_agent.text.titles import bare_title, is_title
from ras_agent.text.tokens import cut_to_tokens, estimate_tokens
from ras_agent.text.unusable import copies, echoes, refuses
from ras_agent.text.values import figures_in, value_of
from ras_agent.text.words import stem_set
from ras_agent.tools.answer.citations import read_citations
from ras_agent.tools.answer.forms import FORMS, abstains, answer_part
from ras_agent.tools.answer.llm import LLMAnswerer, _TokenStream
from ras_agent.tools.chat.call import Reply
from ras_agent.tools.chat.endings import shortfall
from ras_agent.tools.chat.repeats import repeated_at
from ras_agent.tools.chat.secrets import printable, without_secrets
from ras_agent.tools.chat.thoughts import without_thinking
from ras_agent.tools.chat.tool_calls import arguments_in, calls_in_text, tool_named
from ras_agent.tools.chat.window import is_overflow
from ras_agent.tools.index.chunk import chunk_spans
from ras_agent.tools.index.conversions import _book, _html, _slides
from ras_agent.tools.index.line_ends import joined_words
from ras_agent.tools.index.load import _encoded_data
from ras_agent.tools.index.mail import read_mail
from ras_agent.tools.index.markdown import first_heading, front_matter
from ras_agent.tools.index.markup_tables import (
    with_tables_of_asciidoc,
    with_tables_of_rst,
)
from ras_agent.tools.index.page_styles import (
    declarations,
    hides,
    is_struck,
    level_of,
)
from ras_agent.tools.index.plain_kinds import PLAIN_KINDS
from ras_agent.tools.index.scripts import lowered, note, raised, written_out
from ras_agent.tools.index.tables import Rows
from ras_agent.tools.index.tags import without_tags
from ras_agent.tools.index.text_files import Converted, NotText, not_unicode, parse_line
from ras_agent.tools.index.text_tables import records_of, tables_in
from ras_agent.tools.index.tokenise import Tokeniser
from ras_agent.tools.index.workbooks import shown_number
from ras_agent.tools.kg.formats.triples import parse_statement
from ras_agent.tools.kg.link import query_mentions, split_mention
from ras_agent.tools.kg.llm_mentions import listed_names
from ras_agent.tools.offline import roles
from ras_agent.tools.offline.answerer.answer import OfflineAnswerer
from ras_agent.tools.offline.answerer.unmet import lacks_what_is_named
from ras_agent.tools.offline.answerer.wording import is_restated, wording
from ras_agent.tools.offline.extractor.extract import OfflineExtractor
from ras_agent.tools.offline.followup import OfflineRewriter
from ras_agent.tools.offline.in_time import in_its_time
from ras_agent.tools.offline.parts import in_its_part
from ras_agent.tools.offline.planner import OfflinePlanner
from ras_agent.tools.offline.question import analyse
from ras_agent.tools.offline.reader import Reader, Verdict
from ras_agent.tools.offline.reading import read
from ras_agent.tools.offline.said import all_of_list, sentences_that_say
from ras_agent.tools.offline.table_rows import look_up
from ras_agent.tools.plan.dialects import dialect, dialect_of_model
from ras_agent.tools.plan.followup import question_in
from ras_agent.tools.plan.grammar import parse_plan
from ras_agent.tools.plan.graph_tools import read_result
from ras_agent.tools.plan.llm_reasoner import first_new_sentence
from ras_agent.tools.retrieve.copies import without_copies
from ras_agent.tools.structure.llm import problem_of
from ras_agent.tools.structure.parse_triples import parse_triples
from ras_agent.tools.structure.two_fields import sentences_in
from ras_agent.tools.subgraph.pipeline import without_names
from ras_agent.tools.subgraph.scorers.llm import read_shares
from ras_agent.train.subq.decompose import read_numbers, read_search


def _any(read: Callable[[str], object]) -> Callable[[str], None]:
    """Read a text that may be refused."""

    def reading(text: str) -> None:
        with suppress(ValueError, RasError, NotText):
            read(text)

    return reading


def _passage(text: str) -> Passage:
    return Passage("1", text, "Alan Turing")


def _cited(text: str) -> None:
    sentences = sentences_of(text)
    best_sentence(sentences, ("Alan Turing", "was born in", "London"))


def _borne(text: str) -> None:
    answer = Answer(f"{text} [1]", (Citation(1, "1", text, 0, len(text), text),))
    with_support(text, answer, {"1": _passage(text)}, {})


def _edges(text: str) -> None:
    parse_explanation(text, QuestionRecord({}, "a file", 1))


def _conflicts(text: str) -> None:
    conflicts_of(
        Triple("Alan", "born in", f"{number} {text}", (Source(number),))
        for number in "12"
    )


def _disputes(text: str) -> None:
    passages = {"1": Passage("1", f"Korl {text}"), "2": Passage("2", f"Korl is {text}")}
    facts = tuple(
        Triple(
            "Korl", f"head of is {text[:200]}", f"{number} {text}", (Source(number),)
        )
        for number in "12"
    )
    citation = Citation(1, "1", triple_ids=(facts[0].id,))
    answer = Answer(f"1 {text}", (citation,))
    with_dispute(answer, QuestionGraph(facts), passages)


def _drawn(text: str) -> None:
    fact = Triple(text, text, text)
    to_mermaid(QuestionGraph((fact,)))
    marks.fact_text(text, text, text)


def _offline(text: str) -> None:
    """Ask an offline agent the text, with the text as its only passage's.

    Its reader's network, which takes a second for some thousand characters however they read, is left out.
    """
    passage = _passage(text)
    step = Step(1, text, (Hit(passage, 1.0),), ())
    with patch.object(roles, "_packaged_reader", _Pointing):
        planner, answerer, reasoner = (
            roles.offline_planner(),
            roles.offline_answerer(),
            roles.offline_reasoner(),
        )
    planner.plan(text, QuestionGraph(), [step])
    reasoner.next_sentence(text, [passage], [])
    answerer.answer(text, QuestionGraph(), [passage], ())


def _streamed(text: str) -> None:
    """Read a reply that comes in pieces of one character."""
    tokens, growing = _TokenStream(), ""
    answerer = LLMAnswerer(GenericFakeChatModel(messages=iter(())))
    for char in text:
        growing += char
        if tokens.is_due(len(growing)):
            tokens.grow(answerer._so_far(growing, "Who?", {1: "1"}))


TITLE_TASK = "### Task:\nGenerate a concise title of this chat.\n<chat_history>"
_TOOLS = ("search", "finish", "neighbours", "read")


class TextReader(NamedTuple):
    """Holds a function that reads a text, and the modules whose patterns it runs, under `ras_agent.`."""

    read: Callable[[str], object]
    modules: str = ""


class _Pointing(Reader):
    """Points at all of a question but its first words, and at the whole of a text."""

    def described(self, question: str) -> Span | None:
        return Span(min(8, len(question)), len(question), 1.0)

    def read(self, question: str, texts: Sequence[str]) -> list[list[Span]]:
        return [
            [Span(0, len(text), 9.0), Span(len(text) // 2, len(text), 8.0)]
            if text
            else []
            for text in texts
        ]

    def judge(self, question: str, texts: Sequence[str]) -> list[Verdict]:
        return [Verdict(1.0, 0.0, 0.0) for _ in texts]


def _read(text: str) -> None:
    """Ask an agent that reads the text, with the text as its only passage's, in three forms of a question."""
    planner = OfflinePlanner(_Pointing())
    answerer = OfflineAnswerer(_Pointing())
    passage = _passage(text)
    for question in (text, f"Was {text} built in 1890?", f"Who wrote {text}"):
        steps = [Step(1, question, (Hit(passage, 1.0),))]
        planner.plan(question, QuestionGraph(), steps)
        answerer.answer(question, QuestionGraph(), [passage], steps)


def _dialects(text: str) -> None:
    """Read a reply in each dialect, as it is and behind the beginning of an action."""
    rows = [dialect(name) for name in names("dialect")]
    for reply in (
        text,
        f"<search>{text}",
        f"<answer>{text}",
        f"Action: {text}",
        f"<tool_call>{text}",
    ):
        for row in rows:
            row.read(reply, False, "")


def _judged(text: str) -> None:
    """Let a judge reply with a text."""
    result = Result("1", "Who?", ("Alan",), answer="Alan")
    for rule in RULES.values():
        with suppress(StopIteration):
            work = rule(result)
            next(work)
            work.send(Reply(text))
            work.send(Reply(text))


def _examples(text: str) -> None:
    """Look for questions in a fact whose parts are a text."""
    list(example_questions([Triple(text, f"was founded by {text}", text)]))


OFFLINE = """tools.offline.question tools.offline.planner tools.offline.reading
tools.offline.answerer.compare"""
EXTRACTOR = """tools.offline.extractor.clauses tools.offline.extractor.extract tools.offline.extractor.lines
tools.offline.extractor.things tools.offline.extractor.topics tools.offline.extractor.words"""
READERS = {
    # messages of failures
    "without_places": TextReader(without_places, "app.serve.errors"),
    "reason of a failure": TextReader(_reason, "graphs.observe"),
    # text
    "canonical_key": TextReader(canonical_key, "text.canonical text.normal_form"),
    "figures_in": TextReader(figures_in, "text.values"),
    "value_of": TextReader(value_of, "text.values"),
    "name_spans": TextReader(name_spans, "text.names"),
    "is_name": TextReader(
        lambda text: (is_name(text), DEMONYM.fullmatch(text)), "text.names"
    ),
    "foreign_language": TextReader(foreign_language, "text.languages"),
    "best_sentence": TextReader(_cited),
    "inert_markup": TextReader(
        lambda text: (inert_markup(text), markup_start(text)), "text.markup"
    ),
    "without_sources": TextReader(without_sources, "graphs.tool"),
    "options_of": TextReader(options_of, "text.options"),
    "with_support": TextReader(_borne, "question_graph.support"),
    "bare_title": TextReader(bare_title, "text.titles"),
    "stem_set": TextReader(stem_set, "text.words"),
    # prompts
    "as_data": TextReader(marks.as_data, "contracts.marks"),
    "passage_block": TextReader(
        lambda text: (as_line(text), passage_block([Passage("1", text, text)]))
    ),
    "fact_text": TextReader(_drawn, "question_graph.export"),
    "Mark.is_in": TextReader(
        lambda text: [mark.is_in(text) for mark in marks.MARKS], "contracts.marks"
    ),
    "ends_chain": TextReader(
        lambda text: marks.ends_chain(f"{text} the answer is {text}"), "contracts.marks"
    ),
    # replies
    "without_thinking": TextReader(without_thinking, "tools.chat.thoughts"),
    "dialects": TextReader(
        lambda text: (_dialects(text), dialect_of_model(text)), "tools.plan.dialects"
    ),
    "judge": TextReader(_judged, "eval.judge"),
    "parse_plan": TextReader(_any(parse_plan), "tools.plan.grammar"),
    "first_new_sentence": TextReader(
        lambda text: first_new_sentence(text, ["Alan was"]), "tools.plan.llm_reasoner"
    ),
    "json_objects": TextReader(
        lambda text: (is_json(text), list(json_objects(text))), "text.loose_json"
    ),
    "parse_triples": TextReader(
        lambda text: problem_of(parse_triples(text), text),
        "tools.structure.parse_triples tools.structure.triple_lines tools.structure.llm",
    ),
    "answer_part, prose": TextReader(
        lambda text: answer_part(text, prose=True), "tools.answer.forms"
    ),
    "answer_part": TextReader(
        lambda text: answer_part(f"Answer: x [1]{text}", prose=False),
        "tools.answer.forms",
    ),
    "abstains": TextReader(abstains, "tools.answer.forms"),
    "forms": TextReader(
        lambda text: [form.read(text, "(A) one (B) two") for form in FORMS.values()],
        "tools.answer.forms",
    ),
    "forms, question": TextReader(
        lambda text: [form.read("A", text) for form in FORMS.values()],
        "tools.answer.forms",
    ),
    "sentence_spans": TextReader(sentence_spans, "text.sentences"),
    "without_login": TextReader(without_login, "config.address"),
    "read_citations": TextReader(
        lambda text: read_citations(text, {1: "1"}), "tools.answer.citations"
    ),
    "streamed answer": TextReader(_streamed, "tools.answer.forms"),
    "read_shares": TextReader(
        lambda text: read_shares(text, 50), "tools.subgraph.scorers.llm"
    ),
    "listed_names": TextReader(
        lambda text: listed_names(text, "Who was Alan?"), "tools.kg.llm_mentions"
    ),
    "read_numbers": TextReader(
        _any(lambda text: read_numbers(text, 9)), "train.subq.decompose"
    ),
    "read_search": TextReader(
        _any(read_search), "train.subq.decompose train.subq.label"
    ),
    "is_overflow": TextReader(
        lambda text: (
            is_overflow(ValueError(text)),
            estimate_tokens(text),
            cut_to_tokens(text, 100),
        ),
        "tools.chat.window text.tokens",
    ),
    "without_secrets": TextReader(
        lambda text: (without_secrets(text), printable(text)), "tools.chat.secrets"
    ),
    "calls_in_text": TextReader(
        lambda text: (
            calls_in_text(text, _TOOLS),
            calls_in_text(f"search({text}", _TOOLS),
            tool_named(text, _TOOLS),
        ),
        "tools.chat.tool_calls tools.plan.tool_planner",
    ),
    "arguments_in": TextReader(_any(arguments_in), "tools.chat.tool_calls"),
    "read_result": TextReader(
        lambda text: read_result(text, [_passage(text)]), "tools.plan.graph_tools"
    ),
    "shortfall": TextReader(lambda text: shortfall(text, text), "tools.chat.endings"),
    "repeated_at": TextReader(repeated_at, "tools.chat.repeats"),
    "unusable": TextReader(
        lambda text: (
            refuses(text),
            echoes(text, [text]),
            copies(text, [text], [text]),
        ),
        "text.unusable",
    ),
    "two fields": TextReader(sentences_in, "tools.structure.two_fields"),
    "reply_to_task": TextReader(
        lambda text: reply_to_task(
            [Message(role="user", content=f"{TITLE_TASK}{text}")]
        ),
        "app.serve.page_tasks",
    ),
    "standing": TextReader(
        lambda text: standing_text(text, text).sentence(
            "Alan", "was born in", text[:100]
        ),
        "text.standing text.terms",
    ),
    "terms_of": TextReader(terms_of, "text.terms"),
    "one_line": TextReader(
        lambda text: (one_line(text), shown_name(text)), "text.lines"
    ),
    "Rows": TextReader(
        lambda text: list(Rows(iter(text.splitlines(keepends=True)))),
        "tools.index.tables",
    ),
    "text_f1": TextReader(
        lambda text: text_f1(text, ["Alan"]), "eval.metrics.own_text"
    ),
    # questions
    "query_mentions": TextReader(
        lambda text: query_mentions(text, str.istitle), "tools.kg.link"
    ),
    "split_mention": TextReader(
        lambda text: split_mention(text, str.istitle), "tools.kg.link"
    ),
    "without_names": TextReader(
        lambda text: without_names(text, ["Alan"]), "tools.subgraph.pipeline"
    ),
    "analyse": TextReader(analyse, "tools.offline.question"),
    "proof_of": TextReader(
        lambda text: proof_of(
            text, "Ulm", [Citation(1, "p", text, 0, len(text), text)], {}
        ),
        "question_graph.proof",
    ),
    "sentences_that_say": TextReader(
        lambda text: [
            sentences_that_say(f"{ask} {text}", read([Passage("p", text)]))
            for ask in ("Why", "Describe")
        ],
        "tools.offline.said",
    ),
    "all_of_list": TextReader(
        lambda text: [
            all_of_list("Who?", "Ulm", one)
            for one in read([Passage("p", f"Ulm, {text}")])[0].sentences
        ],
        "tools.offline.said",
    ),
    "offline roles": TextReader(_offline, OFFLINE),
    "unmet": TextReader(
        lambda text: lacks_what_is_named(
            f"Who is the mayor of {text[:2000]}", read([_passage(text)])[0].sentences
        ),
        "tools.offline.answerer.unmet",
    ),
    "wording": TextReader(
        lambda text: wording(f"Was {text[:2000]}", read([_passage(text)])),
        "tools.offline.answerer.wording",
    ),
    "offline roles that read": TextReader(
        _read, "tools.offline.chain tools.offline.answerer.answer"
    ),
    "example questions": TextReader(_examples, "page.examples"),
    "offline rewriter": TextReader(
        lambda text: (
            OfflineRewriter().rewrite(
                text, [Exchange("Who wrote Emma?", "Jane Austen")]
            ),
            OfflineRewriter().rewrite(
                "And where did she live?", [Exchange(text, text)]
            ),
        ),
        "tools.offline.followup",
    ),
    "question_in": TextReader(lambda text: question_in(text, "Who?")),
    # passages and files
    "offline extractor": TextReader(
        lambda text: OfflineExtractor().extract([_passage(text)]), EXTRACTOR
    ),
    "plain kinds": TextReader(
        lambda text: [_any(read)(text) for read in PLAIN_KINDS.values()],
        "tools.index.plain_kinds",
    ),
    "tables of RST": TextReader(with_tables_of_rst, "tools.index.markup_tables"),
    "tables of AsciiDoc": TextReader(
        lambda text: with_tables_of_asciidoc(f"|===\n{text}\n|==="),
        "tools.index.markup_tables",
    ),
    "read_mail": TextReader(
        _any(
            lambda text: read_mail(
                f"From: a\n\n{text}".encode("utf-8", "replace"),
                lambda page: Converted(page.decode()),
            )
        ),
        "tools.index.mail",
    ),
    "tables_in": TextReader(tables_in, "tools.index.text_tables"),
    "records_of": TextReader(
        lambda text: records_of([text, text], [[text, text]]), "tools.index.text_tables"
    ),
    "look_up": TextReader(lambda text: look_up(text, []), "tools.offline.table_rows"),
    "chunk_spans": TextReader(chunk_spans, "tools.index.chunk"),
    "Tokeniser": TextReader(
        lambda text: Tokeniser().terms(text), "tools.index.tokenise"
    ),
    "without_copies": TextReader(
        lambda text: without_copies(
            [Hit(_passage(text), 1.0), Hit(_passage(text[1:]), 0.5)]
        ),
        "text.same_text",
    ),
    "joined_words": TextReader(
        lambda text: joined_words([text]), "tools.index.line_ends"
    ),
    "converted files": TextReader(
        lambda text: (_slides(f"<!-- Slide number: 1 -->\n{text}"), _book(text)),
        "tools.index.conversions",
    ),
    "raised text": TextReader(
        lambda text: (
            written_out(f"{text}{raised(text)}{lowered(text)}{note(text)}"),
            written_out(raised("1") * 99 + text),
        ),
        "tools.index.scripts",
    ),
    "styles of pages": TextReader(
        _any(
            lambda text: (
                hides(declarations(text)),
                is_struck(declarations(f"text-decoration:{text}")),
                level_of(declarations(f"vertical-align:{text}")),
                _html(
                    f"<p style='color:{text}'><i style='background:{text};color:{text}'>a".encode(
                        "utf-8", "replace"
                    )
                ),
                _html(
                    f"<style>{text}</style><p class=x>seen".encode("utf-8", "replace")
                ),
            )
        ),
        "tools.index.page_styles",
    ),
    "HTML pages": TextReader(
        _any(lambda text: _html(f"<p>{text}</p>".encode("utf-8", "replace"))),
        "tools.index.conversions",
    ),
    "tables of pages": TextReader(
        _any(
            lambda text: _html(
                f"<table><tr><th>{text}<th>b<tr><td>|{text}|<td>c</table>".encode(
                    "utf-8", "replace"
                )
            )
        ),
        "tools.index.page_tables",
    ),
    "encoded data": TextReader(_encoded_data, "tools.index.load"),
    "front_matter": TextReader(front_matter, "tools.index.markdown"),
    "tag characters": TextReader(without_tags, "tools.index.tags"),
    "is_title": TextReader(is_title, "text.titles"),
    "first_heading": TextReader(first_heading, "tools.index.markdown"),
    "parse_line": TextReader(_any(parse_line), "tools.index.text_files"),
    "not_unicode": TextReader(not_unicode, "tools.index.text_files"),
    "parse_statement": TextReader(_any(parse_statement), "tools.kg.formats.triples"),
    "disputes": TextReader(_disputes, "question_graph.disputes"),
    "in_its_time": TextReader(
        lambda text: in_its_time(
            f"Who was mayor in 1990 {text[:2000]}", read([Passage("p", text)])
        ),
        "tools.offline.in_time question_graph.times",
    ),
    "in_its_part": TextReader(
        lambda text: in_its_part(text[:2000], text[:9], text), "tools.offline.parts"
    ),
    "is_restated": TextReader(
        lambda text: is_restated(text, text[:9], text, frozenset()),
        "tools.offline.answerer.wording",
    ),
    "conflicts_of": TextReader(_conflicts, "question_graph.conflicts text.values"),
    "storable": TextReader(storable, "graphs.validate running.trace"),
    "inert": TextReader(inert, "app.cli.terminal app.cli.draw"),
    # scores
    "split_answers": TextReader(split_answers, "eval.metrics.answer_sets"),
    "token_f1": TextReader(
        lambda text: (token_f1(text, ["Alan"]), golden_match(text, ["Alan"])),
        "eval.metrics.answers",
    ),
    "fanout_share": TextReader(
        lambda text: fanout_share(text, [text, "Alan"]), "eval.metrics.suites"
    ),
    "chosen_label": TextReader(
        lambda text: chosen_label(text, {"A": "one", "B": "two"}),
        "eval.metrics.choices",
    ),
    "chosen_class": TextReader(
        lambda text: chosen_class(text, ["support", "counter"]), "eval.metrics.choices"
    ),
    "stated_verdict": TextReader(stated_verdict, "eval.metrics.choices"),
    "answer_apart": TextReader(answer_apart, "eval.metrics.cited_graph"),
    "read_cited_graph": TextReader(read_cited_graph, "eval.metrics.cited_graph"),
    "parse_explanation": TextReader(_any(_edges), "eval.benchmarks.graphqa"),
    "verl question": TextReader(
        _any(lambda text: verl_question(QuestionRecord({"prompt": text}, "here"))),
        "eval.formats.verl",
    ),
    "format of a cell": TextReader(
        lambda text: shown_number(7, text), "tools.index.workbooks"
    ),
    "webquestions_question": TextReader(
        _any(
            lambda text: webquestions_question(
                QuestionRecord({"targetValue": text, "utterance": text}, "here")
            )
        ),
        "eval.benchmarks.kgqa",
    ),
}
OWN_TEXTS = {
    "config.settings.request_fields": "names of variables and headers that the user writes",
    "eval.question_file": "cells of a data set",
    "tools.chat.form": "patterns of this package",
    "tools.chat.models": "what a package that is missing says",
    "tools.chat.refusals": "a server's refusal, of which 1,000 characters are read",
    "tools.chat.waits": "a server's refusal, of which 1,000 characters are read",
    "app.cli.doctor": "what installed packages say of themselves",
    "page.self_contained": "the package's own pages",
    "gym.rollout": "addresses that the user writes, and the first words of messages of failures",
    "prompts.templates": "the prompts, which are the package's own or the user's",
    "config.registry": "names of plug-ins",
    "train.tables": "titles of the package's own tables",
    "eval.calibration": "an option that the user writes",
    "testing.plugin": "names of tests",
    "eval.formats.trec": "ids of questions and passages",
    "eval.report.plots": "pictures that matplotlib drew",
    "eval.run.summarise": "messages of failures, which are cut to 500 characters",
    "eval.study.extractors": "facts that this package wrote",
    "eval.study.oracles": "sub-questions of a data set",
    "eval.study.run": "names of runs",
    "eval.bench.graph": "facts that this package wrote",
    "eval.bench.loopback_model": "prompts that this package wrote",
    "tools.index.segment": "names of the cache's own folders",
    "tools.store.postgres": "statements of this package",
    "tools.chat.client": "a server's refusal, of which 1,000 characters are read",
    "tools.chat.runnables": "the forms of the user's own objects",
    "tools.gfm.weights": "a name that the user writes",
    "tools.chat.http": "bytes of a server, read line by line",
    "tools.index.identity": "ids that this package wrote",
    "tools.index.snapshot": "names of files",
    "tools.index.records": "places of records, which this package wrote",
    "tools.kg.equivalence": "names of entities, which are short",
    "tools.subgraph.scorers.graph_vectors": "paths that this package wrote",
    "tools.structure.triple_model": "the options behind a model's name, which the user writes",
    "train.graphllm.examples": "prompts that this package wrote",
    "train.graphqa.tables": "names of the tables' rows",
    "train.pseudo_questions": "training data",
    "train.subq.sources": "training data",
}
"""Modules whose patterns read no text from outside, and what they read."""


def modules_with_patterns() -> Iterator[str]:
    """Yield the modules of the package, under `ras_agent.`, that use regular expressions."""
    root = Path(ras_agent.__file__).parent
    for path in (
        *root.rglob("*.py"),
        *(
            file
            for link in root.iterdir()
            if link.is_symlink()
            for file in link.rglob("*.py")
        ),
    ):
        if re.search(r"^import re$", path.read_text(encoding="utf-8"), re.MULTILINE):
            yield ".".join(path.relative_to(root).with_suffix("").parts).removesuffix(
                ".__init__"
            )


def patterns_of(module: str) -> Iterator[re.Pattern[str]]:
    """Yield the compiled patterns in a module's variables."""
    for value in vars(
        importlib.import_module(
            module if module.startswith("lab.") else f"ras_agent.{module}"
        )
    ).values():
        for item in value if isinstance(value, tuple) else (value,):
            if isinstance(item, re.Pattern) and isinstance(item.pattern, str):
                yield item
