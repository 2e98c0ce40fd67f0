"""The files in deploy against the official schemas and the service."""

import argparse
import gzip
import importlib.util
import json
import re
import shutil
import signal
import subprocess
import tomllib
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import promql_parser
import pytest
import yaml
from packaging.utils import canonicalize_name
from sqlalchemy import make_url

from api.delivery.opcua_metrics import register_opcua_metrics
from api.delivery.outbox_metrics import OutboxMetrics
from api.metrics import CONNECTION_PROBLEMS, PHOTOGRAPH_RESULTS, REJECTION_REASONS, STEPS, Metrics
from api.record.record_metrics import RecordMetrics
from api.settings import ENV_PREFIX, Settings
from deploy.release.locks import lock_file, read_lock
from segdec import __version__
from segdec.runtime.cli import EXIT_ERROR
from segdec.runtime.identifiers import REVIEW
from segdec.schemas import ModelIdentity
from training.__main__ import build_parser
from training.distribution.cluster import find_address_problem
from training.distribution.interruption import EXIT_CODES
from training.experiment_file import load_experiment

DEPLOY = Path(__file__).parents[1] / "deploy"
BASE = DEPLOY / "kubernetes" / "base"
OVERLAYS = DEPLOY / "kubernetes" / "overlays"
FINISHED = sorted(folder.name for folder in OVERLAYS.iterdir())
JOB = DEPLOY / "kubernetes" / "training" / "eight-gpus.yaml"
WORKER = DEPLOY / "kubernetes" / "training" / "worker.yaml"
DOCKERFILE = DEPLOY.parent / "Dockerfile"
SCHEMAS = Path(__file__).parent / "schemas"
KUBERNETES = ("1.31", "1.34")
"""Oldest and newest version that the manifests are checked against."""


def load(file: Path) -> Any:
    return yaml.load(file.read_text(encoding="utf-8"), yaml.CSafeLoader)


def rendered(overlay: str) -> list[Any]:
    """The resources of an overlay, as `kubectl kustomize` would patch them."""
    changes = load(OVERLAYS / overlay / "kustomization.yaml")
    below, *own = changes["resources"]
    if below == "../../base":
        resources = [load(BASE / name) for name in load(BASE / "kustomization.yaml")["resources"]]
    else:
        resources = rendered(below.removeprefix("../"))
    resources += [load(OVERLAYS / overlay / name) for name in own]
    for resource in resources:
        for container in containers(resource):
            for image in changes.get("images", []):
                assert container["image"] == image["name"]
                container["image"] = f"{image['newName']}:{image['newTag']}"
        for patch in changes["patches"]:
            if (resource["kind"], resource["metadata"]["name"]) == tuple(patch["target"].values()):
                for step in yaml.safe_load(patch["patch"]):
                    apply(step, resource)
    return resources


def apply(step: Any, resource: Any) -> None:
    """Applies a step of a JSON patch."""
    assert step["op"] == "add"
    *path, last = (key.replace("~1", "/") for key in step["path"].strip("/").split("/"))
    place = resource
    for key in path:
        place = place[int(key) if key.isdecimal() else key]
    if last == "-":
        place.append(step["value"])
    else:
        place[last] = step["value"]


def only(resources: list[Any], kind: str) -> Any:
    (found,) = [one for one in resources if one["kind"] == kind]
    return found


def pods(manifest: Any) -> list[Any]:
    """All specifications of pods, at whatever depth."""
    if isinstance(manifest, list):
        return [pod for part in manifest for pod in pods(part)]
    if not isinstance(manifest, dict):
        return []
    if "containers" in manifest:
        return [manifest]
    return [pod for part in manifest.values() for pod in pods(part)]


def containers(manifest: Any) -> list[Any]:
    return [container for pod in pods(manifest) for container in pod["containers"]]


def check_kubernetes(resource: Any) -> None:
    import kubernetes_validate

    for version in KUBERNETES:
        kubernetes_validate.validate(resource, version, strict=True)


