"""Which connection makes room for another one."""

import random
import time
from collections import Counter
from typing import Any

import pytest

from service.faces.http.open_connections import ConnectionLimits, OpenConnections, State


class FakeConnection:
    """What `OpenConnections` needs of a connection."""

    def __init__(self, connections: OpenConnections, host: str) -> None:
        self.peer = (host, 0)
        self.is_trusted = False
        self.state = State.CONNECTING
        self._connections: Any = connections

    def enter(self, state: State) -> None:
        self.state = state
        self._connections.enter(self, state)

    def abort(self) -> None:
        self.state = State.CLOSED
        self._connections.remove(self)


class Port:
    def __init__(self, most: int) -> None:
        self.num_refused = 0
        self.connections: Any = OpenConnections(ConnectionLimits(most), None, self._refused)  # type: ignore[arg-type]

    def _refused(self) -> None:
        self.num_refused += 1

    def open(self, host: str, state: State = State.WAITING, *, trusted: bool = False) -> FakeConnection | None:
        connection = FakeConnection(self.connections, host)
        if not self.connections.admit(connection):
            return None
        if trusted:
            self.connections.trust(connection)
        connection.enter(state)
        return connection

    def opened(self, *about: Any, **more: Any) -> FakeConnection:
        connection = self.open(*about, **more)
        assert connection is not None
        return connection


def closed(*connections: FakeConnection) -> list[bool]:
    return [each.state is State.CLOSED for each in connections]


def test_the_host_with_most_gives_up_what_has_waited_longest() -> None:
    port = Port(6)
    alone, other = port.opened("alone"), port.opened("other")
    many = [port.opened("many") for _ in range(4)]
    many[0].enter(State.WORKING)
    many[1].enter(State.WORKING)
    many[1].enter(State.WAITING)  # since its last request
    for expected in (many[2], many[3], many[1]):
        port.opened("new")
        assert expected.state is State.CLOSED
    assert closed(alone, other, many[0]) == [False, False, False]


@pytest.mark.parametrize("state", [State.HEAD, State.BODY, State.WORKING, State.ANSWERING])
def test_who_is_trusted_stays_while_a_request_is_under_way(state: State) -> None:
    port = Port(3)
    trusted = [port.opened("many", state, trusted=True) for _ in range(2)]
    stranger = port.opened("alone", State.BODY)
    port.opened("new", State.WORKING)
    assert closed(stranger, *trusted) == [True, False, False]
    assert port.open("new") is None
    assert port.num_refused == 2  # it and the stranger
    trusted[0].enter(State.WAITING)
    port.opened("new", State.WORKING)
    assert closed(*trusted) == [True, False]


def test_one_that_ended_is_forgotten_and_may_still_be_trusted_late() -> None:
    port = Port(2)
    connection = port.opened("a")
    connection.abort()
    connection.abort()
    port.connections.trust(connection)
    assert len(port.connections) == 0


def test_any_order_keeps_as_many_as_there_may_be() -> None:
    source, port = random.Random(7), Port(20)
    left: list[FakeConnection] = []
    for _ in range(3000):
        for each in source.sample(left, min(len(left), 3)):
            if source.random() < 0.2:
                port.connections.trust(each)
            each.enter(source.choice([State.WAITING, State.HEAD, State.BODY, State.WORKING, State.ANSWERING]))
        if (new := port.open(f"host {source.randrange(6)}")) is not None:
            left.append(new)
        if source.random() < 0.3 and left:
            source.choice(left).abort()
        left = [each for each in left if each.state is not State.CLOSED]
        assert len(port.connections) == len(left) <= 20
    hosts = Counter(each.peer[0] for each in left if not each.is_trusted)
    assert {host: record.number for host, record in port.connections._hosts.items()} == hosts


def test_a_flood_of_hosts_takes_little_time() -> None:
    port = Port(10_000)
    for number in range(10_000):
        port.opened(str(number), State.ANSWERING if number % 100 else State.WAITING)
    began = time.thread_time()
    for number in range(1000):
        port.open(str(number))
    assert time.thread_time() - began < 1.0
