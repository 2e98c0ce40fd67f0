"""Hostile models: each is well-formed, has correct checksums, and is rejected before it is loaded."""

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from segdec.config import InputConfig, ModelConfig, NetworkConfig
from segdec.encoders import ENCODERS
from segdec.errors import ArtifactError
from segdec.predictor import Predictor
from tests.forged_artifact import forge
from tests.segdec.network.trained_encoder import build_trained, check_served_layers

Hostile = Callable[[Any, str], Any]
"""TensorFlow and the path of a file to write → a value that is added to the mask logits."""


def write_file(tf: Any, mark: str) -> Any:
    with tf.control_dependencies([tf.io.write_file(mark, "from the graph")]):
        return tf.constant(0.0)


def loop_body(tf: Any, mark: str) -> Any:
    def body(x: Any) -> tuple[Any]:
        return (x + 1.0 + write_file(tf, mark),)

    return tf.while_loop(lambda x: x < 1.0, body, (tf.constant(0.0),))[0]


def huge_constant(tf: Any, _mark: str) -> Any:
    return tf.reduce_max(tf.constant(0.0, shape=[2**28]))  # 1 GB, from four bytes


OPERATIONS = {
    write_file: "WriteFile",
    loop_body: "WriteFile",
    huge_constant: "a constant of 268435456 numbers",
}


@pytest.fixture
def mark(tmp_path: Path) -> Path:
    """The file that a hostile model would write."""
    return tmp_path / "mark"


def module_with(hostile: Hostile, mark: Path) -> Any:
    """A model that works and has a hostile part."""
    import tensorflow as tf

    def serve(images: Any) -> Any:
        zeros = tf.cast(images[:, ::8, ::8], tf.float32) * 0.0
        classes = tf.concat([tf.reduce_mean(zeros, [1, 2])] * 2, axis=1)
        return {"mask_logits": zeros + hostile(tf, str(mark)), "class_logits": classes}

    module = tf.Module()
    module.weights = [tf.Variable(0.0)]
    signature = [tf.TensorSpec([None, None, None, 1], tf.uint8, name="images")]
    module.serve = tf.function(serve, input_signature=signature)
    return module


def save_module(hostile: Hostile, artifact: Path, mark: Path) -> None:
    """Replaces the model of the artifact."""
    import tensorflow as tf

    from segdec.export.reduced_graph import reduce_saved_model

    folder = artifact / "tensorflow"
    shutil.rmtree(folder)
    tf.saved_model.save(module_with(hostile, mark), str(folder), signatures={})
    reduce_saved_model(folder)


def check_refused(artifact: Path, mark: Path, words: str) -> None:
    forge(artifact)
    with pytest.raises(ArtifactError) as caught:
        Predictor.load(artifact, "tensorflow").predict([np.zeros((16, 16, 1), np.uint8)])
    assert words in str(caught.value)
    assert str(artifact) in str(caught.value)
    assert not mark.exists()


# === Functions ===


@pytest.mark.parametrize(("hostile", "words"), OPERATIONS.items(), ids=[one.__name__ for one in OPERATIONS])
def test_graph_that_does_more_than_compute_is_rejected(hostile, words, artifact_copy, mark):
    save_module(hostile, artifact_copy, mark)
    check_refused(artifact_copy, mark, words)


def test_graph_that_only_computes_passes(artifact_copy: Path, mark: Path) -> None:
    save_module(lambda tf, _: tf.constant(0.0), artifact_copy, mark)
    forge(artifact_copy)
    assert Predictor.load(artifact_copy).predict([np.zeros((16, 16, 1), np.uint8)])[0].score == 0.5


def test_code_that_would_run_during_loading_is_rejected(artifact_copy: Path, mark: Path) -> None:
    import tensorflow as tf
    from tensorflow.python.trackable.resource import CapturableResource

    class Table(CapturableResource):
        def _create_resource(self) -> Any:
            return tf.raw_ops.StackV2(max_size=1, elem_type=tf.float32)

        def _initialize(self) -> Any:
            tf.io.write_file(str(mark), "before the first photograph")
            return tf.constant(1)

    module = module_with(lambda tf, _: tf.constant(0.0), mark)
    module.table = Table()
    shutil.rmtree(artifact_copy / "tensorflow")
    tf.saved_model.save(module, str(artifact_copy / "tensorflow"))
    mark.unlink(missing_ok=True)
    check_refused(artifact_copy, mark, "has the f")


# === Single fields ===


