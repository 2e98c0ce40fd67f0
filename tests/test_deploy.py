"""The files in deploy against the official schemas, and against what the service really has."""

import gzip
import importlib.util
import json
import re
import shutil
import signal
import subprocess
import sys
import tomllib
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import jsonschema
import kubernetes_validate
import promql_parser
import pytest
import yaml
from sqlalchemy import make_url

from api.delivery.outbox_metrics import OutboxMetrics
from api.metrics import CONNECTION_PROBLEMS, PHOTOGRAPH_RESULTS, REJECTION_REASONS, STEPS, Metrics
from api.records.record_metrics import RecordMetrics
from api.settings import ENV_PREFIX, Settings
from deploy.release.locks import lock_file, read_lock
from segdec import __version__
from segdec.config import REVIEW
from segdec.runtime.cli import EXIT_ERROR
from segdec.schemas import ModelIdentity
from training.distribution.interruption import EXIT_CODES, EXIT_PEER_LOST
from training.experiment_file import load_experiment

DEPLOY = Path(__file__).parents[1] / "deploy"
BASE = DEPLOY / "kubernetes" / "base"
OVERLAYS = DEPLOY / "kubernetes" / "overlays"
FINISHED = ("cpu", "gpu", "tls", "record")
"""The overlays: what each makes of the base can be applied."""
SCHEMAS = Path(__file__).parent / "schemas"
KUBERNETES = ("1.31", "1.34")
"""Oldest and newest version that the manifests are checked against."""


def load(file: Path) -> Any:
    return yaml.safe_load(file.read_text(encoding="utf-8"))


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


def by_name(resources: list[Any]) -> list[Any]:
    return sorted(resources, key=lambda one: (one["kind"], one["metadata"]["name"]))


def only(resources: list[Any], kind: str) -> Any:
    (found,) = [one for one in resources if one["kind"] == kind]
    return found


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
@pytest.mark.parametrize("overlay", FINISHED)
def test_overlays_patch_the_base_to_valid_resources(overlay: str, version: str) -> None:
    resources = rendered(overlay)
    for resource in resources:
        kubernetes_validate.validate(resource, version, strict=True)
    (container,) = containers(only(resources, "Deployment"))
    assert container["resources"]["limits"]["memory"]


@pytest.mark.parametrize("overlay", FINISHED)
def test_every_file_of_an_overlay_is_part_of_it(overlay: str) -> None:
    listed = load(OVERLAYS / overlay / "kustomization.yaml")["resources"]
    files = {path.name for path in (OVERLAYS / overlay).glob("*.yaml")} - {"kustomization.yaml"}
    assert files == set(listed[1:])


@pytest.mark.skipif(shutil.which("kubectl") is None, reason="needs kubectl")
@pytest.mark.parametrize("overlay", FINISHED)
def test_kustomize_makes_of_an_overlay_what_is_checked_here(overlay: str) -> None:
    folder = OVERLAYS / overlay
    done = subprocess.run(["kubectl", "kustomize", str(folder)], capture_output=True, text=True, check=True)
    resources = list(yaml.safe_load_all(done.stdout))
    assert by_name(resources) == by_name(rendered(overlay))


@pytest.mark.parametrize(("overlay", "secure"), [(name, name == "tls") for name in FINISHED])
def test_probes_and_prometheus_ask_what_the_service_speaks(overlay: str, secure: bool) -> None:
    resources = rendered(overlay)
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


def test_every_overlay_is_checked() -> None:
    assert {path.name for path in OVERLAYS.iterdir()} == set(FINISHED)


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
    (image,) = load(OVERLAYS / overlay / "kustomization.yaml")["images"]
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


