"""Agents in other processes and copies: pickled, deep-copied, forked."""

from __future__ import annotations

import copy
import os
import pickle
from typing import Any

import pytest

from ras_agent import create_ras_agent
from ras_agent.graphs.resolve import assemble_agent, resolve_parts

TEXTS = ["The Water of Leith is the main river of Edinburgh."]
QUESTION = {"question": "What is the main river of Edinburgh?"}


def answer_of(agent: Any) -> str:
    return str(agent.invoke(QUESTION)["answer"])


def test_a_pickled_agent_is_made_again_from_its_arguments() -> None:
    loaded = pickle.loads(pickle.dumps(create_ras_agent(index=TEXTS, name="rivers")))
    assert (loaded.name, answer_of(loaded)) == ("rivers", "Water of Leith")


def test_a_pickled_agent_keeps_its_configuration() -> None:
    agent = create_ras_agent(index=TEXTS).with_config(tags=["mine"])
    assert pickle.loads(pickle.dumps(agent)).config["tags"] == ["mine"]


def test_a_copy_of_an_agent_is_the_agent() -> None:
    agent = create_ras_agent(index=TEXTS)
    assert copy.deepcopy({"agent": agent})["agent"] is agent


def test_an_agent_of_parts_says_how_to_make_one_that_can_be_pickled() -> None:
    with pytest.raises(
        TypeError, match=r"make it in the process that uses it, by create_ras_agent"
    ):
        pickle.dumps(assemble_agent(resolve_parts("ras", index=TEXTS)))


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
@pytest.mark.parametrize("was_asked", [True, False])
def test_an_index_in_memory_is_there_after_a_fork(was_asked: bool) -> None:
    agent = create_ras_agent(index=TEXTS)
    if was_asked:
        answer_of(agent)
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.write(writing, answer_of(agent).encode())
        finally:
            os._exit(0)
    os.close(writing)
    os.waitpid(child, 0)
    assert os.read(reading, 1000).decode() == "Water of Leith"
