"""The fake Kubernetes keeps the contract; e2e/test_kubernetes_contract.py holds the real one to the same checks."""

import asyncio
from typing import Any

import pytest

import kubernetes_contract as contract
from cuvil_operator.gateways.fake_kubernetes import FakeKubernetes
from cuvil_operator.gateways.fence import Fence
from cuvil_operator.gateways.protocols import Document
from fake_clock import FakeClock


def fake_world() -> contract.World:
    clock = FakeClock()
    fence = Fence.open(clock)
    fake = FakeKubernetes(clock, fence)

    async def as_other(document: Document) -> None:
        fake.put(document, manager="somebody-else")

    async def eventually(condition: contract.Condition) -> None:
        assert await condition()

    return contract.World("unit", fake, fence, fake.restarted, as_other, eventually)


@pytest.mark.parametrize("check", contract.CHECKS, ids=contract.NAMES)
def test_the_fake_keeps_the_contract(check: Any) -> None:
    """The fake does what the check's docstring says."""
    asyncio.run(check(fake_world()))
