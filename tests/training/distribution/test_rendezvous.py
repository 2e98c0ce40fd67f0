"""Waiting for the other processes of a cluster."""

import socket
import threading
from contextlib import suppress

import pytest

from segdec.errors import ConfigError
from training.distribution.cluster import Cluster
from training.distribution.interruption import PeerLostError
from training.distribution.rendezvous import wait_for_peers, wait_for_servers


@pytest.fixture
def make_cluster(free_ports):
    def make(**sizes):
        ports = iter(free_ports(sum(sizes.values())))
        jobs = {job: tuple(f"127.0.0.1:{next(ports)}" for _ in range(count)) for job, count in sizes.items()}
        return lambda task, index=0: Cluster(jobs, task, index)

    return make


def in_background(action):
    thread = threading.Thread(target=action, daemon=True)
    thread.start()
    return thread


def test_all_connect_and_the_port_is_free_again(make_cluster):
    cluster = make_cluster(chief=1, worker=2)
    tasks = [cluster("worker", 1), cluster("worker", 0), cluster("chief")]
    threads = [in_background(lambda task=task: wait_for_peers(task, 60)) for task in tasks]
    for thread in threads:
        thread.join(60)
        assert not thread.is_alive()
    socket.create_server(("", int(cluster("chief").address.rpartition(":")[2]))).close()


@pytest.mark.skipif(not socket.has_dualstack_ipv6(), reason="this machine has no IPv6")
def test_connections_over_ipv6(free_ports):
    jobs = {"worker": tuple(f"[::1]:{port}" for port in free_ports(2))}
    worker = in_background(lambda: wait_for_peers(Cluster(jobs, "worker", 1), 60))
    wait_for_peers(Cluster(jobs, "worker", 0), 60)
    worker.join(60)
    assert not worker.is_alive()


def call_in_vain(cluster):
    with suppress(PeerLostError):
        wait_for_peers(cluster, 60)


def test_foreign_connections_are_ignored(make_cluster):
    cluster = make_cluster(worker=2)

    def knock():
        while True:
            try:
                with socket.create_connection(("127.0.0.1", int(cluster("worker").address[10:]))) as caller:
                    caller.sendall(b"GET / HTTP/1.1\r\n")
                return
            except OSError:
                continue

    stranger = in_background(knock)
    with pytest.raises(PeerLostError, match="worker 1 did not connect"):
        wait_for_peers(cluster("worker", 0), 1.5)
    stranger.join(60)


def test_a_taken_port_is_named(make_cluster):
    cluster = make_cluster(worker=2)
    with (
        socket.create_server(("", int(cluster("worker").address.rpartition(":")[2]))),
        pytest.raises(ConfigError, match=f"Cannot listen on the address {cluster('worker').address} "),
    ):
        wait_for_peers(cluster("worker", 0), 60)


def test_missing_servers_are_named(make_cluster):
    cluster = make_cluster(chief=1, worker=1, ps=1)
    with socket.create_server(("", int(cluster("ps").address.rpartition(":")[2]))):
        with pytest.raises(PeerLostError, match="worker 0 does not answer"):
            wait_for_servers(cluster("chief"), 0.5)
        with socket.create_server(("", int(cluster("worker").address.rpartition(":")[2]))):
            wait_for_servers(cluster("chief"), 60)
