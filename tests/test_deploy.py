"""The files in deploy against the official schemas, and against what the service really has."""

import gzip
import json
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import jsonschema
import kubernetes_validate
import promql_parser
import pytest
import yaml

from api.middleware.metrics import REASONS, Metrics
from api.settings import ENV_PREFIX, Settings
from deploy.release.locks import lock_file, read_lock
from segdec import __version__

DEPLOY = Path(__file__).parents[1] / "deploy"
BASE = DEPLOY / "kubernetes" / "base"
SCHEMAS = Path(__file__).parent / "schemas"
KUBERNETES = ("1.31", "1.34")
"""Oldest and newest version that the manifests are checked against."""


def load(file: Path) -> Any:
    return yaml.safe_load(file.read_text(encoding="utf-8"))


def patched(overlay: str) -> Any:
    """The deployment as `kubectl kustomize` would patch it."""
    deployment = load(BASE / "deployment.yaml")
    changes = load(DEPLOY / "kubernetes" / "overlays" / overlay / "kustomization.yaml")
    (image,), (patch,) = changes["images"], changes["patches"]
    (container,) = containers(deployment)
    assert container["image"] == image["name"]
    container["image"] = f"{image['newName']}:{image['newTag']}"
    for step in yaml.safe_load(patch["patch"]):
        assert step["op"] == "add"
        *path, last = step["path"].strip("/").split("/")
        place = deployment
        for key in path:
            place = place[int(key) if key.isdecimal() else key]
        if last == "-":
            place.append(step["value"])
        else:
            place[last] = step["value"]
    return deployment


def containers(manifest: Any) -> list[Any]:
    """All containers, at whatever depth."""
    if isinstance(manifest, list):
        return [one for part in manifest for one in containers(part)]
    if not isinstance(manifest, dict):
        return []
    inner = [one for key, part in manifest.items() if key != "containers" for one in containers(part)]
    return [*manifest.get("containers", []), *inner]


@pytest.mark.parametrize("version", KUBERNETES)
@pytest.mark.parametrize("resource", load(BASE / "kustomization.yaml")["resources"])
def test_resources_are_those_of_kubernetes(resource: str, version: str) -> None:
    kubernetes_validate.validate(load(BASE / resource), version, strict=True)


@pytest.mark.parametrize("version", KUBERNETES)
@pytest.mark.parametrize("overlay", ["cpu", "gpu"])
def test_overlays_patch_the_deployment_to_a_valid_one(overlay: str, version: str) -> None:
    deployment = patched(overlay)
    kubernetes_validate.validate(deployment, version, strict=True)
    (container,) = containers(deployment)
    assert container["resources"]["limits"]["memory"]


@pytest.mark.skipif(shutil.which("kubectl") is None, reason="needs kubectl")
@pytest.mark.parametrize("overlay", ["cpu", "gpu"])
def test_kustomize_makes_of_an_overlay_what_is_checked_here(overlay: str) -> None:
    folder = DEPLOY / "kubernetes" / "overlays" / overlay
    done = subprocess.run(["kubectl", "kustomize", str(folder)], capture_output=True, text=True, check=True)
    resources = list(yaml.safe_load_all(done.stdout))
    assert len(resources) == len(load(BASE / "kustomization.yaml")["resources"])
    for resource in resources:
        kubernetes_validate.validate(resource, KUBERNETES[-1], strict=True)
    assert [one for one in resources if one["kind"] == "Deployment"] == [patched(overlay)]


def test_every_resource_is_part_of_the_base() -> None:
    files = {path.name for path in BASE.glob("*.yaml")} - {"kustomization.yaml"}
    assert files == set(load(BASE / "kustomization.yaml")["resources"])


def test_all_resources_mean_the_same_pods() -> None:
    label = {"app.kubernetes.io/name": "segdec"}
    deployment = load(BASE / "deployment.yaml")["spec"]
    assert deployment["template"]["metadata"]["labels"] == deployment["selector"]["matchLabels"] == label
    assert load(BASE / "service.yaml")["spec"]["selector"] == label
    assert load(BASE / "disruption-budget.yaml")["spec"]["selector"]["matchLabels"] == label
    assert load(BASE / "network-policy.yaml")["spec"]["podSelector"]["matchLabels"] == label


def manifests() -> list[Path]:
    return [path for path in sorted(DEPLOY.rglob("*.yaml")) if path.name != "kustomization.yaml"]


@pytest.mark.parametrize(
    "file", [path for path in manifests() if containers(load(path))], ids=lambda p: p.name
)
def test_containers_have_settings_that_exist_and_this_version(file: Path) -> None:
    for container in containers(load(file)):
        for variable in container.get("env", []):
            if variable["name"].startswith(ENV_PREFIX):
                assert variable["name"].removeprefix(ENV_PREFIX).lower() in Settings.model_fields
        assert container["image"].partition(":")[2] in ("", __version__)


@pytest.mark.parametrize("overlay", ["cpu", "gpu"])
def test_overlays_name_this_version(overlay: str) -> None:
    (image,) = load(DEPLOY / "kubernetes" / "overlays" / overlay / "kustomization.yaml")["images"]
    assert image["newTag"] == __version__


def test_a_replica_that_hangs_is_replaced() -> None:
    for file in ("kubernetes/base/deployment.yaml", "kserve/inference-service.yaml"):
        (container,) = containers(load(DEPLOY / file))
        assert container["livenessProbe"]["httpGet"]["path"] == "/livez"
    compose = load(DEPLOY / "compose" / "compose.yaml")  # nobody asks there: the process leaves by itself
    assert compose["services"]["segdec"]["restart"] == "unless-stopped"