def loop(graph: Any) -> Any:
    """Returns the function with a loop, and its node."""
    return next(
        (function, node)
        for function in graph.graph_def.library.function
        for node in function.node_def
        if node.op in ("While", "StatelessWhile")
    )


def call(graph: Any, name: str | None = None) -> None:
    """Makes the loop call another function, by default the one that it is in."""
    function, node = loop(graph)
    node.attr["body"].func.name = name or function.signature.name


def unroll(graph: Any) -> None:
    """Eight functions, each with sixty-four loops of the next one: 2⁴⁸ operations from a few kB."""
    library = graph.graph_def.library
    _, node = loop(graph)
    for level in range(8):
        function = library.function.add()
        function.signature.name = f"level_{level}"
        for index in range(64):
            copy = function.node_def.add()
            copy.CopyFrom(node)
            copy.name = f"loop_{index}"
            for key in ("body", "cond"):
                copy.attr[key].func.name = f"level_{level + 1}" if level < 7 else node.attr[key].func.name


def add_weights(graph: Any) -> None:
    variable = next(one.variable for one in graph.object_graph_def.nodes if one.HasField("variable"))
    variable.shape.dim[0].size = 2**40


def first_node(graph: Any) -> Any:
    return graph.graph_def.library.function[0].node_def[0]


FIELDS: dict[str, tuple[Callable[[Any], object], str]] = {
    "saver": (lambda graph: graph.saver_def.__setattr__("filename_tensor_name", "x"), "'saver_def'"),
    "asset": (lambda graph: graph.asset_file_def.add(filename="/etc/passwd"), "'asset_file_def'"),
    "gradient": (
        lambda graph: graph.graph_def.library.gradient.add(function_name="a", gradient_func="b"),
        "'gradient' of a FunctionDefLibrary",
    ),
    "device": (lambda graph: first_node(graph).__setattr__("device", "/job:w"), "'device' of a NodeDef"),
    "compiler": (lambda graph: first_node(graph).attr["_XlaMustCompile"].__setattr__("b", True), "'_XlaMust"),
    "other implementation": (
        lambda graph: graph.graph_def.library.function[0].attr["api_implements"].__setattr__("s", b"x"),
        "'api_implements'",
    ),
    "kind": (
        lambda graph: graph.object_graph_def.nodes[0].user_object.__setattr__("identifier", "optimizer"),
        "the class 'optimizer'",
    ),
    "saved saver": (
        lambda graph: graph.object_graph_def.nodes[0].saveable_objects["a"].__setattr__("save_function", 1),
        "'saveable_objects'",
    ),
    "no objects": (lambda graph: graph.ClearField("object_graph_def"), "not exactly one graph"),
    "recursion": (call, "is recursive"),
    "call": (lambda graph: call(graph, "not_here"), "a call of the missing function 'not_here'"),
    "unrolling": (unroll, "operations in the function"),
    "weights": (add_weights, "weights. Expected at most"),
}


@pytest.mark.parametrize(("change", "words"), FIELDS.values(), ids=FIELDS)
def test_field_that_no_export_sets_is_rejected(change, words, exported, tmp_path):
    from tensorflow.core.protobuf import saved_model_pb2

    from segdec.engines.tensorflow_graph import check_saved_model

    folder = Path(shutil.copytree(exported / "tensorflow", tmp_path / "tensorflow"))
    check_saved_model(folder)
    saved = saved_model_pb2.SavedModel.FromString((folder / "saved_model.pb").read_bytes())
    change(saved.meta_graphs[0])
    (folder / "saved_model.pb").write_bytes(saved.SerializeToString())
    with pytest.raises(ArtifactError) as caught:
        check_saved_model(folder)
    assert words in str(caught.value)


@pytest.mark.parametrize("name", ["saved_model.pbtxt", "variables/variables.data-00001-of-00002"])
def test_file_that_no_export_writes_is_rejected(name: str, artifact_copy: Path, mark: Path) -> None:
    foreign = artifact_copy / "tensorflow" / name
    foreign.parent.mkdir(exist_ok=True)
    foreign.write_bytes(b"")
    check_refused(artifact_copy, mark, f"has the file '{name}'")


@pytest.mark.parametrize("name", ["saved_model.pb", "variables/variables.index"])
@pytest.mark.parametrize("content", [b"", b"\xff" * 64])
def test_damaged_file_is_rejected(name: str, content: bytes, artifact_copy: Path, mark: Path) -> None:
    (artifact_copy / "tensorflow" / name).write_bytes(content)
    check_refused(artifact_copy, mark, "")