@pytest.mark.parametrize("file", ["compose.yaml", "gpu.yaml", "record.yaml"])
def test_compose_files_are_such(file: str) -> None:
    command = [sys.executable, "-m", "check_jsonschema", "--builtin-schema", "vendor.compose-spec"]
    done = subprocess.run(
        [*command, str(DEPLOY / "compose" / file)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_compose_with_a_gpu_changes_what_is_there() -> None:
    base, gpu = (load(DEPLOY / "compose" / name)["services"] for name in ("compose.yaml", "gpu.yaml"))
    assert set(gpu) <= set(base)
    assert gpu["segdec"]["image"] == f"segdec-gpu:{__version__}"
    assert gpu["segdec"]["build"]["target"] == "serve-gpu"


def test_compose_mounts_what_is_there() -> None:
    compose = load(DEPLOY / "compose" / "compose.yaml")
    assert compose["services"]["segdec"]["image"] == f"segdec:{__version__}"
    for service in compose["services"].values():
        for volume in service["volumes"]:
            if isinstance(volume, str) and volume.startswith("."):
                assert (DEPLOY / "compose" / volume.partition(":")[0]).exists()


def alerts() -> list[Any]:
    return list(load(DEPLOY / "prometheus" / "alerts.yaml")["groups"][0]["rules"])


def exported_labels() -> dict[str, set[str]]:
    """The labels of each series of the service, when a request was counted."""
    exported = Metrics(lambda: 0, lambda: True)
    RecordMetrics(exported)
    OutboxMetrics(exported, ["webhook"])
    exported.count_request("GET", "/v1/predict", 200, 1.0)
    model = ModelIdentity(name="castings", version="1", sha256=None)
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


@pytest.mark.parametrize(
    ("label", "values"),
    [
        ("reason", REJECTION_REASONS),
        ("result", PHOTOGRAPH_RESULTS),
        ("code", CONNECTION_PROBLEMS),
        ("label", [REVIEW]),
    ],
)
def test_alerts_ask_for_values_that_the_service_counts(label: str, values: Iterable[str]) -> None:
    expressions = " ".join(rule["expr"] for rule in alerts())
    asked = re.findall(rf'\b{label}=~?"([^"]+)"', expressions)
    assert asked
    assert set("|".join(asked).split("|")) <= set(values)


def test_every_alert_is_explained() -> None:
    text = (DEPLOY.parent / "docs" / "operations.md").read_text(encoding="utf-8")
    explained = re.findall(r"`(Segdec\w+)`", text)
    assert set(explained) == {rule["alert"] for rule in alerts()}


@pytest.mark.skipif(shutil.which("promtool") is None, reason="needs promtool")
def test_alerts_fire_when_they_should() -> None:
    done = subprocess.run(
        ["promtool", "test", "rules", "alerts.test.yaml"],
        cwd=DEPLOY / "prometheus",
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr


# === GPUs ===

JOB = DEPLOY / "kubernetes" / "training" / "eight-gpus.yaml"
GPU = "nvidia.com/gpu"
BINARY = {"Ki": 2**10, "Mi": 2**20, "Gi": 2**30}


def in_bytes(quantity: str) -> int:
    return int(quantity[:-2]) * BINARY[quantity[-2:]]


def pods(manifest: Any) -> list[Any]:
    """All specifications of pods, at whatever depth."""
    if isinstance(manifest, list):
        return [one for part in manifest for one in pods(part)]
    if not isinstance(manifest, dict):
        return []
    if "containers" in manifest:
        return [manifest]
    return [one for part in manifest.values() for one in pods(part)]


def limits(pod: Any) -> dict[str, str]:
    """Those of a pod with one container."""
    (container,) = pod["containers"]
    found: dict[str, str] = container.get("resources", {}).get("limits", {})
    return found


def mounted(pod: Any) -> dict[str, Any]:
    """Where the volumes of a pod with one container lie in it, and what they are."""
    volumes = {volume["name"]: volume for volume in pod["volumes"]}
    (container,) = pod["containers"]
    return {mount["mountPath"]: volumes[mount["name"]] | mount for mount in container["volumeMounts"]}


def pods_with_gpus() -> list[tuple[str, Any]]:
    files = [JOB, *sorted((DEPLOY / "kubeflow").glob("*.yaml"))]
    found = [(path.name, pod) for path in files for pod in pods(load(path))]
    found.append(("overlay gpu", pods(rendered("gpu"))[0]))
    return [(name, pod) for name, pod in found if GPU in limits(pod)]


def image_variables(target: str) -> dict[str, str]:
    """What the last stage of a target sets, without the stages it is made from."""
    text = (DEPLOY.parent / "Dockerfile").read_text(encoding="utf-8").replace("\\\n", " ")
    (stage,) = re.findall(rf"^FROM \S+ AS {target}$(.*?)(?=^FROM|\Z)", text, flags=re.MULTILINE | re.DOTALL)
    lines = re.findall(r"^ENV (.*)$", stage, flags=re.MULTILINE)
    return dict(pair.split("=", 1) for line in lines for pair in line.split())


@pytest.mark.parametrize("version", KUBERNETES)
def test_job_on_eight_gpus_is_one_of_kubernetes(version: str) -> None:
    kubernetes_validate.validate(load(JOB), version, strict=True)


def test_job_trains_on_the_gpus_that_it_asks_for() -> None:
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


def test_job_goes_on_after_what_passes_and_ends_with_what_does_not() -> None:
    """A run folder lets in one process, so that the first one must be gone before the next starts."""
    spec = load(JOB)["spec"]
    assert spec["template"]["spec"]["restartPolicy"] == "Never"  # a policy for failures asks for it
    assert spec["podReplacementPolicy"] == "Failed"
    assert spec["backoffLimit"] > 0
    rules = spec["podFailurePolicy"]["rules"]
    by_code = {
        code: rule["action"] for rule in rules for code in rule.get("onExitCodes", {}).get("values", [])
    }
    assert by_code == {EXIT_CODES[signal.SIGTERM]: "Ignore", EXIT_ERROR: "FailJob"}
    assert {
        condition["type"]: rule["action"] for rule in rules for condition in rule.get("onPodConditions", [])
    } == {"DisruptionTarget": "Ignore"}
    assert EXIT_PEER_LOST not in by_code  # nobody to lose


def test_training_pods_have_time_for_a_checkpoint() -> None:
    for path in [JOB, *sorted((DEPLOY / "kubeflow").glob("*.yaml"))]:
        for pod in pods(load(path)):
            assert pod["terminationGracePeriodSeconds"] >= 300, path.name


def test_gpus_of_one_pod_have_shared_memory_for_nccl() -> None:
    """Docker and Kubernetes give 64 MiB; what lies there counts as memory of the container."""
    several = [(name, pod) for name, pod in pods_with_gpus() if limits(pod)[GPU] != "1"]
    assert several
    for name, pod in several:
        shared = mounted(pod)["/dev/shm"]["emptyDir"]
        assert shared["medium"] == "Memory", name
        assert 2**30 <= in_bytes(shared["sizeLimit"]) < in_bytes(limits(pod)["memory"])


@pytest.mark.parametrize("target", ["serve-gpu", "train"])
def test_images_keep_what_the_driver_compiles(target: str) -> None:
    found = image_variables(target)
    assert int(found["CUDA_CACHE_MAXSIZE"]) == 4 * 2**30
    text = (DEPLOY.parent / "Dockerfile").read_text(encoding="utf-8")
    stage = text.partition(f" AS {target}\n")[2].partition("\nFROM")[0]
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


def test_pods_with_gpus_keep_what_the_driver_compiles() -> None:
    place = image_variables("train")["CUDA_CACHE_PATH"]
    assert place == image_variables("serve-gpu")["CUDA_CACHE_PATH"]
    assert len(pods_with_gpus()) == 4
    for name, pod in pods_with_gpus():
        volume = mounted(pod)[place]
        assert volume["persistentVolumeClaim"]["claimName"] == "segdec-cache", name
        assert not volume.get("readOnly"), name
        assert pod["securityContext"]["fsGroup"] == 10001, name
    gpu = load(DEPLOY / "compose" / "gpu.yaml")
    (mount,) = gpu["services"]["segdec"]["volumes"]
    assert mount == f"cache:{place}"
    assert "cache" in gpu["volumes"]
    claim = load(DEPLOY / "kubernetes" / "overlays" / "gpu" / "cache-volume.yaml")
    assert claim["metadata"]["name"] == "segdec-cache"
    assert in_bytes(claim["spec"]["resources"]["requests"]["storage"]) > 4 * 2**30


def test_a_first_start_on_a_new_gpu_is_not_cut_short() -> None:
    """TensorFlow says that compiling may take half an hour or longer; a probe must not begin it anew."""
    probe = containers(only(rendered("gpu"), "Deployment"))[0]["startupProbe"]
    assert probe["periodSeconds"] * probe["failureThreshold"] >= 45 * 60


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


def test_compose_holds_no_password() -> None:
    services = load(DEPLOY / "compose" / "record.yaml")["services"]
    assert make_url(services["segdec"]["environment"]["SEGDEC_RECORD_DATABASE"]).password is None
    given = services["segdec"]["environment"]["PGPASSWORD"]
    assert given == services["database"]["environment"]["POSTGRES_PASSWORD"]
    assert given.startswith("${RECORD_PASSWORD:?")  # an empty one, or none, is an error


def test_compose_keeps_the_record_where_the_image_has_it() -> None:
    record = load(DEPLOY / "compose" / "record.yaml")
    mounts = [mount for service in record["services"].values() for mount in service["volumes"]]
    assert mounts == [f"record:{record_folder()}", "database:/var/lib/postgresql/data"]
    assert set(record["volumes"]) == {"record", "database"}


def test_overlay_records_for_all_replicas_together() -> None:
    resources = rendered("record")
    pod = only(resources, "Deployment")["spec"]["template"]["spec"]
    (container,) = pod["containers"]
    variables = {one["name"]: one for one in container["env"]}
    database = variables.pop(f"{ENV_PREFIX}RECORD_DATABASE")
    assert database["valueFrom"]["secretKeyRef"] == {"name": "segdec-record", "key": "uri"}
    assert settings_of({name: one["value"] for name, one in variables.items()}).record == "required"
    volume = mounted(pod)[record_folder()]
    assert not volume.get("readOnly")
    assert pod["securityContext"]["fsGroup"] == 10001
    (claim,) = [
        one
        for one in resources
        if one["metadata"]["name"] == volume["persistentVolumeClaim"]["claimName"]
        and one["kind"] == "PersistentVolumeClaim"
    ]
    assert claim["spec"]["accessModes"] == ["ReadWriteMany"]


def test_service_that_records_may_call_its_database_and_names() -> None:
    for overlay, ports in (("cpu", set()), ("record", {5432, 53})):
        egress = only(rendered(overlay), "NetworkPolicy")["spec"]["egress"]
        assert {port["port"] for rule in egress for port in rule["ports"]} == ports


def settings_of(environment: dict[str, str]) -> Settings:
    """What a container with these variables is set to."""
    given = {
        name.removeprefix(ENV_PREFIX).lower(): value
        for name, value in environment.items()
        if name.startswith(ENV_PREFIX)
    }
    assert set(given) <= set(Settings.model_fields)
    return Settings.model_validate({"model": "/models", **given})


def record_folder() -> str:
    """Where the images of the service keep the record."""
    return image_variables("service")["SEGDEC_RECORD_FOLDER"]


# === Images ===

IMAGES = {
    "serve": ("tensorflow", "serve", "record"),
    "serve-gpu": ("gpu", "serve", "record"),
    "train": ("gpu", "train"),
}
"""Extra and dependency groups of each."""


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
def test_packages_of_an_image_are_those_of_its_extra_and_groups(image: str) -> None:
    declared = tomllib.loads((DEPLOY.parent / "pyproject.toml").read_text(encoding="utf-8"))
    project, (extra, *groups) = declared["project"], IMAGES[image]
    wanted, waiting = {*project["dependencies"]}, [extra]
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
