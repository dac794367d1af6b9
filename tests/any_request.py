"""Hypothesis strategies for translation requests at and just beyond the limits of what is allowed."""

from typing import Any

from hypothesis import strategies as st

from service.domain.options import OPTIONS, Option
from service.faces.grpc.pb.dragoman.v1 import translation_pb2 as pb
from service.faces.grpc.pb.google.cloud.translation.v3 import translation_service_pb2 as google
from service.faces.grpc.pb.inference import grpc_service_pb2 as kserve
from tests.nasty_texts import NASTY_TEXTS, nasty_text


def seldom(strategy: st.SearchStrategy[Any], absent: Any) -> st.SearchStrategy[Any]:
    """Draw from the strategy one time in three."""
    return st.one_of(st.just(absent), st.just(absent), strategy)


@st.composite
def options(draw: st.DrawFn) -> pb.DecodingOptions:
    """Generate options that are each within their range; some combinations are not allowed."""
    chosen = {name: draw(seldom(values_of(option), None)) for name, option in OPTIONS.items()}
    if chosen["temperature"]:
        chosen["beam_size"] = None
    else:
        chosen |= {name: None for name, option in OPTIONS.items() if option.needs_sampling}
    return pb.DecodingOptions(**{name: value for name, value in chosen.items() if value is not None})


def values_of(option: Option) -> st.SearchStrategy[Any]:
    """Generate every value of an option, for a model that writes up to 96 tokens."""
    if option.kind is bool:
        return st.booleans()
    low, high = option.low, 96 if option.high is None else option.high
    assert low is not None
    if option.kind is int:
        return st.integers(int(low), int(high))
    return st.floats(low, high, exclude_min=option.excludes_low)


def texts() -> st.SearchStrategy[str]:
    sendable = st.one_of(
        nasty_text(), st.text(max_size=60), st.sampled_from(NASTY_TEXTS).filter(lambda t: len(t) < 800)
    )
    markup = st.sampled_from(
        ["<b>", "</b>", "<p>", "&amp;", "<", "{{x}}", "%s", "<!--", "<script>", "\n- ", ". ", "keys"]
    )
    mixed = st.lists(st.one_of(sendable, markup), max_size=8).map("".join)
    return st.one_of(sendable, mixed).map(lambda text: text.encode("utf-8", "ignore").decode())


REQUESTS = st.builds(
    pb.TranslateRequest,
    texts=st.lists(texts(), min_size=1, max_size=4),
    source_language_code=st.sampled_from(["en", "en", "en", "EN_us", "", "", "fr"]),
    target_language_code=st.sampled_from([*["de"] * 6, "deu-AT", "xx"]),
    options=options(),
    mime_type=st.sampled_from(["", "text/plain", "text/html", "TEXT/HTML", "text/rtf"]),
    split_sentences=st.sampled_from(pb.SplitSentences.values()),
    preserve_formatting=st.booleans(),
    glossary=seldom(st.text(max_size=5), ""),
    terms=seldom(st.lists(st.builds(pb.Term, source=texts(), target=st.one_of(st.none(), texts())), max_size=4), []),
    target_prefixes=seldom(st.lists(texts(), max_size=3), []),
    return_alignments=st.booleans(),
    strict=st.booleans(),
    keep_other_languages=st.booleans(),
    labels=seldom(st.dictionaries(st.text(max_size=8), st.text(max_size=8), max_size=2), {}),
    priority=st.sampled_from(pb.Priority.values()),
)


_PARENTS = ("projects/p", "projects/p/locations/global", "projects/p/locations/x", "")