def test_a_replica_has_time_to_finish() -> None:
    pod = load(BASE / "deployment.yaml")["spec"]["template"]["spec"]
    given = {
        one["name"]: float(one["value"]) for one in pod["containers"][0]["env"] if "DRAIN" in one["name"]
    }
    assert pod["terminationGracePeriodSeconds"] > sum(given.values())


@pytest.mark.parametrize(
    ("file", "schema"),
    [
        ("kserve/inference-service.yaml", "inference-service"),
        ("kubeflow/multi-worker.yaml", "tf-job"),
        ("kubeflow/parameter-server.yaml", "tf-job"),
    ],
)
def test_custom_resources_are_those_of_kserve_and_kubeflow(file: str, schema: str) -> None:
    official = json.loads(gzip.decompress((SCHEMAS / f"{schema}.json.gz").read_bytes()))
    validator = jsonschema.Draft202012Validator(official)
    resource = load(DEPLOY / file)
    validator.validate(resource)
    resource["spec"]["unheard"] = 1
    with pytest.raises(jsonschema.ValidationError, match="unheard"):
        validator.validate(resource)


def test_compose_file_is_one() -> None:
    command = [sys.executable, "-m", "check_jsonschema", "--builtin-schema", "vendor.compose-spec"]
    done = subprocess.run(
        [*command, str(DEPLOY / "compose" / "compose.yaml")], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_compose_mounts_what_is_there() -> None:
    compose = load(DEPLOY / "compose" / "compose.yaml")
    assert compose["services"]["segdec"]["image"] == f"segdec:{__version__}"
    for service in compose["services"].values():
        for volume in service["volumes"]:
            if isinstance(volume, str) and volume.startswith("."):
                assert (DEPLOY / "compose" / volume.partition(":")[0]).exists()


def test_alerts_ask_for_metrics_that_the_service_has() -> None:
    exported = Metrics(lambda: 0, lambda: True)
    exported.count_request("GET", "/v1/predict", 200, 1.0)
    names = set(re.findall(r"^# TYPE (segdec_\w+)", exported.render()[0].decode(), flags=re.MULTILINE))
    rules = load(DEPLOY / "prometheus" / "alerts.yaml")["groups"][0]["rules"]
    asked = set(re.findall(r"segdec_\w+", " ".join(rule["expr"] for rule in rules)))
    assert {re.sub(r"_(total|bucket|sum|count)$", "", name) for name in asked} <= {
        re.sub(r"_total$", "", name) for name in names
    }
    reasons = re.findall(r'reason=~"([^"]+)"', " ".join(rule["expr"] for rule in rules))
    assert set("|".join(reasons).split("|")) <= set(REASONS)
    assert all(rule["annotations"]["summary"] for rule in rules)
    for rule in rules:
        promql_parser.parse(rule["expr"])
    scaled = load(BASE / "autoscaler.yaml")["spec"]["metrics"][0]["pods"]["metric"]["name"]
    assert scaled in names


# === Images ===

IMAGES = {"serve": ("tensorflow", "serve"), "serve-gpu": ("gpu", "serve"), "train": ("gpu", "train")}
"""Extra and dependency group of each."""


def locked(image: str) -> dict[str, str]:
    return {package.name: package.version for package in read_lock(lock_file(image))}


@pytest.mark.parametrize("image", [*IMAGES, "build"])
def test_packages_of_an_image_have_hashes_and_the_tested_versions(image: str) -> None:
    lines = (DEPLOY.parent / "constraints.txt").read_text(encoding="utf-8").splitlines()
    tested = {
        name.lower().replace("_", "-"): version for name, _, version in (one.partition("==") for one in lines)
    }
    found = locked(image)
    assert found
    for name, version in found.items():
        assert tested.get(name.lower().replace("_", "-"), version) == version, name
    text = (DEPLOY / "image" / f"{image}.txt").read_text(encoding="utf-8")
    assert all("--hash=sha256:" in part for part in re.split(r"^(?=\w)", text, flags=re.MULTILINE)[1:])


@pytest.mark.parametrize("image", IMAGES)
def test_packages_of_an_image_are_those_of_its_extra_and_group(image: str) -> None:
    declared = tomllib.loads((DEPLOY.parent / "pyproject.toml").read_text(encoding="utf-8"))
    project, (extra, group) = declared["project"], IMAGES[image]
    wanted, waiting = {*project["dependencies"], *declared["dependency-groups"][group]}, [extra]
    for name in waiting:
        for requirement in project["optional-dependencies"][name]:
            inner = re.match(r"segdec\[(.*)\]", requirement)
            if inner:
                waiting += inner[1].split(",")
            else:
                wanted.add(requirement)
    names = {re.split(r"[^A-Za-z0-9-]", requirement)[0] for requirement in wanted}
    assert names <= {name.lower() for name in locked(image)}


def test_images_are_of_this_version() -> None:
    text = (DEPLOY.parent / "Dockerfile").read_text(encoding="utf-8")
    assert re.search(r"^ARG VERSION=(\S+)$", text, flags=re.MULTILINE)[1] == __version__  # type: ignore[index]
    targets = set(re.findall(r" AS ([\w-]+)$", text, flags=re.MULTILINE))
    assert {"serve", "serve-gpu", "train"} <= targets


# === nginx ===


def test_balancer_lets_through_what_the_service_takes() -> None:
    text = (DEPLOY / "nginx" / "segdec.conf").read_text(encoding="utf-8")
    settings = Settings(model=Path("/models"))
    (megabytes,) = re.findall(r"client_max_body_size (\d+)m;", text)
    assert int(megabytes) * 2**20 == settings.max_body_bytes
    (seconds,) = re.findall(r"proxy_read_timeout (\d+)s;", text)
    assert 1000 * int(seconds) > settings.deadline_ms
