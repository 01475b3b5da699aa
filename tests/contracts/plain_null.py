"""verifiers' own chat harness `null`, run by this interpreter: as its packages are there, uv installs nothing."""

from __future__ import annotations

import sys
from typing import Any

from verifiers.v1.harnesses.null import NullHarness, NullHarnessConfig
from verifiers.v1.runtimes import Runtime


class PlainNullHarness(NullHarness):
    """The harness whose program is written into the runtime and run as it is."""

    async def setup(self, runtime: Runtime) -> None:
        async def prepare(source: str, *args: Any, **options: Any) -> list[str]:
            await runtime.write("program.py", source.encode())
            return [sys.executable, "program.py"]

        runtime.prepare_uv_script = prepare  # type: ignore[method-assign]


__all__ = ["PlainNullHarness", "NullHarnessConfig"]
