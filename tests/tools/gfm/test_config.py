"""The network's shape."""

import pytest

from ras_agent.errors import WeightsError
from ras_agent.tools.gfm.config import GFMConfig

PUBLISHED = {
    "text_emb_model_config": {
        "_target_": "gfmrag.text_emb_models.BaseTextEmbModel",
        "text_emb_model_name": "sentence-transformers/all-mpnet-base-v2",
    },
    "model_config": {
        "_target_": "gfmrag.models.GNNRetriever",
        "entity_model": {
            "_target_": "gfmrag.ultra.models.QueryNBFNet",
            "input_dim": 512,
            "hidden_dims": [512, 512, 512, 512, 512, 512],
            "message_func": "distmult",
            "aggregate_func": "sum",
            "short_cut": True,
            "layer_norm": True,
        },
        "rel_emb_dim": 768,
    },
}


@pytest.mark.parametrize(
    ("width", "parameters"), [(32, 78_977), (64, 215_297), (128, 659_969), (256, 2_237_441), (512, 8_144_897)]
)
def test_the_parameters_are_as_many_as_the_paper_counts(width: int, parameters: int) -> None:
    assert GFMConfig(width=width).parameters() == parameters


def test_the_published_configuration_is_understood() -> None:
    expected = GFMConfig(768, 512, 6, "sentence-transformers/all-mpnet-base-v2", "head", "text")
    assert GFMConfig.from_dict(PUBLISHED) == expected


def test_a_configuration_survives_its_own_json() -> None:
    config = GFMConfig(384, 64, 4, "minilm", "tail", "negated")
    assert GFMConfig.from_dict(config.to_dict()) == config


@pytest.mark.parametrize(
    ("field", "value"), [("message_func", "transe"), ("aggregate_func", "pna"), ("layer_norm", False)]
)
def test_another_architecture_is_refused_by_its_field(field: str, value: object) -> None:
    model = PUBLISHED["model_config"]
    data = {"model_config": {**model, "entity_model": {**model["entity_model"], field: value}}}  # type: ignore[dict-item]
    with pytest.raises(WeightsError, match=field):
        GFMConfig.from_dict(data)


@pytest.mark.parametrize(
    "data",
    [
        {"width": 8, "depth": 3},
        {"width": 0},
        {"toward": "both"},
        {"inverse": "none"},
        {"model_config": {}},
        {**PUBLISHED, "text_emb_model_config": "mpnet"},
    ],
)
def test_what_is_no_configuration_is_refused(data: dict[str, object]) -> None:
    with pytest.raises(WeightsError):
        GFMConfig.from_dict(data)
