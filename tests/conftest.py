"""Which tests share a process.

Two processes that come to the same kernels at the same time compile them twice.  So the tests of a
file stay together, but for those that say with whom they run: those of one class of policies, in
whatever file.
"""

import pytest


@pytest.hookimpl(tryfirst=True)  # before pytest-xdist reads the marks
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if item.get_closest_marker("xdist_group") is None:
            item.add_marker(pytest.mark.xdist_group(str(item.path)))
