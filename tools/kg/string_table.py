"""Many strings in two arrays, so that a million of them open at once and take no more memory than their bytes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Self, overload

import numpy as np
import numpy.typing as npt

__all__ = ["StringTable"]

# text may hold lone surrogates, which plain UTF-8 cannot
_HOW = ("utf-8", "surrogatepass")


class StringTable(Sequence[str]):
    """Strings by number. String `i` is bytes `starts[i]:starts[i + 1]` of `text`; the arrays may be memory-mapped."""

    __slots__ = ("starts", "text")

    def __init__(self, text: npt.NDArray[np.uint8], starts: npt.NDArray[np.int64]) -> None:
        """`starts` has one number more than there are strings."""
        self.text, self.starts = text, starts

    @classmethod
    def of(cls, strings: Iterable[str]) -> Self:
        encoded = [string.encode(*_HOW) for string in strings]
        starts = np.zeros(len(encoded) + 1, dtype=np.int64)
        np.cumsum([len(string) for string in encoded], out=starts[1:])
        return cls(np.frombuffer(b"".join(encoded), dtype=np.uint8), starts)

    def __len__(self) -> int:
        return len(self.starts) - 1

    @overload
    def __getitem__(self, number: int) -> str: ...
    @overload
    def __getitem__(self, number: slice) -> list[str]: ...
    def __getitem__(self, number: Any) -> Any:
        if isinstance(number, slice):
            return [self[one] for one in range(*number.indices(len(self)))]
        number = int(number)
        if number < 0:
            number += len(self)
        if not 0 <= number < len(self):
            raise IndexError(f"string {number} of {len(self)}")
        return self._bytes(number).decode(*_HOW)

    def find(self, string: str) -> int | None:
        """The number of `string`, if the table's strings ascend by code points (a binary search)."""
        wanted, low, high = string.encode(*_HOW), 0, len(self)
        while low < high:
            middle = (low + high) // 2
            if self._bytes(middle) < wanted:
                low = middle + 1
            else:
                high = middle
        return low if low < len(self) and self._bytes(low) == wanted else None

    def _bytes(self, number: int) -> bytes:
        return self.text[self.starts[number] : self.starts[number + 1]].tobytes()
