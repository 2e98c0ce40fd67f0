"""An S3-compatible store of the tests' own, in a thread of theirs."""

import socket
from collections.abc import Iterator
from contextlib import contextmanager

import boto3
from moto.server import ThreadedMotoServer

KEY = "of-the-tests"


def _free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


class OwnObjectStore:
    """A store which can be stopped for a while; what it holds outlives that."""

    def __init__(self) -> None:
        self._port = _free_port()
        self.url = f"http://127.0.0.1:{self._port}"
        self.environment = {
            "AWS_ENDPOINT_URL": self.url,
            "AWS_REGION": "us-east-1",
            "AWS_ACCESS_KEY_ID": KEY,
            "AWS_SECRET_ACCESS_KEY": KEY,
            "NO_PROXY": "127.0.0.1",
        }
        self.start()
        self._client = boto3.client(
            "s3",
            endpoint_url=self.url,
            region_name="us-east-1",
            aws_access_key_id=KEY,
            aws_secret_access_key=KEY,
        )

    def start(self) -> None:
        self._server = ThreadedMotoServer("127.0.0.1", self._port, verbose=False)
        self._server.start()

    def stop(self) -> None:
        self._server.stop()

    @contextmanager
    def stopped(self) -> Iterator[None]:
        """Nobody answers within the block."""
        self.stop()
        try:
            yield
        finally:
            self.start()

    def make(self, bucket: str) -> None:
        self._client.create_bucket(Bucket=bucket)

    def remove(self, bucket: str) -> None:
        """Removes a bucket with all that it holds."""
        for key in self.keys(bucket):
            self._client.delete_object(Bucket=bucket, Key=key)
        self._client.delete_bucket(Bucket=bucket)

    def keys(self, bucket: str) -> list[str]:
        return [entry["Key"] for entry in self._client.list_objects(Bucket=bucket).get("Contents", [])]

    def put(self, bucket: str, key: str, data: bytes) -> None:
        self._client.put_object(Bucket=bucket, Key=key, Body=data)

    def delete(self, bucket: str, key: str) -> None:
        self._client.delete_object(Bucket=bucket, Key=key)
