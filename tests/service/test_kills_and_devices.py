"""Kills of a service that devices report to: each report counts once."""

import random
import threading
import time

import httpx
import pytest
from serve_kills import Service

from dpbandits.client import Retries, ServiceError
from dpbandits.device import ConnectedDevice

DECLARED = """[[experiments]]
name = "trial"
arms = 2
features = 2
horizon = 10_000
protects = "contexts and rewards"
trust = "local"
reports = true
budget.zcdp = 1.0
batch = 5
"""
PEOPLE, KILLS = 40, 5
ROWS = [[0.6, 0.0], [0.0, 0.6]]


@pytest.mark.long
def test_each_report_counts_once(tmp_path):
    service = Service(f"sqlite:///{tmp_path}/policies.db", tmp_path)
    (tmp_path / "trial.toml").write_text(DECLARED)
    service.start()
    service.await_ready()
    one, rng, failed = "/v1/experiments/trial", random.Random(1), []
    config = httpx.get(f"{service.address}{one}/config").text

    def report(people):
        """Each device is closed after each attempt, as if it had been killed, too."""
        for person in people:
            made, arrived = False, 0
            while not arrived:
                try:
                    with device(person) as own:
                        if not made:
                            own.choose(ROWS)
                            own.report(1.0)
                            made = True
                        arrived = own.send()
                except ServiceError as error:
                    if not error.is_temporary:
                        failed.append(error)
                        return
                time.sleep(0.01)

    def device(person):
        while not (address := service.address):
            time.sleep(0.01)
        return ConnectedDevice(
            config, tmp_path / f"device-{person}", server=address, retries=Retries(limit=0.2)
        )

    threads = [
        threading.Thread(target=report, args=[range(first, PEOPLE, 4)]) for first in range(4)
    ]
    for thread in threads:
        thread.start()
    for _ in range(KILLS):
        time.sleep(rng.uniform(0.05, 0.3))
        service.kill()
        service.start()
        service.await_ready()
    for thread in threads:
        thread.join(120.0)
    told = httpx.get(f"{service.address}{one}").json()
    service.kill()
    assert failed == []
    assert told["recorded"] == PEOPLE
