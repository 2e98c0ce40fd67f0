"""TF_CONFIG as cluster managers write it, and as people get it wrong."""

import json
import socket

import pytest

from segdec.errors import ConfigError
from training.distribution.cluster import Cluster, listen, read_cluster

TWO = {"worker": ["a:1", "b:1"]}
SERVED = {"chief": ["c:1"], "worker": ["a:1", "b:1"], "ps": ["p:1"]}


def read(cluster, task="worker", index=0, **further):
    values = {"cluster": cluster, "task": {"type": task, "index": index}, **further}
    return read_cluster({"TF_CONFIG": json.dumps(values)})


@pytest.mark.parametrize(
    "text", [None, "", "  \n", "{}", '{"cluster": {}, "task": {"type": "worker", "index": 0}}']
)
def test_without_a_cluster(text):
    assert read_cluster({} if text is None else {"TF_CONFIG": text}) is None


def test_workers_and_parameter_servers():
    cluster = read(TWO, index=1)
    assert cluster == Cluster({"worker": ("a:1", "b:1")}, "worker", 1)
    assert (cluster.address, cluster.workers) == ("b:1", 2)
    assert not (cluster.is_chief or cluster.is_server or cluster.has_parameter_servers)
    assert read(TWO).is_chief
    assert cluster.describe() == "worker 1 in a cluster of 2 × worker"
    chief, *others = tasks = [read(SERVED, job) for job in ("chief", "worker", "ps")]
    assert [task.is_chief for task in tasks] == [True, False, False]
    assert [task.is_server for task in tasks] == [False, True, True]
    assert (chief.has_parameter_servers, chief.workers) == (True, 2)
    assert others[1].describe() == "ps 0 in a cluster of 1 × chief, 2 × worker, 1 × ps"


@pytest.mark.parametrize(
    ("cluster", "job", "index", "name"),
    [
        (TWO, "worker", "1", "worker 1"),
        ({"master": ["m:1"], "worker": ["a:1"]}, "master", 0, "chief"),
        ({"master": ["m:1"], "worker": ["a:1"]}, "chief", 0, "chief"),
        ({**TWO, "evaluator": ["e:1"]}, "worker", 0, "worker 0"),
        ({**TWO, "ps": []}, "worker", 0, "worker 0"),
        ({"worker": ["[fd00::5]:2222"]}, "worker", 0, "worker 0"),
    ],
)
def test_what_managers_write(cluster, job, index, name):
    cluster = read(cluster, job, index, environment="cloud", job={"scale-tier": "custom"})
    assert cluster.name == name
    assert set(cluster.jobs) <= {"chief", "worker"}


TASK = '"task": {"type": "worker", "index": 0}'


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('{"cluster": {"worker": ["a:1"]}, task: 1}', ["not JSON", "line 1, column 34", "task"]),
        ("[]", ["TF_CONFIG: ", "dictionary"]),
        (f"{{{TASK}}}", ["no 'cluster'", '{"cluster"']),
        ('{"cluster": {"worker": ["a:1"]}, "task": {"index": 0}}', ["no 'task.type'"]),
        (f'{{"cluster": {{"worker": "a:1"}}, {TASK}}}', ["cluster.worker", "'a:1'"]),
        (f'{{"cluster": {{"worker": [1]}}, {TASK}}}', ["cluster.worker.0", "got 1"]),
    ],
)
def test_bad_text(text, words):
    with pytest.raises(ConfigError) as refused:
        read_cluster({"TF_CONFIG": text})
    assert all(word in str(refused.value) for word in words)


@pytest.mark.parametrize(
    ("cluster", "job", "index", "words"),
    [
        ({"wrker": ["a:1"]}, "worker", 0, ["unknown job 'wrker'", "chief, worker, ps"]),
        (TWO, "wrker", 0, ["unknown task type 'wrker'"]),
        (TWO, "evaluator", 0, ["evaluator", "Do not start tasks of this type"]),
        (TWO, "worker", 2, ["worker 2", "2 address(es)"]),
        (TWO, "worker", "one", ["task.index", "got 'one'"]),
        (TWO, "chief", 0, ["chief 0", "0 address(es)"]),
        ({"worker": ["host"]}, "worker", 0, ["'host' of worker 0 has no port"]),
        ({"worker": ["a:1", "b:x1"]}, "worker", 0, ["'b:x1' of worker 1", "'x1'", "not a number"]),
        ({"worker": ["a:٣"]}, "worker", 0, ["not a number"]),
        ({"worker": ["a:0"]}, "worker", 0, ["port 0", "1 … 65535"]),
        ({"worker": ["a:65536"]}, "worker", 0, ["port 65536"]),
        ({"worker": [":2222"]}, "worker", 0, ["host ''"]),
        ({"worker": ["fd00::5:2222"]}, "worker", 0, ["host 'fd00::5'", "[fd00::5]:2222"]),
        ({"worker": ["grpc://a:2222"]}, "worker", 0, ["host 'grpc://a'"]),
        ({"worker": ["a:1", "a:1"]}, "worker", 0, ["worker 0 and worker 1", "'a:1'"]),
        ({**SERVED, "ps": ["a:1"]}, "worker", 0, ["worker 0 and ps 0", "'a:1'"]),
        ({"worker": ["a:1"], "ps": ["p:1"]}, "worker", 0, ["1 ps and no chief", "add a 'chief'"]),
        ({"chief": ["c:1"], "ps": ["p:1"]}, "chief", 0, ["1 ps and no worker", "add a 'worker'"]),
        ({"chief": ["c:1", "d:1"]}, "chief", 0, ["2 chiefs", "c:1, d:1"]),
    ],
)
def test_bad_clusters(cluster, job, index, words):
    with pytest.raises(ConfigError) as refused:
        read(cluster, job, index)
    assert all(word in str(refused.value) for word in ["TF_CONFIG", *words])


def test_tensorflow_reads_it(monkeypatch):
    resolver = pytest.importorskip("tensorflow").distribute.cluster_resolver.TFConfigClusterResolver()
    monkeypatch.setenv("TF_CONFIG", read(SERVED, "ps").to_tf_config())
    assert resolver.cluster_spec().as_dict() == SERVED
    assert (resolver.task_type, resolver.task_id, resolver.rpc_layer) == ("ps", 0, "grpc")


@pytest.mark.parametrize("host", ["127.0.0.1", ""])
def test_a_taken_port(host):
    with socket.create_server((host, 0), reuse_port=True) as other:
        port = other.getsockname()[1]
        cluster = Cluster({"worker": (f"127.0.0.1:{port}",)}, "worker", 0)
        with pytest.raises(ConfigError) as refused:
            listen(cluster)
    for word in ("worker 0", f"127.0.0.1:{port}", "already in use", "Stop the process", "another port"):
        assert word in str(refused.value)
    listen(cluster).close()
    listen(cluster).close()  # it leaves the port as it was
