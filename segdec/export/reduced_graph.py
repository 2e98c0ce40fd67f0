"""Reduces a SavedModel to the parts that serving loads; the same network gives the same bytes.

TensorFlow also saves parts for further training and for other loaders, with names that depend on the process:
functions that read and write checkpoints, a version 1 graph that calls them, a random id.
`segdec.engines.tensorflow_graph` rejects these.
"""

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tensorflow.core.protobuf import saved_model_pb2

GRAPH = "saved_model.pb"
SIGNATURES = "signatures"
"""Child of the saved object with the functions for other loaders."""


def reduce_saved_model(folder: Path) -> None:
    """Reduces the SavedModel in `folder` in place; its functions give the same results."""
    (saved,) = saved_model_pb2.SavedModel.FromString((folder / GRAPH).read_bytes()).meta_graphs
    objects = _without_signatures(saved.object_graph_def)
    functions = {function.signature.name: function for function in saved.graph_def.library.function}
    names = _plain_names(objects, functions)

    reduced = saved_model_pb2.SavedModel(saved_model_schema_version=1)
    graph = reduced.meta_graphs.add()
    graph.meta_info_def.tags.extend(saved.meta_info_def.tags)
    graph.meta_info_def.tensorflow_version = saved.meta_info_def.tensorflow_version
    graph.graph_def.versions.CopyFrom(saved.graph_def.versions)
    graph.graph_def.library.function.extend(
        _renamed_function(functions[name], names) for name in sorted(names, key=names.__getitem__)
    )
    graph.object_graph_def.CopyFrom(_renamed_objects(objects, names))

    (folder / GRAPH).write_bytes(reduced.SerializeToString(deterministic=True))
    (folder / "fingerprint.pb").unlink(missing_ok=True)
    shutil.rmtree(folder / "assets", ignore_errors=True)


def _without_signatures(objects: Any) -> Any:
    """Returns the objects that are reachable from the first one without its signatures, renumbered."""
    order = [0]
    for number in order:
        order += [one for one in _references(objects, number) if one not in order]
    places = {number: place for place, number in enumerate(order)}
    kept = type(objects)()
    for number in order:
        node = kept.nodes.add()
        node.CopyFrom(objects.nodes[number])
        for references in (node.children, node.dependencies):
            there = [one for one in references if one.node_id in places]
            del references[:]
            references.extend(there)
            for reference in references:
                reference.node_id = places[reference.node_id]
    for node in kept.nodes:
        for name in _concrete_functions(node):
            function = kept.concrete_functions[name]
            function.CopyFrom(objects.concrete_functions[name])
            function.bound_inputs[:] = [places[number] for number in function.bound_inputs]
    return kept


def _references(objects: Any, number: int) -> list[int]:
    node = objects.nodes[number]
    bound = [
        one for name in _concrete_functions(node) for one in objects.concrete_functions[name].bound_inputs
    ]
    children = [child.node_id for child in node.children if number or child.local_name != SIGNATURES]
    return [*children, *bound]


def _concrete_functions(node: Any) -> list[str]:
    if node.WhichOneof("kind") == "bare_concrete_function":
        return [node.bare_concrete_function.concrete_function_name]
    return list(node.function.concrete_functions)


def _plain_names(objects: Any, functions: dict[str, Any]) -> dict[str, str]:
    """Returns a reproducible name for each function, from its caller instead of a process-wide number."""
    names: dict[str, str] = {}

    def assign(function: str, name: str) -> None:
        if function in names:
            return
        names[function] = name
        for index, called in enumerate(_called(functions[function])):
            assign(called, f"{name}_{index}")

    for child in objects.nodes[0].children:
        for function in objects.nodes[child.node_id].function.concrete_functions:
            assign(function, child.local_name)
    return names


def _called(function: Any) -> Iterator[str]:
    for node in function.node_def:
        for key in sorted(node.attr):
            if node.attr[key].HasField("func"):
                yield node.attr[key].func.name


def _renamed_function(function: Any, names: dict[str, str]) -> Any:
    """Returns the function with reproducible names; arguments are named by position."""
    renamed = type(function)()
    renamed.CopyFrom(function)
    renamed.signature.name = names[function.signature.name]
    places = {one.name: f"argument_{place}" for place, one in enumerate(function.signature.input_arg)}
    for argument in renamed.signature.input_arg:
        argument.name = places[argument.name]
    for node in renamed.node_def:
        node.input[:] = [places.get(name, name) for name in node.input]
        for value in node.attr.values():
            if value.HasField("func"):
                value.func.name = names[value.func.name]
    for output, name in function.ret.items():
        renamed.ret[output] = places.get(name, name)
    return renamed


def _renamed_objects(objects: Any, names: dict[str, str]) -> Any:
    renamed = type(objects)()
    for node in objects.nodes:
        copy = renamed.nodes.add()
        copy.CopyFrom(node)
        if copy.WhichOneof("kind") == "function":
            copy.function.concrete_functions[:] = [names[name] for name in node.function.concrete_functions]
        elif copy.WhichOneof("kind") == "bare_concrete_function":
            bare = copy.bare_concrete_function
            bare.concrete_function_name = names[bare.concrete_function_name]
    for name, function in objects.concrete_functions.items():
        renamed.concrete_functions[names[name]].CopyFrom(function)
    return renamed