GOOGLE_REQUESTS = st.builds(
    google.TranslateTextRequest,
    contents=st.lists(texts(), min_size=1, max_size=3),
    mime_type=st.sampled_from(["", "text/plain", "text/html", "text/x"]),
    source_language_code=st.sampled_from(["en", "en", "", "xx"]),
    target_language_code=st.sampled_from(["de", "de", "de", "de-AT", "fr"]),
    model=st.sampled_from(["", "", "projects/p/locations/global/models/tiny", "tiny", "projects/p/models"]),
    parent=st.sampled_from(_PARENTS),
    labels=seldom(st.dictionaries(st.sampled_from(["a", "b-1", "B", ""]), st.sampled_from(["", "x", "X"])), {}),
    glossary_config=seldom(
        st.builds(
            google.TranslateTextGlossaryConfig,
            glossary=st.sampled_from(["projects/p/locations/global/glossaries/products", "products", ""]),
            ignore_case=st.booleans(),
            contextual_translation_enabled=st.sampled_from([False, False, False, True]),
        ),
        None,
    ),
)


@st.composite
def kserve_requests(draw: st.DrawFn) -> kserve.ModelInferRequest:
    """Generate tensors as clients send them, with any of the parameters; some are slightly wrong."""
    elements = [text.encode() for text in draw(st.lists(texts(), min_size=1, max_size=3))]
    request = kserve.ModelInferRequest(
        model_name=draw(st.sampled_from(["tiny", "tiny", "tiny", "other", "x"])),
        model_version=draw(st.sampled_from(["", "", "1", "2"])),
        id=draw(st.sampled_from(["", "1", "\0", "x" * 10_000])),
    )
    is_raw = draw(st.booleans())
    tensors = {"text": elements}
    for name, codes in {"source_language": [b"en", b"", b"x"], "target_language": [b"de", b"\xff"]}.items():
        if draw(st.booleans()):
            tensors[name] = draw(st.lists(st.sampled_from([codes[0], *codes]), min_size=1, max_size=3))
    for name, values in tensors.items():
        size = draw(st.sampled_from([len(values)] * 8 + [-1, 0, 2**62]))
        tensor = request.inputs.add(name=name, datatype=draw(st.sampled_from(["BYTES"] * 8 + ["FP32"])), shape=[size])
        if is_raw:
            request.raw_input_contents.append(b"".join(len(v).to_bytes(4, "little") + v for v in values))
        else:
            tensor.contents.bytes_contents.extend(values)
    for name in draw(seldom(st.lists(st.sampled_from(_PARAMETERS), unique=True, max_size=4), [])):
        kind, values = _PARAMETERS_OF[name]
        setattr(request.parameters[name], kind, draw(st.sampled_from(values)))
    for output in draw(seldom(st.lists(st.sampled_from(["translation", "score", "finish_reason", "x"])), [])):
        request.outputs.add(name=output)
    return request


_PARAMETERS_OF: dict[str, tuple[str, list[Any]]] = {
    "beam_size": ("int64_param", [1, 4, 9, 2**62]),
    "length_penalty": ("double_param", [0.0, -10.0, 1e308]),
    "temperature": ("double_param", [0.5, 5e-324, float("nan")]),
    "top_k": ("int64_param", [1, 0, 64]),
    "seed": ("uint64_param", [0, 2**64 - 1]),
    "max_output_tokens": ("int64_param", [1, 96, -1]),
    "max_repeats": ("int64_param", [0, 100]),
    "repetition_penalty": ("double_param", [1.5, 5e-324, float("inf")]),
    "no_repeat_ngram_size": ("int64_param", [1, 3, 101]),
    "min_output_tokens": ("int64_param", [4, 96, -1]),
    "mime_type": ("string_param", ["text/html", "text/plain", "x"]),
    "split_sentences": ("string_param", ["on", "off", "x"]),
    "preserve_formatting": ("bool_param", [True]),
    "glossary": ("string_param", ["products", ""]),
    "priority": ("int64_param", [0, 1, 3, 4]),
    "timeout": ("int64_param", [1, 1_000_000, -1, 2**62]),
    "strict": ("bool_param", [True]),
    "triton_enable_empty_final_response": ("bool_param", [True]),
    "sequence_id": ("int64_param", [-1]),
}
_PARAMETERS = sorted(_PARAMETERS_OF)
