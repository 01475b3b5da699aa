"""Whatever reads texts with patterns is attacked by the fault suite with texts that are slow for a bad pattern."""

from importlib.util import find_spec

from tests.faults.text_readers import OWN_TEXTS, READERS, modules_with_patterns


def test_every_module_with_patterns_is_attacked_or_reads_only_texts_of_the_package() -> (
    None
):
    attacked = {
        module for reader in READERS.values() for module in reader.modules.split()
    }
    assert not attacked & OWN_TEXTS.keys()
    assert set(modules_with_patterns()) <= attacked | OWN_TEXTS.keys()


def test_every_module_that_is_named_is_there() -> None:
    names = {
        *OWN_TEXTS,
        *(module for reader in READERS.values() for module in reader.modules.split()),
    }
    paths = {name if name.startswith("lab.") else f"ras_agent.{name}" for name in names}
    assert {path for path in paths if find_spec(path) is None} == set()
