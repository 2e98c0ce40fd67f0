"""Waiting for the other processes of a cluster."""

import socket
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from training.distribution.cluster import Cluster
from training.distribution.interruption import PeerLostError
from training.distribution.rendezvous import wait_for_peers, wait_for_servers


def port_of(cluster):
    return int(cluster.address.rpartition(":")[2])


@pytest.fixture
def make_cluster(free_ports):
    def make(host="127.0.0.1", **sizes):
        ports = iter(free_ports(sum(sizes.values())))
        jobs = {job: tuple(f"{host}:{next(ports)}" for _ in range(count)) for job, count in sizes.items()}
        return lambda task, index=0: Cluster(jobs, task, index)

    return make


IPV6 = pytest.mark.skipif(not socket.has_dualstack_ipv6(), reason="this machine has no IPv6")


@pytest.mark.parametrize("host", ["127.0.0.1", pytest.param("[::1]", marks=IPV6)])
def test_all_connect_and_the_port_is_free_again(make_cluster, host):
    cluster = make_cluster(host, chief=1, worker=2)
    tasks = [cluster("worker", 1), cluster("worker", 0), cluster("chief")]
    with ThreadPoolExecutor(3) as pool:
        channels = list(pool.map(lambda task: wait_for_peers(task, 60), tasks))
        socket.create_server(("", port_of(cluster("chief")))).close()
        message = bytes(range(256)) * 10_000
        received = pool.map(lambda channel, own: channel.broadcast(own), channels, (b"1", b"0", message))
        assert list(received) == [message] * 3
    channels[2].close()
    with pytest.raises(PeerLostError, match="the chief has ended"):
        channels[0].broadcast(b"")
    for channel in channels:
        channel.close()


def test_missing_processes_are_named_and_foreign_connections_ignored(make_cluster):
    cluster = make_cluster(worker=2)
    with pytest.raises(PeerLostError, match="the chief does not answer"):
        wait_for_peers(cluster("worker", 1), 0.3)

    def connect_and_leave():
        while True:
            try:
                with socket.create_connection(("127.0.0.1", port_of(cluster("worker")))) as caller:
                    return caller.sendall(b"GET / HTTP/1.1\r\n")
            except OSError:
                time.sleep(0.05)

    with ThreadPoolExecutor(1) as pool:
        unknown = pool.submit(connect_and_leave)
        with pytest.raises(PeerLostError, match="worker 1 did not connect"):
            wait_for_peers(cluster("worker", 0), 1.0)
        unknown.result()


def test_missing_servers_are_named(make_cluster):
    cluster = make_cluster(chief=1, worker=1, ps=1)
    with socket.create_server(("", port_of(cluster("ps")))):
        with pytest.raises(PeerLostError, match="worker 0 does not answer"):
            wait_for_servers(cluster("chief"), 0.5)
        with socket.create_server(("", port_of(cluster("worker")))):
            wait_for_servers(cluster("chief"), 60)
