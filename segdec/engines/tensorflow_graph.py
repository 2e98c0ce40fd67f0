"""Checks that a SavedModel has only expected content before TensorFlow loads it.

To TensorFlow a model is a program that may read and write files, call Python and run code while it is loaded.
Our models only compute. Therefore their files are parsed here first, and everything that an export does not
write is rejected: unknown files, fields and operations. A list of harmful operations would never be complete.
"""

import math
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from segdec.engines.unexpected_content import unexpected_content

GRAPH = "saved_model.pb"
WEIGHTS = "variables/variables"
FILES = frozenset({GRAPH, f"{WEIGHTS}.index", f"{WEIGHTS}.data-00000-of-00001"})

OPERATIONS = frozenset(
    (
        *("AddV2", "FloorDiv", "Maximum", "Mul", "Neg", "RealDiv", "Rsqrt", "Sqrt", "Square", "Sub"),
        *("BatchMatMulV2", "BiasAdd", "Conv2D", "MatMul", "MaxPool", "Relu", "Sigmoid", "SquaredDifference"),
        *("Max", "Mean", "Sum", "Less", "LogicalAnd", "SelectV2", "Cast", "StopGradient"),
        *("ConcatV2", "GatherV2", "Pack", "Pad", "Reshape", "Shape", "Slice", "Squeeze", "StridedSlice"),
        *("ResizeBilinear", "Transpose", "Unpack", "Const", "Identity", "NoOp", "Range", "ReadVariableOp"),
        *("AvgPool", "DepthwiseConv2dNative", "Erf", "Log", "LogSoftmax", "Relu6", "Softmax", "Softplus"),
        *("Exp", "Minimum", "StatelessWhile", "While"),
        *("TensorListFromTensor", "TensorListGetItem", "TensorListReserve", "TensorListSetItem"),
        "TensorListStack",
    )
)
"""Operations of the networks of all presets and encoders. They have no side effects."""

ATTRIBUTES = frozenset(
    (
        *("T", "N", "DstT", "SrcT", "Index", "Taxis", "Tindices", "Tparams", "dtype", "element_dtype"),
        *("axis", "begin_mask", "end_mask", "new_axis_mask", "shrink_axis_mask", "keep_dims", "num", "value"),
        *("ksize", "strides", "padding", "body", "cond", "output_shapes", "shape_type"),
        *("align_corners", "half_pixel_centers"),
        *("_lower_using_switch_merge", "_num_original_outputs", "_output_shapes"),
        *("_read_only_resource_inputs", "_user_specified_name", "_construction_context", "_input_shapes"),
    )
)
"""Attributes of operations, functions and arguments. Others select devices, compilers or functions."""

FIELDS: Mapping[str, str] = {
    # === Functions ===
    "SavedModel": "meta_graphs saved_model_schema_version",
    "MetaGraphDef": "graph_def meta_info_def object_graph_def",
    "MetaGraphDef.MetaInfoDef": "tags tensorflow_version",
    "GraphDef": "library versions",
    "VersionDef": "producer min_consumer",
    "FunctionDefLibrary": "function",
    "FunctionDef": "signature attr arg_attr node_def ret control_ret",
    "FunctionDef.ArgAttrs": "attr",
    "OpDef": "name input_arg output_arg control_output is_stateful",
    "OpDef.ArgDef": "name type handle_data",
    "ResourceHandleProto.DtypeAndShape": "dtype shape",
    "NodeDef": "name op input attr experimental_type",
    "FullTypeDef": "type_id args",
    "AttrValue": "b f i s func list shape tensor type",
    "AttrValue.ListValue": "i shape type",
    "NameAttrList": "name",
    "TensorProto": "dtype tensor_shape tensor_content bool_val float_val half_val int_val int64_val",
    "TensorShapeProto": "dim unknown_rank",
    "TensorShapeProto.Dim": "size",
    # === Objects ===
    "SavedObjectGraph": "nodes concrete_functions",
    "SavedObject": "children dependencies user_object function bare_concrete_function variable",
    "SavedUserObject": "identifier version",
    "SavedVariable": "dtype shape trainable aggregation name",
    "SavedFunction": "concrete_functions function_spec",
    "SavedConcreteFunction": "bound_inputs canonicalized_input_signature output_signature",
    "SavedBareConcreteFunction": "concrete_function_name argument_keywords allowed_positional_arguments "
    "function_spec",
    "FunctionSpec": "fullargspec input_signature",
    "StructuredValue": "none_value string_value tensor_spec_value list_value tuple_value dict_value "
    "named_tuple_value",
    "ListValue": "values",
    "TupleValue": "values",
    "DictValue": "fields",
    "NamedTupleValue": "name values",
    "PairValue": "key value",
    "TensorSpecProto": "name shape dtype",
    # === Weights ===
    "TrackableObjectGraph": "nodes",
    "TrackableObjectGraph.TrackableObject": "children attributes has_checkpoint_values",
    "TrackableObjectGraph.TrackableObject.ObjectReference": "node_id local_name",
    "TrackableObjectGraph.TrackableObject.SerializedTensor": "name full_name checkpoint_key",
    "BoolValue": "value",
}
"""Message → fields that an export sets. Excluded are fields that run code during loading (assets,
initialisers, savers, registered classes), select a device, or replace a gradient or another function."""

