"""Checkpoints in memory, in a real SQLite file and on a real PostgreSQL server of the test's own."""

import json
import os
import signal
import sqlite3
import subprocess
import sys
import textwrap
import zlib
from contextlib import closing
from pathlib import Path

import pytest
from langgraph.checkpoint.conformance import checkpointer_test, validate
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer
from langgraph.checkpoint.sqlite import SqliteSaver

from ras_agent import create_ras_agent
from ras_agent.contracts.errors import RasError, SettingsError, UnknownName
from ras_agent.contracts.records import (
    Answer,
    Citation,
    Extraction,
    Hit,
    Passage,
    Plan,
    Source,
    Triple,
)
from ras_agent.running.checkpoints import aopen_checkpointer, open_checkpointer
from tests.messages import says

# for the tests' own modules, in other processes
ROOT = str(Path(__file__).resolve().parent.parent)

THREAD = {"configurable": {"thread_id": "t1"}}


class Roles:
    """Planner, retriever, extractor and answerer that write down every call."""

    name = "roles"

    def __init__(self):
        self.calls = []

    def plan(self, question, graph, steps):
        self.calls.append(f"plan {len(steps) + 1}")
        return (
            Plan("subq", f"more {len(steps)}") if len(steps) < 3 else Plan("sufficient")
        )

    def retrieve(self, query, k=5):
        self.calls.append(f"retrieve {query}")
        return [
            Hit(
                Passage(
                    f"about {query}", f"Text about {query}.", metadata={"year": 1921}
                ),
                1.0,
            )
        ]

    def extract(self, passages, subquery=""):
        self.calls.append(f"extract {subquery}")
        return Extraction(
            tuple(Triple(p.id, "is", p.text, (Source(p.id, 0, 4),)) for p in passages)
        )

    def answer(self, question, graph, passages, steps):
        self.calls.append("answer")
        last = graph.facts[-1]
        return Answer(
            f"{len(graph)} facts",
            (Citation(1, last.sources[0].passage_id, triple_ids=(last.id,)),),
        )


def agent_of(roles, checkpointer):
    return create_ras_agent(
        planner=roles,
        retriever=roles,
        extractor=roles,
        answerer=roles,
        checkpointer=checkpointer,
    )


def untimed(out):
    steps = [{**step, "seconds": 0} for step in out["steps"]]
    return {**out, "steps": steps, "seconds": 0}


@pytest.fixture(params=["memory", "sqlite", "postgres"])
def spec(request, tmp_path) -> str:
    if request.param == "sqlite":
        return f"sqlite:{tmp_path / 'checkpoints.sqlite'}"
    return (
        f"postgres:{request.getfixturevalue('postgres')}"
        if request.param == "postgres"
        else "memory"
    )


@pytest.fixture
def expected() -> dict:
    return untimed(agent_of(Roles(), None).invoke({"question": "Who?"}))


@pytest.fixture
def thread(request) -> dict:
    # one server holds the checkpoints of all tests
    return {"configurable": {"thread_id": request.node.name}}


@pytest.mark.parametrize("node", ["plan", "retrieve", "structure", "merge", "answer"])
def test_a_run_interrupted_before_a_node_resumes_and_repeats_nothing(
    spec, node, expected, thread
):
    roles = Roles()
    with open_checkpointer(spec) as checkpointer:
        agent = agent_of(roles, checkpointer)
        agent.invoke({"question": "Who?"}, thread, interrupt_before=[node])
        assert agent.get_state(thread).next == (node,)
        out = agent.invoke(None, thread)
    assert untimed(out) == expected
    assert roles.calls == [
        *("plan 1", "retrieve Who?", "extract Who?"),
        *("plan 2", "retrieve more 1", "extract more 1"),
        *("plan 3", "retrieve more 2", "extract more 2"),
        *("plan 4", "answer"),
    ]


@pytest.mark.parametrize("node", ["plan", "structure"])
async def test_an_asynchronous_run_resumes_and_repeats_nothing(
    spec, node, expected, thread
):
    roles = Roles()
    async with aopen_checkpointer(spec) as checkpointer:
        agent = agent_of(roles, checkpointer)
        await agent.ainvoke({"question": "Who?"}, thread, interrupt_before=[node])
        out = await agent.ainvoke(None, thread)
    assert untimed(out) == expected
    assert len(roles.calls) == len(set(roles.calls)) == 11


async def test_a_checkpointer_passes_langgraphs_conformance_tests(spec):
    @checkpointer_test(name=spec)
    async def opened():
        async with aopen_checkpointer(spec) as checkpointer:
            yield checkpointer

    report = await validate(opened)
    failures = {
        kind: found.failures
        for kind, found in report.results.items()
        if found.detected and found.failures
    }
    assert failures == {}
    assert report.passed_all_base()


