"""Small clusters on this machine."""

import pytest
from dask.distributed import Client, LocalCluster


@pytest.fixture(scope="session")
def processes():
    """A client of two worker processes of one thread each."""
    with (
        LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0") as cluster,
        Client(cluster, set_as_default=False) as client,
    ):
        yield client


@pytest.fixture(scope="session")
def threads():
    """A client of workers that are threads of this process; three, so that some have no data."""
    with (
        LocalCluster(
            n_workers=3, threads_per_worker=1, processes=False, dashboard_address=":0"
        ) as cluster,
        Client(cluster, set_as_default=False) as client,
    ):
        yield client
