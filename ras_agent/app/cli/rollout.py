"""Implements `ras-agent rollout`, which asks one question with the model in training, and prints the answer's
reward.
"""

from __future__ import annotations

import os
from functools import partial
from typing import Annotated

import typer

from ras_agent.app.cli.options import Sample, check_index
from ras_agent.app.cli.terminal import print_json
from ras_agent.config.settings import Settings

_question_option = partial(typer.Option, rich_help_panel="The question")
_reward_option = partial(typer.Option, rich_help_panel="The reward")


def rollout(
    *,
    question: Annotated[str, typer.Argument(envvar="QUESTION", help="The question.")],
    answer: Annotated[
        list[str] | None,
        _question_option(
            help="A gold answer; may be repeated. If not set, the variable GOLDEN_ANSWERS."
        ),
    ] = None,
    supporting: Annotated[
        list[str] | None,
        _question_option(
            help="The title of a gold passage; may be repeated. If not set, the variable SUPPORTING."
        ),
    ] = None,
    policy: Annotated[
        str,
        typer.Option(
            rich_help_panel="The policy",
            metavar="URL#MODEL",
            help="Address and name of the planner's model. If not set, AGL_OPENAI_BASE_URL or OPENAI_BASE_URL.",
        ),
    ] = "",
    reward: Annotated[
        list[str] | None,
        _reward_option(
            metavar="NAME=WEIGHT",
            help="A part of the reward and its weight; may be repeated. If not set, f1=1 and form=0.1.",
        ),
    ] = None,
    own_answer: Annotated[
        bool,
        _reward_option(
            "--own-answer",
            help="Score the policy's own answer instead of the answerer's.",
        ),
    ] = False,
    event_url: Annotated[
        str,
        _reward_option(
            envvar="AGL_EVENT_URL",
            metavar="URL",
            help="Address to which the reward is posted.",
        ),
    ] = "",
    sample: Sample = False,
    settings: Settings,
    flags: frozenset[str],
) -> None:
    """Ask one question with the model in training as planner, and print its reward as JSON.

    A trainer's gateway is at the policy's address and records all requests
    and replies. The key that it requires is read from AGL_KEY, or from
    VLLM_API_KEY if --policy names the address. OPENAI_API_KEY is sent to
    OPENAI_BASE_URL only. Extractor and answerer are never the policy: they
    are --extractor, --answerer or --llm, else offline. No reply is cached.
    """
    import asyncio

    from ras_agent.app.sample import sample_passages
    from ras_agent.eval.question import Question
    from ras_agent.gym.rollout import (
        Policy,
        apost_reward,
        aroll_out,
        read_answers,
        read_rewards,
        rollout_agent,
    )

    if not question.strip():
        raise typer.BadParameter("the question is blank: write a question")
    check_index(sample, settings)
    if "planner" in flags:
        raise typer.BadParameter(
            "no policy to plan the rollout: give the address of the model in training, --policy URL#MODEL"
        )
    environment = dict(os.environ)
    # not OPENAI_API_KEY, which is for another server
    key = environment.get("AGL_KEY") or environment.get("VLLM_API_KEY") or ""
    trained = Policy.at(policy, key) if policy else Policy.of_environment(environment)
    asked = Question(
        "rollout",
        question,
        tuple(answer or read_answers(environment.get("GOLDEN_ANSWERS", ""))),
        tuple(supporting or read_answers(environment.get("SUPPORTING", ""))),
        by_title=True,
    )
    rewards = read_rewards(reward or ())
    agent = rollout_agent(trained, settings, sample_passages() if sample else None)
    for part, what in rewards.lacking(asked).items():
        remedy = (
            "--answer, or GOLDEN_ANSWERS"
            if what == "answers"
            else "--supporting TITLE, or SUPPORTING"
        )
        raise typer.BadParameter(
            f"--reward {part} cannot be measured without {what}: give {remedy}"
        )

    async def play() -> None:
        result = await aroll_out(agent, asked, rewards, own_answer=own_answer)
        # before it is printed, so that every printed reward was reported
        if event_url:
            await apost_reward(event_url, environment.get("AGL_KEY", ""), result)
        print_json(result.to_dict())

    asyncio.run(play())