def test_checkpoint_that_names_its_own_saver_is_rejected(artifact_copy: Path, mark: Path) -> None:
    import tensorflow as tf
    from tensorflow.core.protobuf import trackable_object_graph_pb2

    described = trackable_object_graph_pb2.TrackableObjectGraph()
    described.nodes.add().registered_saver.name = "Custom.saver"
    prefix = artifact_copy / "tensorflow/variables/variables"
    tf.raw_ops.SaveV2(
        prefix=str(prefix),
        tensor_names=["_CHECKPOINTABLE_OBJECT_GRAPH"],
        shape_and_slices=[""],
        tensors=[tf.constant(described.SerializeToString())],
    )
    data = prefix.with_name("variables.data-00000-of-00001")
    data.write_bytes(data.read_bytes() + bytes(2**16))  # as large as the weights that are missing
    check_refused(artifact_copy, mark, "'registered_saver'")


# === What we write ===


@pytest.mark.slow
@pytest.mark.parametrize("preset", ["jim2019", "comind2021"])
def test_exports_of_published_presets_pass_the_check(preset: str, tmp_path: Path) -> None:
    """With the finest mask, which uses the most operation types, and with Fourier transforms."""
    from segdec.engines import ENGINES
    from segdec.engines.tensorflow import NetworkEngine
    from segdec.export.model_export import check_parity, write_engine
    from segdec.network.network import build_network

    narrow = {"segmentation_widths": ((4,), (4,), (32,)), "feature_width": 64, "feature_kernel": 9}
    narrow |= {"decision_widths": (4, 4, 4), "decoder_widths": (4, 4, 4), "mask_stride": 1}
    config = NetworkConfig.model_validate({"preset": preset, **narrow})
    model = ModelConfig(network=config, input=InputConfig(), classes=("good", "defect"))
    network = build_network(config)
    reference = NetworkEngine(network)
    for engine in ("tensorflow", "openvino"):
        write_engine(engine, network, tmp_path / engine, [])
        check_parity(reference, ENGINES[engine].load(tmp_path / engine, size=(64, 48)), model, (64, 48))


@pytest.mark.slow
@pytest.mark.parametrize("encoder", sorted(ENCODERS.keys() - {"mobilenet", "efficientnet_lite0"}))
def test_exports_of_all_encoders_pass_the_check_and_equal_the_network(
    encoder: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Depthwise convolutions, those with a bias, in groups, dense layers; at sides that need padding.

    The two that are not here have the operations of the tiny encoder and of `efficientnet_lite2`. OpenVINO
    converts the same files.
    """
    from segdec.engines import ENGINES
    from segdec.engines.tensorflow_graph import check_saved_model
    from segdec.export import openvino_model
    from segdec.export.reduced_graph import reduce_saved_model
    from segdec.export.saved_model import save_network
    from segdec.network.folding import fold_network

    def copy_saved(_network: Any, folder: Path, _layers: Any) -> None:
        shutil.copytree(tmp_path / "tensorflow", folder, dirs_exist_ok=True)

    network = build_trained(encoder)
    photograph = np.random.default_rng(0).integers(0, 256, (1, 40, 56, 3), dtype=np.uint8)
    served = fold_network(network)
    check_served_layers(served)
    save_network(served, tmp_path / "tensorflow")
    monkeypatch.setattr(openvino_model, "save_fourier_network", copy_saved)
    openvino_model.save_float(served, tmp_path / "openvino", transform=False)
    reduce_saved_model(tmp_path / "tensorflow")
    check_saved_model(tmp_path / "tensorflow")
    expected = network(photograph, training=False)
    answer = ENGINES["openvino"].load(tmp_path / "openvino", size=(40, 56)).infer(photograph)
    for logits, name in ((answer.mask, "mask_logits"), (answer.classes, "class_logits")):
        exact = np.asarray(expected[name])
        np.testing.assert_allclose(logits, exact, rtol=0, atol=1e-4 * np.abs(exact).max())


@pytest.mark.slow
@pytest.mark.parametrize("engine", ["tensorflow-bfloat16", "openvino-int8"])
def test_exports_with_reduced_precision_pass_the_check(
    engine: str, tiny_encoder: str, tmp_path: Path
) -> None:
    from segdec.engines import ENGINES
    from segdec.export.model_export import write_engine

    photograph = np.random.default_rng(0).integers(0, 256, (1, 64, 48, 3), dtype=np.uint8)
    write_engine(engine, build_trained(tiny_encoder), tmp_path / engine, list(photograph))
    answer = ENGINES[engine].load(tmp_path / engine, size=(64, 48)).infer(photograph)
    assert np.isfinite(answer.mask).all()
