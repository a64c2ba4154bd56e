"""How the tests are shared out."""

import pytest


def test_groups_of_tests_stay_together(request: pytest.FixtureRequest):
    # Some versions of pytest and pytest-xdist ignore groups, and say nothing.
    if getattr(request.config.option, "loadgroup", False):
        assert "@" in request.node.nodeid