@pytest.mark.slow
@pytest.mark.parametrize("overlay", FINISHED)
def test_overlays_patch_the_base_to_valid_resources(overlay: str) -> None:
    resources = rendered(overlay)
    for resource in resources:
        check_kubernetes(resource)
    (container,) = containers(only(resources, "Deployment"))
    assert container["resources"]["limits"]["memory"]
    assert container["image"].partition(":")[2] == __version__


@pytest.mark.parametrize("folder", [BASE, *OVERLAYS.iterdir()], ids=lambda folder: folder.name)
def test_every_file_is_a_listed_resource(folder: Path) -> None:
    listed = {name for name in load(folder / "kustomization.yaml")["resources"] if "/" not in name}
    assert {path.name for path in folder.glob("*.yaml")} - {"kustomization.yaml"} == listed


@pytest.mark.skipif(shutil.which("kubectl") is None, reason="needs kubectl")
@pytest.mark.parametrize("overlay", FINISHED)
def test_kustomize_makes_of_an_overlay_what_is_checked_here(overlay: str) -> None:
    folder = OVERLAYS / overlay
    done = subprocess.run(["kubectl", "kustomize", str(folder)], capture_output=True, text=True, check=True)
    made, expected = list(yaml.safe_load_all(done.stdout)), rendered(overlay)
    for resources in (made, expected):
        resources.sort(key=lambda resource: (resource["kind"], resource["metadata"]["name"]))
    assert made == expected


@pytest.mark.parametrize("overlay", ["cpu", "tls"])
def test_probes_and_prometheus_ask_what_the_service_speaks(overlay: str) -> None:
    resources, secure = rendered(overlay), overlay == "tls"
    pod = only(resources, "Deployment")["spec"]["template"]
    (container,) = pod["spec"]["containers"]
    variables = {one["name"]: one.get("value") for one in container["env"]}
    files = {variables.get(f"{ENV_PREFIX}{name.upper()}") for name in ("tls_certificate", "tls_key")}
    assert files == ({"/tls/tls.crt", "/tls/tls.key"} if secure else {None})
    probes = [container[name]["httpGet"] for name in ("startupProbe", "readinessProbe", "livenessProbe")]
    assert {probe.get("scheme", "HTTP") for probe in probes} == {"HTTPS" if secure else "HTTP"}
    scheme = pod["metadata"]["annotations"].get("prometheus.io/scheme", "http")
    (port,) = only(resources, "Service")["spec"]["ports"]
    assert (scheme, port["port"]) == (("https", 443) if secure else ("http", 80))
    volumes = {one["name"]: one for one in pod["spec"]["volumes"]}
    mounted = {one["mountPath"] for one in container["volumeMounts"] if "secret" in volumes[one["name"]]}
    assert mounted == ({"/tls"} if secure else set())


def test_all_resources_mean_the_same_pods() -> None:
    label = {"app.kubernetes.io/name": "segdec"}
    deployment = load(BASE / "deployment.yaml")["spec"]
    assert deployment["template"]["metadata"]["labels"] == deployment["selector"]["matchLabels"] == label
    assert load(BASE / "service.yaml")["spec"]["selector"] == label
    assert load(BASE / "disruption-budget.yaml")["spec"]["selector"]["matchLabels"] == label
    assert load(BASE / "network-policy.yaml")["spec"]["podSelector"]["matchLabels"] == label


def test_containers_have_settings_that_exist_and_this_version() -> None:
    files = [path for path in DEPLOY.rglob("*.yaml") if path.name != "kustomization.yaml"]
    found = [container for file in files for container in containers(load(file))]
    assert len(found) > 5
    for container in found:
        for variable in container.get("env", []):
            if variable["name"].startswith(ENV_PREFIX):
                assert variable["name"].removeprefix(ENV_PREFIX).lower() in Settings.model_fields
        assert container["image"].partition(":")[2] in ("", __version__)


def test_a_replica_that_hangs_is_replaced_and_one_that_stops_has_time_to_finish() -> None:
    for file in ("kubernetes/base/deployment.yaml", "kserve/inference-service.yaml"):
        (container,) = containers(load(DEPLOY / file))
        assert container["livenessProbe"]["httpGet"]["path"] == "/livez"
    compose = load(DEPLOY / "compose" / "compose.yaml")  # without a probe: the process exits by itself
    assert compose["services"]["segdec"]["restart"] == "unless-stopped"
    (pod,) = pods(load(BASE / "deployment.yaml"))
    drain_s = [float(one["value"]) for one in pod["containers"][0]["env"] if "DRAIN" in one["name"]]
    assert pod["terminationGracePeriodSeconds"] > sum(drain_s) > 0


