# The public names of the package: the one list, which __init__.py, type checkers and editors read.

from ras_agent.config.registry import register as register
from ras_agent.config.settings import Settings as Settings
from ras_agent.contracts.errors import RasError as RasError
from ras_agent.contracts.records import Answer as Answer
from ras_agent.contracts.records import Hit as Hit
from ras_agent.contracts.records import Passage as Passage
from ras_agent.contracts.records import Plan as Plan
from ras_agent.contracts.records import Triple as Triple
from ras_agent.graphs.ircot import create_ircot_agent as create_ircot_agent
from ras_agent.graphs.ras import create_ras_agent as create_ras_agent
from ras_agent.graphs.react import create_react_agent as create_react_agent
from ras_agent.graphs.single_shot import (
    create_single_shot_agent as create_single_shot_agent,
)
from ras_agent.question_graph import QuestionGraph as QuestionGraph
from ras_agent.running.budget import Limits as Limits
from ras_agent.running.budget import record_call as record_call
from ras_agent.running.checkpoints import aopen_checkpointer as aopen_checkpointer
from ras_agent.running.checkpoints import open_checkpointer as open_checkpointer
from ras_agent.running.trace import Trace as Trace
from ras_agent.tools.index.store import PassageIndex as PassageIndex
from ras_agent.tools.kg.index import KGIndex as KGIndex
from ras_agent.tools.retrieve.registered import retriever_over as retriever_over
from ras_agent.tools.structure.build_graph import build_graph as build_graph

__version__: str
