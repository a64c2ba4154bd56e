"""Which tests share a process, and which examples are tried.

Two processes that come to the same kernels at the same time compile them twice.  So the tests of a
file stay together, but for those that say with whom they run: those of one class of policies, in
whatever file.
"""

import pytest
from hypothesis import settings

# The same command tries the same examples; `--hypothesis-profile=searching` looks for others.
settings.register_profile("fixed", derandomize=True, deadline=None, print_blob=True)
settings.register_profile("searching", deadline=None)
settings.load_profile("fixed")


@pytest.hookimpl(tryfirst=True)  # before pytest-xdist reads the marks
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if item.get_closest_marker("xdist_group") is None:
            path = item.path.relative_to(item.config.rootpath)
            item.add_marker(pytest.mark.xdist_group(str(path)))
