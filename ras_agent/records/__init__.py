"""The nouns of the agent: small frozen records with a plain-JSON form.

`to_dict` gives JSON values only (what graph state and traces hold); `from_dict` is its inverse.
"""

from ras_agent.records.course import Action, Answer, Citation, Plan, Step, StopReason
from ras_agent.records.facts import Extraction, Failure, Source, Triple, fact_id
from ras_agent.records.json_form import JSON
from ras_agent.records.text import Hit, Passage, Span
from ras_agent.records.usage import Call, Usage

__all__ = [
    "Action",
    "Answer",
    "Call",
    "Citation",
    "Extraction",
    "Failure",
    "Hit",
    "JSON",
    "Passage",
    "Plan",
    "Source",
    "Span",
    "Step",
    "StopReason",
    "Triple",
    "Usage",
    "fact_id",
]