@pytest.mark.slow
@pytest.mark.parametrize(
    ("file", "schema"),
    [
        ("kserve/inference-service.yaml", "inference-service"),
        ("kubeflow/multi-worker.yaml", "tf-job"),
        ("kubeflow/parameter-server.yaml", "tf-job"),
        *((f"compose/{name}.yaml", "compose-spec") for name in ("compose", "gpu", "record", "worker")),
    ],
)
def test_files_follow_the_schemas_of_kserve_kubeflow_and_compose(file: str, schema: str) -> None:
    import check_jsonschema
    import jsonschema

    if schema == "compose-spec":
        official = Path(check_jsonschema.__file__).parent / "builtin_schemas/vendor/compose-spec.json"
        validator = jsonschema.Draft7Validator(json.loads(official.read_text(encoding="utf-8")))
    else:
        unpacked = gzip.decompress((SCHEMAS / f"{schema}.json.gz").read_bytes())
        validator = jsonschema.Draft202012Validator(json.loads(unpacked))
    resource = load(DEPLOY / file)
    validator.validate(resource)
    resource.get("spec", resource)["unheard"] = 1
    with pytest.raises(jsonschema.ValidationError, match="unheard"):
        validator.validate(resource)


def test_compose_names_this_version_and_mounts_files_that_exist() -> None:
    base, gpu = (load(DEPLOY / "compose" / name)["services"] for name in ("compose.yaml", "gpu.yaml"))
    assert base["segdec"]["image"] == f"segdec:{__version__}"
    assert set(gpu) <= set(base)
    assert gpu["segdec"]["image"] == f"segdec-gpu:{__version__}"
    assert gpu["segdec"]["build"]["target"] == "serve-gpu"
    mounts = [volume for service in base.values() for volume in service["volumes"] if isinstance(volume, str)]
    local = [mount.partition(":")[0] for mount in mounts if mount.startswith(".")]
    assert local
    assert all((DEPLOY / "compose" / path).exists() for path in local)


def alerts() -> list[Any]:
    return list(load(DEPLOY / "prometheus" / "alerts.yaml")["groups"][0]["rules"])


def exported_labels() -> dict[str, set[str]]:
    """The labels of each series of the service, when a request was counted."""
    exported = Metrics(lambda: 0, lambda: True)
    RecordMetrics(exported)
    OutboxMetrics(exported, ["webhook"])
    register_opcua_metrics(exported, SimpleNamespace(is_up=True, skipped=0))
    exported.count_request("GET", "/v1/predict", 200, 1.0)
    model = ModelIdentity(name="castings", version="1", sha256=None)
    exported.observe_distances(model, {"brightness": 0.1})
    exported.observe_answer(model, "good", 0.1, -2.2, **{f"{step}_ms": 1.0 for step in STEPS})
    series = re.finditer(r"^(segdec_\w+)(?:\{(.*)\})? ", exported.render()[0].decode(), flags=re.MULTILINE)
    return {found[1]: set(re.findall(r'(\w+)="', found[2] or "")) for found in series}


def test_alerts_ask_for_metrics_that_the_service_has() -> None:
    exported = exported_labels()
    for rule in alerts():
        promql_parser.parse(rule["expr"])
        assert rule["annotations"]["summary"]
        asked = re.findall(r"(segdec_\w+)(?:\{([^}]*)\})?", rule["expr"])
        for name, selector in asked:
            assert set(re.findall(r"(\w+)\s*[=!]", selector)) <= exported[name], rule["alert"]
        known = set.union({"instance", "job", "le"}, *(exported[name] for name, _ in asked))
        grouped = re.findall(r"\bby \(([^)]*)\)", rule["expr"])
        assert {label for labels in grouped for label in labels.split(", ")} <= known, rule["alert"]
    scaled = load(BASE / "autoscaler.yaml")["spec"]["metrics"][0]["pods"]["metric"]["name"]
    assert scaled in exported


