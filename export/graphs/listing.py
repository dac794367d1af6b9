"""Adds shortlists to the two plain graphs of a bundle, in ONNX's own operators, for any device.

The encoder computes a mask of the tokens that the translation of a source may consist of, like
`kernels/src/runtime/shortlists.cpp`. The decoder step makes the logits of all others minus infinity. A mask has a byte
for each token, about as many as the ids of a source of 128 tokens, and no step searches it.
"""

from collections.abc import Mapping, MutableSequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from numpy import typing as npt
from onnx import helper, parser

from export.graphs.checks import GraphError, check_decoder_step, check_encoder
from export.graphs.weights_file import WeightsFile, inline
from export.shortlist import MULTIPLE, Shortlist
from service.bundle import graph_io
from service.bundle.manifest import Manifest

_PREFIX = "shortlist."  # of all names that are added
_SUPPRESSED = "projection.suppressed_weight"  # `DecoderStepGraph`: its logits count for totals only

# B sources of up to S tokens, each of which has a list of up to K: `table` (source vocabulary, K), where short ones are
# filled up with V, the `filler`. `always` (1, W) is 1 where every source is marked, as the filler is; `costs` (W,) are
# the ids that may be added until the number is a `multiple`, lowest first, and W, the `most`, for all others.
_ENCODER = """
shortlist (int64[B, S] source_ids, int32[B] source_lengths) => (bool[B, W] listed)
<int64 zero = {0}, int64 one = {1}, int64[1] first = {1}, int64[1] second = {2}, int64[2] rows = {0, -1},
 float mark = {1}, float nothing = {-1}>
{
    # Padding has no list.
    width = Shape <start = 1, end = 2> (source_ids)
    end = Squeeze (width)
    places = Range (zero, end, one)
    lengths = Cast <to = 7> (source_lengths)
    ends = Unsqueeze (lengths, first)
    is_live = Less (places, ends)
    is_list_live = Unsqueeze (is_live, second)
    lists = Gather (table, source_ids)
    live_lists = Where (is_list_live, lists, filler)
    ids = Reshape (live_lists, rows)  # (B, S K)

    num_sources = Shape <start = 0, end = 1> (source_ids)
    one_row_each = Concat <axis = 0> (num_sources, first)
    unmarked = Expand (always, one_row_each)
    num_ids = Shape (ids)
    marks = Expand (mark, num_ids)
    marked = ScatterElements <axis = 1> (unmarked, ids, marks)  # (B, W), 0 or 1

    # How many are missing; the filler does not count.
    total = ReduceSum (marked, first)
    at_most = Add (total, to_next)
    eighths = Mul (at_most, reciprocal)
    whole = Cast <to = 7> (eighths)
    number = Cast <to = 1> (whole)
    wanted = Mul (number, multiple)
    wanted_total = Add (wanted, mark)
    missing = Sub (wanted_total, total)  # (B, 1)

    # Those up to the last of the lowest ids that are missing, if there are so many.
    is_marked = Cast <to = 9> (marked)
    free = Where (is_marked, most, costs)
    lowest, columns = TopK <axis = 1, largest = 0> (free, most_missing)
    is_missing = Less (ranks, missing)
    added = Where (is_missing, lowest, nothing)
    last = ReduceMax (added, first)
    last_id = Clip (last, , highest)
    is_beyond = Less (last_id, free)
    is_added = Not (is_beyond)
    all_marked = Where (is_added, mark, marked)
    listed = Cast <to = 9> (all_marked)
}
"""


def list_graphs(directory: Path, manifest: Manifest, shortlist: Shortlist, file: WeightsFile) -> None:
    """Add a shortlist to the graphs of a bundle, which have none; `manifest.model` says that they have."""
    model, precision = manifest.model, manifest.precision
    encoder, decoder_step = directory / manifest.graphs.encoder, directory / manifest.graphs.decoder_step
    _list_encoder(encoder, manifest, shortlist, file)
    check_encoder(encoder, model, precision)
    _list_decoder_step(decoder_step, manifest)
    check_decoder_step(decoder_step, model, precision)


