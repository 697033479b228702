"""What the fault tests share: the store that a product under test keeps."""

import pytest

from tests.faults.machinery.kept_store import StoreDatabases, StoreFiles, Stores
from tests.stores import KINDS


@pytest.fixture(scope="module", params=KINDS)
def store(request: pytest.FixtureRequest) -> Stores:
    """Opens stores of one kind."""
    if request.param == "sqlite":
        return StoreFiles()
    return StoreDatabases(request.getfixturevalue("postgres_databases"))