@pytest.mark.parametrize("kind", ["sqlite", "postgres"])
def test_an_interrupted_run_is_finished_by_another_process(
    kind, request, tmp_path, expected, thread
):
    place = (
        str(tmp_path / "file")
        if kind == "sqlite"
        else request.getfixturevalue("postgres")
    )

    class Broken(Roles):
        def extract(self, passages, subquery=""):
            if subquery == "more 2":
                raise KeyboardInterrupt
            return super().extract(passages, subquery)

    with (
        open_checkpointer(f"{kind}:{place}") as checkpointer,
        pytest.raises(KeyboardInterrupt),
    ):
        agent_of(Broken(), checkpointer).invoke({"question": "Who?"}, thread)
    roles = Roles()
    with open_checkpointer(f"{kind}:{place}") as checkpointer:
        out = agent_of(roles, checkpointer).invoke(None, thread)
    assert untimed(out) == expected
    assert roles.calls == ["extract more 2", "plan 4", "answer"]


@pytest.mark.slow("kills")
@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="needs SIGKILL")
def test_a_run_that_was_killed_is_finished_by_another_process(
    tmp_path, expected, thread
):
    spec = f"sqlite:{tmp_path / 'file'}"
    script = f"""
        import importlib.util, os, signal, sys
        sys.path.append({ROOT!r})
        spec = importlib.util.spec_from_file_location("here", {__file__!r})
        here = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(here)

        class Killed(here.Roles):
            def extract(self, passages, subquery=""):
                if subquery == "more 2":
                    os.kill(os.getpid(), signal.SIGKILL)
                return super().extract(passages, subquery)

        with here.open_checkpointer({spec!r}) as checkpointer:
            here.agent_of(Killed(), checkpointer).invoke({{"question": "Who?"}}, {thread!r}, durability="sync")
        """
    assert (
        subprocess.run([sys.executable, "-c", textwrap.dedent(script)]).returncode
        == -signal.SIGKILL
    )
    roles = Roles()
    with open_checkpointer(spec) as checkpointer:
        out = agent_of(roles, checkpointer).invoke(None, thread)
    assert untimed(out) == expected
    assert roles.calls == ["extract more 2", "plan 4", "answer"]


def test_a_second_question_on_a_thread_starts_from_nothing(spec, thread):
    roles = Roles()
    with open_checkpointer(spec) as checkpointer:
        agent = agent_of(roles, checkpointer)
        agent.invoke({"question": "When?", "seed_passages": ["A seed."]}, thread)
        out = agent.invoke({"question": "Who?"}, thread)
    assert untimed(out) == untimed(agent_of(Roles(), None).invoke({"question": "Who?"}))


def test_the_state_is_plain_json_and_holds_each_text_once(spec, thread):
    with open_checkpointer(spec) as checkpointer:
        agent = agent_of(Roles(), checkpointer)
        agent.invoke({"question": "Who?"}, thread)
        values = agent.get_state(thread).values
    text = json.dumps(values)
    assert json.loads(text) == values
    assert text.count('"text": "Text about Who?."') == 1


def test_nothing_in_the_file_is_pickled_or_names_a_class(tmp_path):
    path = tmp_path / "checkpoints.sqlite"
    with open_checkpointer(f"sqlite:{path}") as checkpointer:
        agent_of(Roles(), checkpointer).invoke({"question": "Who?"}, THREAD)
    with sqlite3.connect(path) as file:
        kinds = {
            row[0]
            for row in file.execute(
                "select type from checkpoints union select type from writes"
            )
        }
        values = [
            row[0]
            for row in file.execute(
                "select value from writes union select checkpoint from checkpoints"
            )
        ]
    assert kinds <= {"msgpack", "msgpack+zlib", "null"}
    plain = [
        zlib.decompress(value) if value.startswith(b"x") else value for value in values
    ]
    assert any(b"Text about" in value for value in plain)
    assert not any(b"ras_agent" in value for value in plain)


def test_a_step_in_a_file_is_not_waited_for_until_it_is_on_the_disk(tmp_path):
    with open_checkpointer(f"sqlite:{tmp_path / 'runs.sqlite'}") as saver:
        assert saver.conn.execute("PRAGMA journal_mode").fetchone() == ("wal",)
        # NORMAL: the log's end is synchronised
        assert saver.conn.execute("PRAGMA synchronous").fetchone() == (1,)