_FIELDS = frozenset(f"{message}.{field}" for message, fields in FIELDS.items() for field in fields.split())

IDENTIFIERS = frozenset({"_generic_user_object", "trackable_list_wrapper"})
"""Identifiers of saved objects: the network and the list of its weights."""

MAX_CONSTANT_SIZE = 2**20
"""Values of one constant: a few bytes can encode many equal values. Our models have at most 13 thousand."""

MAX_NODES = 2**20
"""Operations of a function, with those of all functions that it calls."""


def check_saved_model(folder: Path) -> None:
    """Rejects a SavedModel in `folder` with unexpected content; it must not change until it is loaded.

    Raises:
        ArtifactError: If there is a file, field, operation or size that no export writes.
        OSError: If a file cannot be read.
        ValueError: If a file is damaged.
    """
    from google.protobuf.message import DecodeError
    from tensorflow.core.protobuf import saved_model_pb2

    _check_files(folder)
    path = folder / GRAPH
    try:
        saved = saved_model_pb2.SavedModel.FromString(path.read_bytes())
    except DecodeError as error:
        raise ValueError(f"{path.name} is damaged: {error}") from error
    if len(saved.meta_graphs) != 1 or not saved.meta_graphs[0].object_graph_def.nodes:
        raise unexpected_content(path, "not exactly one graph with objects", "one graph")
    (graph,) = saved.meta_graphs
    _check_functions(path, {one.signature.name: one for one in graph.graph_def.library.function})
    _check_objects(path, graph.object_graph_def)
    _check_fields(path, saved)
    _check_weights(folder)


def _check_files(folder: Path) -> None:
    files = {path.relative_to(folder).as_posix() for path in folder.rglob("*") if not path.is_dir()}
    if foreign := sorted(files - FILES):
        raise unexpected_content(folder, f"the file {foreign[0]!r}", ", ".join(sorted(FILES)))


def _check_fields(path: Path, message: Any) -> None:
    for name in _set_fields(message):
        if name not in _FIELDS:
            owner, _, field = name.rpartition(".")
            allowed = FIELDS.get(owner, "no field of it").replace(" ", ", ")
            raise unexpected_content(path, f"the field {field!r} of a {owner}", allowed)


def _set_fields(message: Any) -> Iterator[str]:
    """Yields the names of all fields that are set in a message and its submessages, without the package."""
    for field, value in message.ListFields():
        yield field.full_name.removeprefix("tensorflow.").removeprefix("google.protobuf.")
        if field.message_type is None:
            continue
        if field.message_type.GetOptions().map_entry:
            below = value.values() if field.message_type.fields_by_name["value"].message_type else ()
        else:
            below = value if field.is_repeated else (value,)
        for one in below:
            yield from _set_fields(one)


# === Functions ===


