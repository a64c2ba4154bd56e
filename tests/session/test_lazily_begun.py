"""A session begins when somebody first asks for it: once, whoever asks, and never again."""

from __future__ import annotations

import os
import sys
import threading

import pytest

import dpbandits as dpb


@pytest.fixture
def switching():
    """Threads that take turns as often as they can."""
    usual = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(usual)


def test_threads_that_ask_first_get_one_session_and_do_not_wait_for_each_other(switching):
    for _ in range(150):
        policies = [dpb.Arms(3, budget=dpb.ZCDP(1.0)) for _ in range(2)]
        found: list[tuple[int, int]] = []

        def ask(number: int, policies=policies, found=found) -> None:
            policy = policies[number % 2]
            _ = policy.rounds if number < 3 else policy.pull()
            found.append((number % 2, id(policy.session)))

        threads = [threading.Thread(target=ask, args=(i,), daemon=True) for i in range(6)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(20.0)
        assert len(found) == 6
        assert len(set(found)) == 2


def test_a_session_is_not_deleted_to_begin_with_a_whole_budget_again():
    policy = dpb.Arms(2, budget=dpb.ZCDP(1.0), seed=1)
    for _ in range(20):
        policy.update(1.0, policy.pull())
    spent = policy.ledger.spent()
    with pytest.raises(AttributeError, match=r"^session cannot be deleted"):
        del policy.session
    assert policy.ledger.spent() == spent == dpb.ZCDP(1.0)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork")
def test_forks_before_the_first_use_are_one_life():
    policy = dpb.Arms(2, budget=dpb.ZCDP(1.0), seed=1)
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.write(writing, policy.pull().token.encode())
        os._exit(0)
    os.waitpid(child, 0)
    token = os.read(reading, 1000).decode()
    policy.pull()
    assert policy.update(1.0, token) is True
