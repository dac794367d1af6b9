"""The tokenizer files of mBART and mBART-50: a `tokenizer.json`, or the SentencePiece model that it was made from.

transformers 5 takes only pieces, scores and added tokens from them, mBART-50's class also the character map, and builds
the rest itself (`models/mbart`, `models/mbart50`). Its class for mBART forgets the character map with which the
published models were trained. Where a file has one, mBART's texts are read as SentencePiece itself reads them.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from tokenizers import Regex, Tokenizer, normalizers, pre_tokenizers
from tokenizers.models import Unigram

from export.importers.huggingface.json_tokenizer import (
    NAMED_DEFAULTS,
    TOKENIZER_NAME,
    add_tokens,
    character_map,
    content_of,
    converted,
    json_spec,
    model_of,
    named_ids,
    refusals,
    scored_pieces,
    single_spaces,
    tokenizer_path,
    unspelled,
    use_metaspace,
)
from export.importers.huggingface.tokenizer_files import TokenizerFiles
from export.importers.json_file import read_json
from export.importers.sentencepiece_file import read_pieces

MODEL_NAME = "sentencepiece.bpe.model"
_FIRST = ("bos_token", "pad_token", "eos_token", "unk_token")  # have the ids 0 to 3
_UNK_ID = 3
_NUM_SPECIAL = 3  # pieces of a SentencePiece model: "<unk>", "<s>", "</s>"
_LANGUAGE = re.compile("[a-z]{2,3}_[A-Z]{2}")

# The tokens of these languages, in this order, have the ids after the pieces'. From transformers 5.23,
# models/mbart/tokenization_mbart.py and models/mbart50/tokenization_mbart50.py.
_MBART = (
    "ar_AR cs_CZ de_DE en_XX es_XX et_EE fi_FI fr_XX gu_IN hi_IN it_IT ja_XX kk_KZ ko_KR lt_LT lv_LV my_MM ne_NP nl_XX "
    "ro_RO ru_RU si_LK tr_TR vi_VN zh_CN"
)
_MBART_50 = (
    f"{_MBART} af_ZA az_AZ bn_IN fa_IR he_IL hr_HR id_ID ka_GE km_KH mk_MK ml_IN mn_MN mr_IN pl_PL ps_AF pt_XX "
    "sv_SE sw_KE ta_IN te_IN th_TH tl_XX uk_UA ur_PK xh_ZA gl_ES sl_SI"
)


def read_mbart(directory: Path, config: Mapping[str, Any], is_50: bool = False) -> TokenizerFiles:
    """Read mBART's files, where a source's language follows its end; mBART-50's precedes it."""
    tokenizer = _build(directory, config, is_50)
    ids = tokenizer.get_vocab()
    added = tokenizer.get_added_tokens_decoder().values()
    tokens = _short_codes(token.content for token in added if token.special and _LANGUAGE.fullmatch(token.content))
    languages = {code: (ids[token],) for code, token in tokens.items()}
    source = "" if is_50 else config.get("src_lang")
    size = max(ids.values()) + 1
    return TokenizerFiles(
        spec=json_spec(
            named_ids(tokenizer, config), cleans_up_spaces=config.get("clean_up_tokenization_spaces") is True
        ),
        written={TOKENIZER_NAME: lambda path: unspelled(tokenizer).save(str(path))},
        sizes=(size, size),
        languages=languages,
        place="both sides" if is_50 else "after source",
        source=next((code for code, token in tokens.items() if token == source), ""),
        first_ids=[index for (index,) in languages.values()],
    )


def _short_codes(tokens: Iterable[str]) -> dict[str, str]:
    """Map codes of languages to their tokens: "en" to "en_XX"; the token itself where two are of one language."""
    given = sorted(tokens)
    languages = [token.split("_")[0] for token in given]
    return {
        language if languages.count(language) == 1 else token: token
        for language, token in zip(languages, given, strict=True)
    }


def _build(directory: Path, config: Mapping[str, Any], is_50: bool) -> Tokenizer:
    languages = (_MBART_50 if is_50 else _MBART).split()
    path = tokenizer_path(directory, MODEL_NAME)
    with refusals(path, "mBART-50" if is_50 else "mBART"):
        document = _converted(path, config, languages) if path.name == MODEL_NAME else read_json(path)
        pieces = scored_pieces(model_of(document, "Unigram"))
        tokenizer = Tokenizer(Unigram(pieces, unk_id=_UNK_ID, byte_fallback=False))
        use_metaspace(tokenizer)
        charsmap = character_map(document.get("normalizer"))
        steps = [normalizers.Precompiled(charsmap)] if charsmap else []
        if is_50 or charsmap:
            ends = [] if is_50 else [normalizers.Replace(Regex(" $"), "")]
            tokenizer.normalizer = normalizers.Sequence([*steps, single_spaces(), *ends])
        else:
            words = pre_tokenizers.WhitespaceSplit()
            tokenizer.pre_tokenizer = pre_tokenizers.Sequence([words, tokenizer.pre_tokenizer])
        add_tokens(tokenizer, document["added_tokens"], config, languages)
    return tokenizer


def _converted(path: Path, config: Mapping[str, Any], languages: Sequence[str]) -> dict[str, Any]:
    """Convert a SentencePiece model to `tokenizer.json`'s relevant parts; its own first pieces are special ones."""
    model = read_pieces(path)
    names = [content_of(config.get(name) or NAMED_DEFAULTS[name]) for name in (*_FIRST, "mask_token")]
    pieces = list(zip(model.pieces, model.scores, strict=True))[_NUM_SPECIAL:]
    last = [(each, 0.0) for each in (*languages, names[-1])]
    return converted(model, {"type": "Unigram", "vocab": [*((name, 0.0) for name in names[:-1]), *pieces, *last]})
