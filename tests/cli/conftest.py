"""Commands are tested on models whose import other tests look at."""

import pytest


@pytest.fixture(autouse=True)
def _keep_imports(kept_imports: None) -> None: ...
