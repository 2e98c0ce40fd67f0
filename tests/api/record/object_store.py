"""An S3-compatible store for the tests, in a thread."""

from collections.abc import Iterator
from contextlib import contextmanager

from tests.api.record.databases import free_port

KEY = "of-the-tests"


class OwnObjectStore:
    """A store that can be stopped for a while; it keeps its objects."""

    def __init__(self) -> None:
        import boto3  # boto3 and moto take long to import, so not while tests are collected

        self._port = free_port()
        self.url = f"http://127.0.0.1:{self._port}"
        self.environment = {"AWS_ENDPOINT_URL": self.url, "AWS_REGION": "us-east-1", "NO_PROXY": "127.0.0.1"}
        self.environment |= {"AWS_ACCESS_KEY_ID": KEY, "AWS_SECRET_ACCESS_KEY": KEY}
        self.start()
        keys = {"aws_access_key_id": KEY, "aws_secret_access_key": KEY}
        self._client = boto3.client("s3", endpoint_url=self.url, region_name="us-east-1", **keys)

    def start(self) -> None:
        from moto.server import ThreadedMotoServer

        self._server = ThreadedMotoServer("127.0.0.1", self._port, verbose=False)
        self._server.start()

    def stop(self) -> None:
        self._server.stop()

    @contextmanager
    def stopped(self) -> Iterator[None]:
        """Stops the store within the block."""
        self.stop()
        try:
            yield
        finally:
            self.start()

    def make(self, bucket: str) -> None:
        self._client.create_bucket(Bucket=bucket)

    def remove(self, bucket: str) -> None:
        """Removes a bucket with its objects."""
        for key in self.keys(bucket):
            self._client.delete_object(Bucket=bucket, Key=key)
        self._client.delete_bucket(Bucket=bucket)

    def keys(self, bucket: str) -> list[str]:
        return [entry["Key"] for entry in self._client.list_objects(Bucket=bucket).get("Contents", [])]

    def put(self, bucket: str, key: str, data: bytes) -> None:
        self._client.put_object(Bucket=bucket, Key=key, Body=data)

    def delete(self, bucket: str, key: str) -> None:
        self._client.delete_object(Bucket=bucket, Key=key)
