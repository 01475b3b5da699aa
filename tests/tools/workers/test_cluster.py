"""Work on a Ray cluster that the test starts, and caches that an actor stores on the driver's machine."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ras_agent.contracts.errors import RunError, SettingsError
from ras_agent.contracts.records import Passage
from ras_agent.tools.store.cache import StoredCache
from ras_agent.tools.workers.cluster import Cluster, SharedFile
from ras_agent.tools.workers.pool import WorkSpec
from ras_agent.tools.workers.remote_cache import NAMESPACE, ActorCache, open_cache
from tests.messages import says

ray = pytest.importorskip("ray", reason="the extra ray is not installed")
pytestmark = [pytest.mark.timeout(300), pytest.mark.slow("processes and Ray")]
READER = "ras_agent.app.structuring:remote_passage_reader"


@pytest.fixture(scope="module", autouse=True)
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Two cores of a local Ray. Away from this folder, which Ray would put on its workers' path."""
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(tmp_path_factory.mktemp("cluster"))
        ray.init(
            num_cpus=2,
            namespace=NAMESPACE,
            log_to_driver=False,
            include_dashboard=False,
        )
        yield
        ray.shutdown()


async def test_items_are_done_by_workers_in_the_order_asked_for(tmp_path: Path) -> None:
    order = WorkSpec(READER, {"settings": {}, "spec": "offline"})
    passages = [
        Passage(f"p{n}", f"Hull {n} was built by Ann Rowe.", f"Hull {n}")
        for n in range(5)
    ]
    async with Cluster(order, workers=2).opened(4) as do:
        read = [await do(passage) for passage in passages]
    assert [one.passage_id for one in read] == ["p0", "p1", "p2", "p3", "p4"]
    assert all(one.facts > 0 for one in read)
    assert ray.is_initialized()  # a cluster that was there before stays


async def test_a_worker_that_cannot_start_says_why() -> None:
    with pytest.raises(
        RunError,
        match=says("Ray worker", "could not start", "unknown extractor 'nobody'"),
    ):
        async with Cluster(
            WorkSpec(READER, {"settings": {}, "spec": "nobody"}), workers=1
        ).opened(1):
            pass


async def test_workers_reach_a_file_on_the_machine_of_the_driver(
    tmp_path: Path, scripted_llm: Any
) -> None:
    scripted_llm.script(
        {"reply": "(S> Hull | P> was built by | O> Ann Rowe)", "repeat": True}
    )
    file = SharedFile(tmp_path / "facts.sqlite", "facts")
    order = WorkSpec(READER, {"settings": {}, "spec": scripted_llm.spec})
    hull = Passage("p", "Hull was built by Ann Rowe.", "Hull")
    for _ in range(2):
        async with Cluster(order, workers=1, shared_files={"facts": file}).opened(
            1
        ) as do:
            assert (await do(hull)).facts == 1
    assert len(scripted_llm.requests()) == 1
    assert len(StoredCache(file.path, file.kind)) == 1


def test_a_cache_elsewhere_is_a_cache(tmp_path: Path) -> None:
    from ras_agent.tools.workers.cluster import _keeper

    place, actor = _keeper(ray, SharedFile(tmp_path / "x.sqlite", "things"))
    cache = open_cache(place, "things")
    assert isinstance(cache, ActorCache)
    assert not cache.is_local
    assert cache.get("a") is None
    cache.put("a", "first ☎".encode(), "said of a")
    cache.put("a", b"second")
    assert (cache.get("a"), len(cache)) == ("first ☎".encode(), 1)
    ray.kill(actor)


def test_an_actor_that_is_not_there_is_reported() -> None:
    with pytest.raises(
        SettingsError, match="there is no actor 'nobody' on this Ray cluster"
    ):
        open_cache("ray:nobody", "things")
