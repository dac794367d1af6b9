"""The variables of a CTranslate2 model, and which of them were read: the others are of an unknown architecture."""

import re
from collections.abc import Iterator

from export.importers.ctranslate2.container import Floats, ModelFile

# What variables of unsupported architectures are, by their names.
_REFUSED = (
    (r"relative_(position|asymmetric|left|right)", "relative positions (Shaw et al. 2018)"),
    (r"rotary|original_max_position|max_position_embeddings", "rotary positions"),
    (r"weight_zero$", "weights of AWQ"),
    (r"num_heads_kv|multi_query", "keys and values that heads share"),
    (r"[qkv]_norm/", "norms of queries, keys or values"),
    (
        r"(input|shared|post_attention|pre_feedforward|post_feedforward|external_\w+)_layer_norm/|layer_scalar",
        "norms in other places than before or after each part",
    ),
    (r"layer_norm_use_residual$", "norms with a gain of one more"),
    (r"embeddings_[1-9]", "features beside tokens"),
    (r"project_(in|out)/", "projections around the decoder"),
    (r"sliding_window$", "attention within a window"),
    (r"final_logit_softcapping$", "capped logits"),
    (r"merged_encoder_attention$|memory_kv/", "attention that encoder and decoder share"),
    (r"alibi$", "positions of ALiBi"),
)
# Variables without effect on translations, with the values that they may have; empty: any.
_WITHOUT_EFFECT: tuple[tuple[str, tuple[float, ...]], ...] = (
    (r"(encoder/|decoder/)?(alignment_layer|alignment_heads|embeddings_merge)", ()),
    (r"decoder/(alibi_use_positive_positions|scale_alibi)", ()),
    (r"decoder/alibi|(encoder/|decoder/)?multi_query(_attention)?", (0.0,)),
    (r".+/layer_norm_use_residual", (0.0,)),
    (r"(encoder/|decoder/)?(sliding_window|dtype)", (0.0,)),
)
_MOST_NAMED = 10


class Variables:
    """Variables by name; `ModelFile` says what its methods raise."""

    def __init__(self, stored: ModelFile) -> None:
        self.stored = stored
        self._read = set[str]()

    def has(self, name: str) -> bool:
        return name in self.stored.variables

    def any(self, pattern: str) -> bool:
        return any(re.fullmatch(pattern, name) for name in self.stored.variables)

    def same(self, one: str, other: str) -> bool:
        """Return whether two names hold the same numbers, scales included."""
        variables = self.stored.variables
        pairs = [(variables.get(f"{one}{end}"), variables.get(f"{other}{end}")) for end in ("", "_scale")]
        return all(a is b or (a is not None and b is not None and a.same(b)) for a, b in pairs)

    def shape(self, name: str) -> tuple[int, ...]:
        """Return a variable's shape; an empty one if it is missing."""
        variable = self.stored.variables.get(name)
        return () if variable is None else variable.shape

    def kind(self, name: str) -> str:
        """Return the type of a variable's numbers; an empty one if it is missing."""
        variable = self.stored.variables.get(name)
        return "" if variable is None else variable.kind

    def floats(self, name: str) -> Floats:
        self.mark(name, f"{name}_scale")
        return self.stored.floats(name)

    def number(self, *names: str) -> float | None:
        self.mark(*names)
        return next((value for name in names if (value := self.stored.number(name)) is not None), None)

    def text(self, name: str) -> str | None:
        self.mark(name)
        return self.stored.text(name)

    def mark(self, *names: str) -> None:
        self._read.update(names)

    def refused(self) -> Iterator[str]:
        for pattern, what in _REFUSED:
            found = (name for name in sorted(self.stored.variables) if re.search(pattern, name))
            name = next((name for name in found if not self._is_without_effect(name)), None)
            if name is not None:
                yield f"it has {what} ({name}), which are not supported"

    def unread(self) -> Iterator[str]:
        """Yield a problem if there are variables that nothing has read, and that are not without effect."""
        names = [name for name in self.stored.variables.keys() - self._read if not self._is_without_effect(name)]
        if names:
            more = f" and {len(names) - _MOST_NAMED} more" if len(names) > _MOST_NAMED else ""
            named = ", ".join(sorted(names)[:_MOST_NAMED])
            yield f"{named}{more}: variables that the architecture does not have"

    def _is_without_effect(self, name: str) -> bool:
        for pattern, allowed in _WITHOUT_EFFECT:
            if re.fullmatch(pattern, name):
                return not allowed or (self.shape(name) == () and self.stored.number(name) in allowed)
        return False
