"""ProductPrecision of rows, exactly or in bfloat16."""

import pytest

torch = pytest.importorskip("torch")

from ras_agent.tools.gfm.products import MatrixProduct, ProductPrecision  # noqa: E402


@pytest.mark.parametrize(("precision", "off"), [("float32", 1e-5), ("split", 1e-4), ("bfloat16", 3e-2)])
def test_products_are_as_exact_as_they_say(precision: ProductPrecision, off: float) -> None:
    generator = torch.Generator().manual_seed(0)
    lefts = [torch.randn(300, width, generator=generator) for width in (64, 48)]
    rights = [torch.randn(width, 32, generator=generator) for width in (64, 48)]
    exact = sum(left.double() @ right.double() for left, right in zip(lefts, rights, strict=True))
    found = MatrixProduct(rights, precision)(*lefts)
    assert found.dtype == torch.float32
    error = float((found - exact).abs().max() / exact.std())
    assert error < off
    # nor is it better than it says: another precision would have been used
    assert precision == "float32" or error > 1e-6


def test_split_keeps_all_of_a_float16() -> None:
    left = torch.linspace(-3, 3, 64).half()[None]
    found = MatrixProduct([torch.eye(64)], "split")(left)
    assert torch.equal(found, left.float())
