"""The cluster of a process, read from `TF_CONFIG` and validated."""

import errno
import json
import os
import socket
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from pydantic import BaseModel, NonNegativeInt, ValidationError

from segdec.errors import ConfigError

TF_CONFIG_VARIABLE = "TF_CONFIG"
JOBS = ("chief", "worker", "ps")
EXAMPLE = '{"cluster": {"worker": ["host0:2222", "host1:2222"]}, "task": {"type": "worker", "index": 0}}'


@dataclass(frozen=True)
class Cluster:
    """The processes of a run, and the task of this one: its job, and the index within that.

    With `ps` (parameter servers) training is asynchronous: the chief coordinates and the workers compute.
    Without, chief and workers train synchronously. `jobs` are the addresses `host:port` of the tasks of each.
    """

    jobs: Mapping[str, tuple[str, ...]]
    task: str
    index: int

    @property
    def name(self) -> str:
        """`chief`, or job and index: `worker 1`."""
        return self.task if self.task == "chief" else f"{self.task} {self.index}"

    @property
    def address(self) -> str:
        """`host:port` of this process."""
        return self.jobs[self.task][self.index]

    @property
    def is_chief(self) -> bool:
        """Whether this process writes the run folder: the chief, or worker 0 without one."""
        return self.task == "chief" or ("chief" not in self.jobs and (self.task, self.index) == ("worker", 0))

    @property
    def has_parameter_servers(self) -> bool:
        """Whether training is asynchronous."""
        return "ps" in self.jobs

    @property
    def is_server(self) -> bool:
        """Whether this process only serves the coordinator."""
        return self.has_parameter_servers and self.task != "chief"

    @property
    def trainers(self) -> tuple[str, ...]:
        """Names of the processes that train synchronously."""
        tasks = [(job, index) for job in ("chief", "worker") for index in range(len(self.jobs.get(job, ())))]
        return tuple(replace(self, task=job, index=index).name for job, index in tasks)

    @property
    def chief_address(self) -> str:
        """`host:port` of the process for which `is_chief` holds."""
        return self.jobs["chief" if "chief" in self.jobs else "worker"][0]

    @property
    def is_alone(self) -> bool:
        """Whether there is no other process; cluster managers set `TF_CONFIG` for single processes too."""
        return len(self.trainers) == 1 and not self.has_parameter_servers

    @property
    def workers(self) -> int:
        """Number of processes that compute gradients."""
        training = ("worker",) if self.has_parameter_servers else ("chief", "worker")
        return sum(len(self.jobs.get(job, ())) for job in training)

    def describe(self) -> str:
        """Returns a description: `worker 1 in a cluster of 1 × chief, 2 × worker, 1 × ps`."""
        sizes = ", ".join(f"{len(self.jobs[job])} × {job}" for job in JOBS if job in self.jobs)
        return f"{self.name} in a cluster of {sizes}"

    def to_tf_config(self) -> str:
        """Returns `TF_CONFIG` in the form that every TensorFlow strategy accepts."""
        task = {"type": self.task, "index": self.index}
        return json.dumps({"cluster": dict(self.jobs), "task": task, "rpc_layer": "grpc"})


class TaskConfig(BaseModel):
    """The task of this process; some cluster managers write the index as text."""

    type: str
    index: NonNegativeInt


class ClusterConfig(BaseModel):
    """`TF_CONFIG` as cluster managers write it; further keys are ignored."""

    cluster: dict[str, tuple[str, ...]]
    task: TaskConfig


def read_cluster(environment: Mapping[str, str] = os.environ) -> Cluster | None:
    """Reads the cluster from `TF_CONFIG`; None if there is none: unset, empty, `{}` or an empty cluster.

    `master` means `chief`; the address of an `evaluator` is ignored. Raises a `ConfigError` if it is not
    JSON, incomplete, or not a valid cluster.
    """
    text = environment.get(TF_CONFIG_VARIABLE, "").strip()
    values = _parse(text) if text else {}
    if values == {} or (isinstance(values, dict) and values.get("cluster") == {}):
        return None
    config = _validate(values)
    task = "chief" if config.task.type == "master" else config.task.type
    cluster = Cluster(_read_jobs(config.cluster), task, config.task.index)
    _check_jobs(cluster.jobs)
    _check_addresses(cluster.jobs)
    _check_task(cluster)
    return cluster


def find_cluster() -> Cluster | None:
    """Returns the cluster of this process; None if it trains alone.
    Raises a `ConfigError` if `TF_CONFIG` is invalid, or the port of this process is in use.
    """
    cluster = read_cluster()
    if cluster is None or cluster.is_alone:
        return None
    listen(cluster).close()  # TensorFlow would report only "Could not start gRPC server"
    return cluster