def _list_encoder(path: Path, manifest: Manifest, shortlist: Shortlist, file: WeightsFile) -> None:
    size = manifest.model.vocabulary_size
    width = graph_io.listed_width(size)
    always = np.zeros((1, width), np.float32)
    always[0, [*shortlist.always, size]] = 1
    costs = np.full(width, width, np.float32)
    costs[len(shortlist.always) : size] = np.arange(len(shortlist.always), size)
    stored = {"table": _table(shortlist, manifest), "always": always, "costs": costs}
    constants = {
        "filler": np.array(size, np.int32),
        "to_next": np.array(MULTIPLE - 2, np.float32),  # one less, as the filler counts
        "reciprocal": np.array(1 / MULTIPLE, np.float32),
        "multiple": np.array(MULTIPLE, np.float32),
        "most": np.array(width, np.float32),
        "most_missing": np.array([MULTIPLE - 1]),
        "ranks": np.arange(MULTIPLE - 1, dtype=np.float32),
        "highest": np.array(size - 1, np.float32),
    }
    document = onnx.load(path, load_external_data=False)
    graph, own = document.graph, parser.parse_graph(_ENCODER)
    kept = {"", *(value.name for value in (*own.input, *own.output))}
    for names in (names for node in own.node for names in (node.input, node.output)):
        names[:] = [name if name in kept else _PREFIX + name for name in names]
    graph.node.extend(own.node)
    of_text = ((tensor.name, tensor) for tensor in own.initializer)
    of_file = ((name, file.add(name, array)) for name, array in stored.items())
    for name, tensor in (*of_text, *of_file):
        graph.initializer.append(tensor)
        graph.initializer[-1].name = _PREFIX + name
    graph.initializer.extend(inline(_PREFIX + name, array) for name, array in constants.items())
    _save(document, path, graph.output, width)


def _table(shortlist: Shortlist, manifest: Manifest) -> npt.NDArray[np.int32]:
    size, source_size = manifest.model.vocabulary_size, int(manifest.architecture["source_vocabulary_size"])
    lengths = np.diff(shortlist.offsets)
    longest = int(lengths.max(initial=0))
    table = np.full((source_size, longest + 1), size, np.int32)
    table[: len(lengths), :longest][np.arange(longest) < lengths[:, None]] = shortlist.ids
    if manifest.architecture.get("share_embeddings"):  # a source's own tokens are allowed, too
        own = np.arange(min(source_size, size))
        table[own, longest] = own
    return table


def _list_decoder_step(path: Path, manifest: Manifest) -> None:
    size, suppressed = manifest.model.vocabulary_size, sorted(set(manifest.suppressed_ids))
    document = onnx.load(path, load_external_data=False)
    graph = document.graph
    all_scores = [node for node in graph.node if graph_io.LOGITS in node.output]
    of_suppressed = [node for node in graph.node if _SUPPRESSED in node.input]
    if len(all_scores) != 1 or len(of_suppressed) != bool(suppressed):
        raise GraphError(f"{path.name}: its scores are not where they are expected; convert the checkpoint again.")
    constants = {"begin": np.array([0]), "end": np.array([size]), "axis": np.array([1])}
    _mask(graph, all_scores[0], np.float32, "Slice", constants)
    if suppressed:
        dtype = np.float16 if manifest.precision == "float16" else np.float32
        _mask(graph, of_suppressed[0], dtype, "Gather", {"suppressed": np.array(suppressed)}, axis=1)
    _save(document, path, graph.input, graph_io.listed_width(size))


def _mask(
    graph: onnx.GraphProto,
    node: onnx.NodeProto,
    dtype: npt.DTypeLike,
    choice: str,
    columns: Mapping[str, npt.NDArray[np.int64]],
    **attributes: Any,
) -> None:
    """Make those of a node's scores minus infinity that are not listed; an operator chooses their columns."""
    scores = node.output[0]
    unmasked, mask, never = (f"{_PREFIX}{kind}.{scores}" for kind in ("unmasked", "mask", "never"))
    node.output[0] = unmasked
    names = [_PREFIX + name for name in columns]
    place = list(graph.node).index(node) + 1
    graph.node.insert(place, helper.make_node(choice, [graph_io.LISTED, *names], [mask], **attributes))
    graph.node.insert(place + 1, helper.make_node("Where", [mask, unmasked, never], [scores]))
    graph.initializer.extend(map(inline, names, columns.values()))
    graph.initializer.append(inline(never, np.array(-np.inf, dtype)))


def _save(document: onnx.ModelProto, path: Path, values: MutableSequence[onnx.ValueInfoProto], width: int) -> None:
    """Write a graph with the mask as the last of these inputs or outputs."""
    values.append(helper.make_tensor_value_info(graph_io.LISTED, onnx.TensorProto.BOOL, ["B", width]))
    path.write_bytes(document.SerializeToString(deterministic=True))