def _check_functions(path: Path, functions: Mapping[str, Any]) -> None:
    for name, function in functions.items():
        for node in function.node_def:
            _check_node(path, name, node)
        keys = {*function.attr, *(key for one in function.arg_attr.values() for key in one.attr)}
        _check_attributes(path, f"the function {name!r}", keys)
    sizes: dict[str, int] = {}
    for name in functions:
        _count_nodes(path, name, functions, sizes, ())


def _check_node(path: Path, function: str, node: Any) -> None:
    where = f"the operation {node.op!r} ({node.name!r} in the function {function!r})"
    if node.op not in OPERATIONS:
        raise unexpected_content(path, where, ", ".join(sorted(OPERATIONS)))
    _check_attributes(path, where, node.attr)
    for value in node.attr.values():
        if value.HasField("tensor"):
            size = math.prod(one.size for one in value.tensor.tensor_shape.dim)
            if not 0 <= size <= MAX_CONSTANT_SIZE or value.tensor.tensor_shape.unknown_rank:
                what = f"a constant of {size} numbers in {where}"
                raise unexpected_content(path, what, f"at most {MAX_CONSTANT_SIZE}")


def _check_attributes(path: Path, where: str, names: Any) -> None:
    if foreign := sorted(set(names) - ATTRIBUTES):
        allowed = ", ".join(sorted(ATTRIBUTES))
        raise unexpected_content(path, f"the attribute {foreign[0]!r} of {where}", allowed)


def _count_nodes(
    path: Path, name: str, functions: Mapping[str, Any], sizes: dict[str, int], callers: tuple[str, ...]
) -> int:
    """Counts the nodes of a function and of all functions that it calls, as if they were inlined."""
    if name in callers or len(callers) > 16:
        what = f"the function {name!r}, which is recursive or nested too deeply"
        raise unexpected_content(path, what, "a call tree")
    if name not in sizes:
        nodes = functions[name].node_def
        called = [value.func.name for node in nodes for value in node.attr.values() if value.HasField("func")]
        if missing := sorted(set(called) - functions.keys()):
            what = f"a call of the missing function {missing[0]!r}"
            raise unexpected_content(path, what, ", ".join(functions))
        inside = sum(_count_nodes(path, other, functions, sizes, (*callers, name)) for other in called)
        sizes[name] = len(nodes) + inside
    if sizes[name] > MAX_NODES:
        what = f"{sizes[name]} operations in the function {name!r}"
        raise unexpected_content(path, what, f"at most {MAX_NODES}")
    return sizes[name]


# === Objects and weights ===


def _check_objects(path: Path, objects: Any) -> None:
    numbers = 0
    for node in objects.nodes:
        kind = node.WhichOneof("kind")
        if kind == "user_object" and node.user_object.identifier not in IDENTIFIERS:
            allowed = ", ".join(sorted(IDENTIFIERS))
            raise unexpected_content(path, f"an object of the class {node.user_object.identifier!r}", allowed)
        if kind == "variable":
            numbers += math.prod(max(one.size, 0) for one in node.variable.shape.dim)
    size = path.with_name("variables").joinpath("variables.data-00000-of-00001").stat().st_size
    if numbers > size:  # each needs at least one byte
        raise unexpected_content(path, f"{numbers} weights", f"at most {size}, the bytes of its weights file")


def _check_weights(folder: Path) -> None:
    """Checks the objects of the checkpoint, which may name savers that TensorFlow would run."""
    import tensorflow as tf
    from google.protobuf.message import DecodeError
    from tensorflow.core.protobuf import trackable_object_graph_pb2

    try:
        described = tf.train.load_checkpoint(str(folder / WEIGHTS)).get_tensor("_CHECKPOINTABLE_OBJECT_GRAPH")
        objects = trackable_object_graph_pb2.TrackableObjectGraph.FromString(described)
    except (DecodeError, TypeError, RuntimeError, tf.errors.OpError) as error:
        raise ValueError(f"{WEIGHTS}.index is damaged: {error}") from error
    _check_fields(folder / f"{WEIGHTS}.index", objects)
