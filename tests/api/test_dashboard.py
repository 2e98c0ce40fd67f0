import json
import re
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest

from api.delivery.outbox_metrics import OutboxMetrics
from api.inference.memory_budget import MemoryBudget
from api.inspecting.memory_metrics import MemoryMetrics
from api.inspecting.shadow.shadow_metrics import ShadowMetrics
from api.metrics import STEPS, Metrics
from api.models.registry import ServedModel
from api.record.record_metrics import RecordMetrics
from segdec.schemas import ModelIdentity

FILE = Path(__file__).parents[2] / "deploy" / "grafana" / "segdec.json"
ADDED_BY_PROMETHEUS = {"instance", "job"}


@pytest.fixture(scope="module")
def dashboard() -> dict[str, Any]:
    return json.loads(FILE.read_text("utf-8"))


@pytest.fixture(scope="module")
def exported() -> dict[str, set[str]]:
    """The labels of each series, when everything was counted once."""
    model = ModelIdentity(name="castings", version="1", sha256="aa")
    metrics = Metrics(lambda: 0, lambda: True)
    metrics.count_request("POST", "/v1/predict", 200, 1.0)
    metrics.count_rejection("queue_full")
    metrics.observe_batch(1)
    metrics.observe_distances(model, {"brightness": 0.1})
    metrics.observe_answer(model, "good", 0.1, -2.2, **{f"{step}_ms": 1.0 for step in STEPS})
    metrics.set_models([(model, ["stable"])])
    served = ServedModel(model, ("stable",), Mock())
    memory = MemoryBudget(2**32, 2**29, 2**24, 1)
    metrics.register(MemoryMetrics(memory, Mock(reserved=0), Mock(all=lambda: [served])))
    RecordMetrics(metrics).reviews.labels("good").inc()
    ShadowMetrics(metrics).initialize(model)
    OutboxMetrics(metrics, ["mqtt"])
    lines = metrics.render()[0].decode().splitlines()
    series = (re.match(r"(\w+)(?:\{(.*)\})? ", line) for line in lines if not line.startswith("#"))
    return {found[1]: set(re.findall(r'(\w+)="', found[2] or "")) for found in series if found}


def expressions(dashboard: dict[str, Any]) -> list[tuple[str, str]]:
    """Each expression with the template of its legend."""
    targets = [target for panel in dashboard["panels"] for target in panel["targets"]]
    variables = [v for v in dashboard["templating"]["list"] if v["type"] == "query"]
    return [(target["expr"], target["legendFormat"]) for target in targets] + [
        (variable["query"]["query"], "") for variable in variables
    ]


def used(expression: str) -> list[tuple[str, set[str]]]:
    """Each metric of an expression with the labels that select its series."""
    selectors = re.findall(r"\b((?:segdec|process)_\w+)(?:\{([^}]*)\})?", expression)
    return [(name, set(re.findall(r"(\w+)\s*[=!]", labels))) for name, labels in selectors]


def base(name: str) -> str:
    return re.sub(r"_(bucket|sum|count)$", "", name)


def grouped(expression: str, legend: str) -> set[str]:
    """The labels that an expression groups or lists by, and those of its legend."""
    lists = re.findall(r"\b(?:by|on)\s*\(([^)]*)\)", expression)
    listed = re.findall(r"label_values\(.*,\s*(\w+)\)", expression)
    listed += re.findall(r"\{\{(\w+)\}\}", legend)
    return {name.strip() for names in lists for name in names.split(",")} | {*listed}


def test_every_metric_and_label_of_the_dashboard_is_exported(dashboard, exported):
    for expression, legend in expressions(dashboard):
        metrics = used(expression)
        assert metrics, expression
        for name, labels in metrics:
            assert name in exported, expression
            assert labels <= exported[name] | ADDED_BY_PROMETHEUS, expression
        known = set.union(*(exported[name] for name, _ in metrics)) | ADDED_BY_PROMETHEUS
        assert grouped(expression, legend) <= known, expression


def test_every_metric_of_the_service_is_shown(dashboard, exported):
    shown = {base(name) for expression, _ in expressions(dashboard) for name, _ in used(expression)}
    assert {base(name) for name in exported if name.startswith("segdec_")} <= shown


def test_variables_of_the_expressions_are_declared(dashboard):
    declared = {variable["name"] for variable in dashboard["templating"]["list"]}
    named = set(re.findall(r"\$\{?(\w+)", json.dumps(dashboard))) - {"__rate_interval", "__all"}
    assert named == declared