def test_alerts_ask_for_values_that_the_service_counts() -> None:
    expressions = " ".join(rule["expr"] for rule in alerts())
    counted = {"reason": REJECTION_REASONS, "result": PHOTOGRAPH_RESULTS, "code": CONNECTION_PROBLEMS}
    for label, values in {**counted, "label": [REVIEW]}.items():
        asked = re.findall(rf'\b{label}=~?"([^"]+)"', expressions)
        assert asked
        assert set("|".join(asked).split("|")) <= set(values)


def test_every_alert_is_explained() -> None:
    text = (DEPLOY.parent / "docs" / "operations.md").read_text(encoding="utf-8")
    explained = re.findall(r"`(Segdec\w+)`", text)
    assert set(explained) == {rule["alert"] for rule in alerts()}


@pytest.mark.skipif(shutil.which("promtool") is None, reason="needs promtool")
def test_alerts_fire_when_they_should() -> None:
    command = ["promtool", "test", "rules", "alerts.test.yaml", "alerts.week.test.yaml"]
    done = subprocess.run(command, cwd=DEPLOY / "prometheus", capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


# === GPUs ===

GPU = "nvidia.com/gpu"
BINARY = {"Ki": 2**10, "Mi": 2**20, "Gi": 2**30}


def in_bytes(quantity: str) -> int:
    return int(quantity[:-2]) * BINARY[quantity[-2:]]


def limits(pod: Any) -> dict[str, str]:
    """Those of a pod with one container."""
    (container,) = pod["containers"]
    found: dict[str, str] = container.get("resources", {}).get("limits", {})
    return found


def mounted(pod: Any) -> dict[str, Any]:
    """Where the volumes of a pod with one container are mounted, and what they are."""
    volumes = {volume["name"]: volume for volume in pod["volumes"]}
    (container,) = pod["containers"]
    return {mount["mountPath"]: volumes[mount["name"]] | mount for mount in container["volumeMounts"]}


def pods_with_gpus() -> list[tuple[str, Any]]:
    files = [JOB, WORKER, *sorted((DEPLOY / "kubeflow").glob("*.yaml"))]
    found = [(path.name, pod) for path in files for pod in pods(load(path))]
    found.append(("overlay gpu", pods(rendered("gpu"))[0]))
    return [(name, pod) for name, pod in found if GPU in limits(pod)]


def image_variables(target: str) -> dict[str, str]:
    """What the last stage of a target sets, without the stages it is made from."""
    text = DOCKERFILE.read_text(encoding="utf-8").replace("\\\n", " ")
    (stage,) = re.findall(rf"^FROM \S+ AS {target}$(.*?)(?=^FROM|\Z)", text, flags=re.MULTILINE | re.DOTALL)
    lines = re.findall(r"^ENV (.*)$", stage, flags=re.MULTILINE)
    return dict(pair.split("=", 1) for line in lines for pair in line.split())


def test_job_trains_on_the_gpus_that_it_asks_for() -> None:
    check_kubernetes(load(JOB))
    (container,) = containers(load(JOB))
    words = container["args"]
    assert words[0] == "run"
    config = load_experiment(DEPLOY.parent / words[1], words[2:])
    gpus = int(container["resources"]["limits"][GPU])
    assert gpus == 8
    assert config.devices is None
    assert config.batch_size % gpus == 0
    assert int(container["resources"]["requests"]["cpu"]) >= gpus * config.data.decode_threads
    found = mounted(load(JOB)["spec"]["template"]["spec"])
    assert found[str(config.runs)]["persistentVolumeClaim"].get("readOnly", False) is False
    assert found["/data"]["readOnly"]
    assert str(config.data.root).startswith("/data/")


def test_job_restarts_after_temporary_failures_and_fails_after_others() -> None:
    """A run folder lets in one process, so that the first one must be gone before the next starts."""
    spec = load(JOB)["spec"]
    rules = spec["podFailurePolicy"]["rules"]
    assert spec["template"]["spec"]["restartPolicy"] == "Never"  # a policy for failures asks for it
    assert spec["podReplacementPolicy"] == "Failed"
    assert spec["backoffLimit"] > 0
    by_cause = {}
    for rule in rules:
        by_cause |= dict.fromkeys(rule.get("onExitCodes", {}).get("values", []), rule["action"])
        by_cause |= {condition["type"]: rule["action"] for condition in rule.get("onPodConditions", [])}
    # Not EXIT_PEER_LOST: one pod has no peers
    assert by_cause == {
        EXIT_CODES[signal.SIGTERM]: "Ignore",
        EXIT_ERROR: "FailJob",
        "DisruptionTarget": "Ignore",
    }


def worker_options(words: list[str]) -> argparse.Namespace:
    """What a worker is started with."""
    assert words[0] == "worker"
    return build_parser().parse_args(words)


def test_workers_in_a_cluster_read_the_key_and_write_to_their_own_folder() -> None:
    check_kubernetes(load(WORKER))
    (container,) = containers(load(WORKER))
    options = worker_options(container["args"])
    assert options.url == f"http://{load(BASE / 'service.yaml')['metadata']['name']}"
    found = mounted(load(WORKER)["spec"]["template"]["spec"])
    assert found[str(options.key_file.parent)]["secret"]["secretName"] == "segdec-worker"
    assert "emptyDir" in found[str(options.folder)]
    fields = {one["name"]: one["valueFrom"]["fieldRef"]["fieldPath"] for one in container["env"]}
    assert fields == {"POD_NAME": "metadata.name", "POD_IP": "status.podIP"}
    assert options.name == "$(POD_NAME)"  # the service lists each pod
    assert find_address_problem(options.address.replace("$(POD_IP)", "10.0.0.5")) is None
    assert container["resources"]["limits"][GPU] == "1"
    label = load(WORKER)["spec"]["selector"]["matchLabels"]
    assert label != load(BASE / "deployment.yaml")["spec"]["selector"]["matchLabels"]


def test_compose_gives_the_worker_the_key_that_the_service_knows() -> None:
    services = load(DEPLOY / "compose" / "worker.yaml")["services"]
    service, worker = services["segdec"], services["worker"]
    options = worker_options(worker["command"])
    assert options.url == "http://segdec:8000"
    targets = {
        mount["target"]: mount
        for mount in (*service["volumes"], *worker["volumes"])
        if isinstance(mount, dict)
    }
    settings = service["environment"]
    assert str(options.key_file.parent) == str(Path(settings["SEGDEC_TRAIN_KEYS"]).parent) == "/keys"
    assert targets["/keys"]["read_only"]
    assert not targets[settings["SEGDEC_MODELS"]].get("read_only")  # for models that are put into use
    assert f"worker:{options.folder}" in worker["volumes"]
    assert worker["stop_grace_period"] == "5m"
    assert worker["image"] == f"segdec-train:{__version__}"


def test_training_pods_have_time_for_a_checkpoint() -> None:
    files = [JOB, WORKER, *(DEPLOY / "kubeflow").glob("*.yaml")]
    grace_s = [pod["terminationGracePeriodSeconds"] for path in files for pod in pods(load(path))]
    assert len(grace_s) > 3
    assert min(grace_s) >= 300


def test_gpus_of_one_pod_have_shared_memory_for_nccl() -> None:
    """Docker and Kubernetes give 64 MiB; what is there counts as memory of the container."""
    several = [pod for _, pod in pods_with_gpus() if limits(pod)[GPU] != "1"]
    assert several
    for pod in several:
        shared = mounted(pod)["/dev/shm"]["emptyDir"]
        assert shared["medium"] == "Memory"
        assert 2**30 <= in_bytes(shared["sizeLimit"]) < in_bytes(limits(pod)["memory"])


@pytest.mark.parametrize("target", ["serve-gpu", "train"])
def test_images_keep_what_the_driver_compiles(target: str) -> None:
    found = image_variables(target)
    assert int(found["CUDA_CACHE_MAXSIZE"]) == 4 * 2**30
    stage = DOCKERFILE.read_text(encoding="utf-8").partition(f" AS {target}\n")[2].partition("\nFROM")[0]
    assert f"VOLUME {found['CUDA_CACHE_PATH']}\n" in stage  # writable where the root file system is not
    assert stage.index("RUN install") < stage.index("VOLUME") < stage.index("USER 10001")


def test_documents_name_the_gpus_that_tensorflow_has_binaries_for() -> None:
    """Read from its wheel's build information; importing TensorFlow takes seconds."""
    spec = importlib.util.find_spec("tensorflow")
    assert spec is not None and spec.origin is not None
    text = (Path(spec.origin).parent / "python" / "platform" / "build_info.py").read_text(encoding="utf-8")
    built = re.findall(r"(?:sm|compute)_(\d)(\d)", text)
    if not built:
        pytest.skip("TensorFlow without CUDA")
    named = [f"{major}.{minor}" for major, minor in built]
    page = " ".join((DEPLOY.parent / "docs" / "distributed.md").read_text(encoding="utf-8").split())
    assert f"compute capability {', '.join(named[:-1])} and {named[-1]}," in page


def test_pods_with_gpus_have_time_for_the_compilation_and_keep_it() -> None:
    place = image_variables("train")["CUDA_CACHE_PATH"]
    assert place == image_variables("serve-gpu")["CUDA_CACHE_PATH"]
    assert len(pods_with_gpus()) == 5
    for name, pod in pods_with_gpus():
        volume = mounted(pod)[place]
        assert volume["persistentVolumeClaim"]["claimName"] == "segdec-cache", name
        assert not volume.get("readOnly"), name
        assert pod["securityContext"]["fsGroup"] == 10001, name
    (container,) = containers(only(rendered("gpu"), "Deployment"))
    probe = container["startupProbe"]  # TensorFlow may compile for half an hour
    assert probe["periodSeconds"] * probe["failureThreshold"] >= 45 * 60
    gpu = load(DEPLOY / "compose" / "gpu.yaml")
    (mount,) = gpu["services"]["segdec"]["volumes"]
    assert mount == f"cache:{place}"
    assert "cache" in gpu["volumes"]
    claim = load(DEPLOY / "kubernetes" / "overlays" / "gpu" / "cache-volume.yaml")
    assert claim["metadata"]["name"] == "segdec-cache"
    assert in_bytes(claim["spec"]["resources"]["requests"]["storage"]) > 4 * 2**30


# === Record ===


def test_compose_records_in_the_database_beside_it() -> None:
    services = load(DEPLOY / "compose" / "record.yaml")["services"]
    service, database = services["segdec"], services["database"]
    settings = settings_of(service["environment"])
    assert settings.record == "required"
    url = make_url(settings.record_database or "")
    made = database["environment"]
    assert (url.host, url.username, url.database) == ("database", made["POSTGRES_USER"], made["POSTGRES_DB"])
    assert service["depends_on"]["database"]["condition"] == "service_healthy"
    assert database["healthcheck"]["test"][1] == "pg_isready"
    assert "ports" not in database
    assert url.password is None
    given = service["environment"]["PGPASSWORD"]
    assert given == made["POSTGRES_PASSWORD"]
    assert given.startswith("${RECORD_PASSWORD:?")  # an empty one, or none, is an error
    mounts = [mount for part in services.values() for mount in part["volumes"]]
    assert mounts == [f"record:{record_folder()}", "database:/var/lib/postgresql/data"]


def test_overlay_records_for_all_replicas_together() -> None:
    resources = rendered("record")
    pod = only(resources, "Deployment")["spec"]["template"]["spec"]
    (container,) = pod["containers"]
    variables = {one["name"]: one for one in container["env"]}
    database = variables.pop(f"{ENV_PREFIX}RECORD_DATABASE")
    assert database["valueFrom"]["secretKeyRef"] == {"name": "segdec-record", "key": "uri"}
    assert variables.pop("NAMESPACE")["valueFrom"]["fieldRef"] == {"fieldPath": "metadata.namespace"}
    values = {name: one["value"].replace("$(NAMESPACE)", "line") for name, one in variables.items()}
    settings = settings_of(values)
    assert settings.record == "required"
    assert settings.allowed_hosts == ("segdec.line", "*.svc", "*.svc.cluster.local")
    volume = mounted(pod)[record_folder()]
    assert not volume.get("readOnly")
    assert pod["securityContext"]["fsGroup"] == 10001
    claims = {one["metadata"]["name"]: one for one in resources if one["kind"] == "PersistentVolumeClaim"}
    claim = claims[volume["persistentVolumeClaim"]["claimName"]]
    assert claim["spec"]["accessModes"] == ["ReadWriteMany"]
    for overlay, ports in (("cpu", set()), ("record", {5432, 53})):
        egress = only(rendered(overlay), "NetworkPolicy")["spec"]["egress"]
        assert {port["port"] for rule in egress for port in rule["ports"]} == ports


def settings_of(environment: dict[str, str]) -> Settings:
    """What a container with these variables is set to."""
    own = {name: value for name, value in environment.items() if name.startswith(ENV_PREFIX)}
    given = {name.removeprefix(ENV_PREFIX).lower(): value for name, value in own.items()}
    assert set(given) <= set(Settings.model_fields)
    return Settings.model_validate({"model": "/models", **given})


def record_folder() -> str:
    return image_variables("service")["SEGDEC_RECORD_FOLDER"]


# === Images ===

IMAGES = {
    "serve": (["tensorflow"], ["serve", "record"]),
    "serve-gpu": (["gpu"], ["serve", "record"]),
    "train": (["gpu", "encoder"], ["train"]),
}
"""Extras and dependency groups of each."""


@pytest.mark.parametrize("image", [*IMAGES, "build"])
def test_packages_of_an_image_have_hashes_and_the_tested_versions(image: str) -> None:
    lines = (DEPLOY.parent / "constraints.txt").read_text(encoding="utf-8").splitlines()
    pairs = [line.split("==") for line in lines if "==" in line]
    tested = {canonicalize_name(name): version for name, version in pairs}
    found = {package.name: package.version for package in read_lock(lock_file(image))}
    assert found
    for name, version in found.items():
        assert tested.get(canonicalize_name(name), version) == version, name
    text = (DEPLOY / "image" / f"{image}.txt").read_text(encoding="utf-8")
    assert all("--hash=sha256:" in part for part in re.split(r"^(?=\w)", text, flags=re.MULTILINE)[1:])


@pytest.mark.parametrize("image", IMAGES)
def test_packages_of_an_image_are_those_of_its_extras_and_groups(image: str) -> None:
    declared = tomllib.loads((DEPLOY.parent / "pyproject.toml").read_text(encoding="utf-8"))
    project, (extras, groups) = declared["project"], IMAGES[image]
    wanted, waiting = {*project["dependencies"]}, [*extras]
    for group in groups:
        wanted.update(declared["dependency-groups"][group])
    for name in waiting:
        for requirement in project["optional-dependencies"][name]:
            inner = re.match(r"segdec\[(.*)\]", requirement)
            if inner:
                waiting += inner[1].split(",")
            else:
                wanted.add(requirement)
    names = {re.split(r"[^A-Za-z0-9-]", requirement)[0] for requirement in wanted}
    assert names <= {package.name for package in read_lock(lock_file(image))}


def test_images_are_of_this_version() -> None:
    text = DOCKERFILE.read_text(encoding="utf-8")
    assert re.search(r"^ARG VERSION=(\S+)$", text, flags=re.MULTILINE)[1] == __version__  # type: ignore[index]
    targets = set(re.findall(r" AS ([\w-]+)$", text, flags=re.MULTILINE))
    assert {"serve", "serve-gpu", "train"} <= targets


def test_balancer_lets_through_what_the_service_takes() -> None:
    text = (DEPLOY / "nginx" / "segdec.conf").read_text(encoding="utf-8")
    settings = Settings(model=Path("/models"))
    (megabytes,) = re.findall(r"client_max_body_size (\d+)m;", text)
    (seconds,) = re.findall(r"proxy_read_timeout (\d+)s;", text)
    assert int(megabytes) * 2**20 == settings.max_body_bytes
    assert 1000 * int(seconds) > settings.deadline_ms
