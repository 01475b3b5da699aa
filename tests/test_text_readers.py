"""Whatever reads texts with patterns is attacked by the fault suite with texts that are slow for a bad pattern."""

from tests.faults.text_readers import OWN_TEXTS, READERS, modules_with_patterns


def test_every_module_with_patterns_is_attacked_or_reads_only_texts_of_the_package() -> None:
    attacked = {module for reader in READERS.values() for module in reader.modules.split()}
    assert not attacked & OWN_TEXTS.keys()
    assert set(modules_with_patterns()) <= attacked | OWN_TEXTS.keys()