def listen(cluster: Cluster) -> socket.socket:
    """Listens on the port of this process on all interfaces: others may know it by another host name.
    Raises a `ConfigError` if it cannot.
    """
    port, both = int(cluster.address.rpartition(":")[2]), socket.has_dualstack_ipv6()
    family = socket.AF_INET6 if both else socket.AF_INET
    try:
        return socket.create_server(("", port), family=family, dualstack_ipv6=both)
    except OSError as error:
        taken = error.errno == errno.EADDRINUSE
        remedy = "Stop the process that uses it" if taken else "Allow this process to listen on it"
        raise ConfigError(
            f"{cluster.name} cannot listen on port {port} of its address {cluster.address}: "
            f"{os.strerror(error.errno or 0)}. {remedy}, or give {cluster.name} another port in the "
            f"{TF_CONFIG_VARIABLE} of all tasks."
        ) from None


def _parse(text: str) -> Any:
    try:
        return json.loads(text)
    except json.JSONDecodeError as error:
        position = f"line {error.lineno}, column {error.colno}"
        near = text[max(0, error.pos - 15) : error.pos + 15]
        raise ConfigError(
            f"{TF_CONFIG_VARIABLE} is not JSON: {error.msg} at {position}, near {near!r}. Expected {EXAMPLE}."
        ) from None


def _validate(values: Any) -> ClusterConfig:
    try:
        return ClusterConfig.model_validate(values)
    except ValidationError as error:
        detail = error.errors()[0]
        key = ".".join(str(part) for part in detail["loc"])
        if detail["type"] == "missing":
            raise ConfigError(f"{TF_CONFIG_VARIABLE} has no {key!r}. Expected {EXAMPLE}.") from None
        where = f"{TF_CONFIG_VARIABLE}, {key}" if key else TF_CONFIG_VARIABLE
        raise ConfigError(f"{where}: {detail['msg']}, got {detail['input']!r}. Expected {EXAMPLE}.") from None


def _invalid(problem: str) -> ConfigError:
    return ConfigError(f"{TF_CONFIG_VARIABLE}: {problem}")


def _read_jobs(written: Mapping[str, tuple[str, ...]]) -> dict[str, tuple[str, ...]]:
    """The jobs with addresses, in the order of `JOBS`."""
    jobs: dict[str, tuple[str, ...]] = {}
    for name, addresses in written.items():
        job = "chief" if name == "master" else name
        if job not in (*JOBS, "evaluator"):
            raise _invalid(f"unknown job {name!r} in 'cluster'. Expected {', '.join(JOBS)}.")
        jobs[job] = jobs.get(job, ()) + addresses
    return {job: jobs[job] for job in JOBS if jobs.get(job)}


def _check_jobs(jobs: Mapping[str, tuple[str, ...]]) -> None:
    chiefs, workers, servers = (len(jobs.get(job, ())) for job in JOBS)
    if chiefs > 1:
        listed = ", ".join(jobs["chief"])
        raise _invalid(f"{chiefs} chiefs: {listed}. Expected one at most: declare the others as workers.")
    if servers and not chiefs:
        raise _invalid(
            f"{servers} ps and no chief. Parameter servers need a chief that coordinates: add a 'chief' with "
            "one address, or remove 'ps' to train synchronously."
        )
    if servers and not workers:
        raise _invalid(f"{servers} ps and no worker. The chief only coordinates: add a 'worker'.")


def _check_addresses(jobs: Mapping[str, tuple[str, ...]]) -> None:
    tasks: dict[str, str] = {}
    for job, addresses in jobs.items():
        for index, address in enumerate(addresses):
            task = f"{job} {index}"
            _check_address(address, task)
            if address in tasks:
                raise _invalid(
                    f"{tasks[address]} and {task} have the same address {address!r}. Expected different "
                    "ones: change the host or the port."
                )
            tasks[address] = task


def _check_address(address: str, task: str) -> None:
    if problem := find_address_problem(address):
        raise _invalid(f"the address {address!r} of {task} {problem}")


def find_address_problem(address: str) -> str | None:
    """Returns what is wrong with an address of a process, and what is expected; None if it is valid."""
    host, colon, port = address.rpartition(":")
    bracketed = host.startswith("[") and host.endswith("]")
    plain = host and not any(character in "/[]:" or character.isspace() for character in host)
    problem = None
    if not colon or not port:
        problem = "has no port"
    elif not port.isdecimal() or not port.isascii():
        problem = f"has the port {port!r}, which is not a number"
    elif not 0 < int(port) <= 65535:
        problem = f"has the port {port}, which is not within 1 … 65535"
    elif not bracketed and not plain:
        problem = f"has the host {host!r}, which is not a name or IP address"
    return problem and f"{problem}. Expected host:port, as in 10.0.0.5:2222 or [fd00::5]:2222."


def _check_task(cluster: Cluster) -> None:
    task, count = cluster.task, len(cluster.jobs.get(cluster.task, ()))
    if task == "evaluator":
        raise _invalid(
            "this process is an evaluator, which runs do not use: the chief validates. Do not start tasks of "
            "this type."
        )
    if task not in JOBS:
        raise _invalid(f"unknown task type {task!r}. Expected one of {', '.join(JOBS)}.")
    if cluster.index >= count:
        raise _invalid(
            f"this process is {task} {cluster.index}, but 'cluster' has {count} address(es) of {task}. "
            "Indices start at 0: correct the index, or add the address."
        )