def test_a_question_takes_little_room(tmp_path):
    path, long = (
        tmp_path / "checkpoints.sqlite",
        " ".join(f"word{n}" for n in range(500)),
    )

    class Wordy(Roles):
        def retrieve(self, query, k=5):
            return [
                Hit(
                    Passage(f"about {query} {n}", f"Text {n} about {query}. {long}"),
                    1.0,
                )
                for n in range(k)
            ]

    with open_checkpointer(f"sqlite:{path}") as checkpointer:
        out = agent_of(Wordy(), checkpointer).invoke({"question": "Who?"}, THREAD)
    assert len(json.dumps(out)) > 100_000
    with sqlite3.connect(path) as file:
        (stored,) = file.execute(
            "select sum(length(checkpoint)) from checkpoints"
        ).fetchone()
        (written,) = file.execute("select sum(length(value)) from writes").fetchone()
    # it was 1,500,000 uncompressed, with a hop's facts kept after it
    assert stored + written < 150_000


def test_what_was_stored_without_compression_is_read(tmp_path, expected, thread):
    path = tmp_path / "checkpoints.sqlite"
    plain = JsonPlusSerializer(pickle_fallback=False)
    with closing(sqlite3.connect(path, check_same_thread=False)) as file:
        agent_of(Roles(), SqliteSaver(file, serde=plain)).invoke(
            {"question": "Who?"}, thread, interrupt_before=["merge"]
        )
    with open_checkpointer(f"sqlite:{path}") as checkpointer:
        assert untimed(agent_of(Roles(), checkpointer).invoke(None, thread)) == expected


def test_a_run_is_forked_where_its_search_is_decided(spec, thread):
    with open_checkpointer(spec) as checkpointer:
        agent = agent_of(Roles(), checkpointer)
        agent.invoke({"question": "Who?"}, thread)
        before = next(
            state
            for state in agent.get_state_history(thread)
            if state.next == ("retrieve",)
        )
        assert before.values["subquery"] == "more 2"
        fork = agent.update_state(before.config, {"subquery": "something else"})
        out = agent.invoke(None, fork)
        assert [step["subquery"] for step in out["steps"]] == [
            "Who?",
            "more 1",
            "something else",
        ]
        replayed = agent.invoke(None, before.config)
    assert [step["subquery"] for step in replayed["steps"]] == [
        "Who?",
        "more 1",
        "more 2",
    ]


def test_a_checkpoint_loads_under_strict_msgpack_without_a_warning(tmp_path):
    script = tmp_path / "run.py"
    script.write_text(
        textwrap.dedent(
            f"""
            import importlib.util, sys
            sys.path.append({ROOT!r})
            spec = importlib.util.spec_from_file_location("here", {__file__!r})
            here = importlib.util.module_from_spec(spec)
            spec.loader.exec_module(here)
            from ras_agent import Passage
            with here.open_checkpointer("sqlite:" + sys.argv[1]) as checkpointer:
                agent = here.agent_of(here.Roles(), checkpointer)
                seeds = [Passage("s1", "A seed."), {{"id": "s2", "text": "Another."}}]
                agent.invoke({{"question": "Who?", "seed_passages": seeds}}, here.THREAD, interrupt_before=["merge"])
                print(agent.invoke(None, here.THREAD)["answer"])
                print(list(agent.get_state(here.THREAD).values["passages"]))
            """
        )
    )
    environment = {**os.environ, "LANGGRAPH_STRICT_MSGPACK": "true"}
    command = [
        sys.executable,
        "-W",
        "error::UserWarning",
        str(script),
        str(tmp_path / "checkpoints.sqlite"),
    ]
    shown = subprocess.run(
        command, env=environment, capture_output=True, text=True, check=True
    )
    assert shown.stdout.splitlines() == [
        "4 facts",
        "['s1', 's2', 'about more 1', 'about more 2']",
    ]
    assert shown.stderr == ""


def test_an_unknown_kind_is_named_with_the_known_ones():
    with (
        pytest.raises(
            UnknownName,
            match=says(
                "unknown checkpointer 'redis'", "known: memory, postgres, sqlite"
            ),
        ),
        open_checkpointer("redis:there"),
    ):
        pass


def test_a_missing_path_is_reported():
    with (
        pytest.raises(SettingsError, match="sqlite:<path>"),
        open_checkpointer("sqlite"),
    ):
        pass


def test_a_bare_url_is_postgres(postgres):
    with open_checkpointer(postgres) as checkpointer:
        assert (
            agent_of(Roles(), checkpointer).invoke({"question": "Who?"}, THREAD)[
                "answer"
            ]
            == "3 facts"
        )


def test_errors_are_ras_errors():
    assert issubclass(UnknownName, RasError)
