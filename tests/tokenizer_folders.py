"""Small real tokenizers in the file layouts of checkpoints that transformers reads, trained within moments."""

import io
import json
from pathlib import Path
from typing import Any

import sentencepiece
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

from service.text.indic.rewriting import rewritten
from service.text.indic.writing import SYMBOLS, reading

ENGLISH = (
    "Where is the train station?",
    "Save the file before you close the window.",
    "Hello, can you help me find my keys? I lost them near the old bridge.",
    "The quick brown fox jumps over the lazy dog, 1234567890 times.",
    "She said: \"It's 9.30 already - we mustn't be late!\"",
    "Prices rose by 3.5 % (about $40) in 2021; nobody knew why.",
    "My grandmother's house had a garden with apples, pears and cherries.",
    "Could you please send me the report by e-mail: jo_doe@example.org?",
)
GERMAN = (
    "Wo ist der Bahnhof?",
    "Speichern Sie die Datei, bevor Sie das Fenster schließen.",
    "Hallo, kannst du mir helfen, meine Schlüssel zu finden? Ich verlor sie bei der alten Brücke.",
    "Der schnelle braune Fuchs springt 1234567890 Mal über den faulen Hund.",
    "Sie sagte: „Es ist schon 9.30 Uhr – wir dürfen nicht zu spät kommen!“",
    "Die Preise stiegen um 3,5 % (etwa 40 €); niemand wusste, warum.",
    "Das Haus meiner Großmutter hatte einen Garten mit Äpfeln, Birnen und Kirschen.",
    "Könnten Sie mir bitte den Bericht per E-Mail schicken?",
)
FRENCH = (
    "Où est la gare ? Le château est fermé, c'est dommage.",
    "Ça coûte 40 € ; l'élève a reçu « une très bonne » note.",
)
RUSSIAN = ("Где находится вокзал? Сохраните файл, прежде чем закрыть окно.",)
HINDI = ("रेलवे स्टेशन कहाँ है? खिड़की बंद करने से पहले फ़ाइल सहेजें।",)

INDIC_TAGS = (
    "asm_Beng ben_Beng brx_Deva doi_Deva eng_Latn gom_Deva guj_Gujr hin_Deva kan_Knda kas_Arab kas_Deva mai_Deva "
    "mal_Mlym mar_Deva mni_Beng mni_Mtei npi_Deva ory_Orya pan_Guru san_Deva sat_Olck snd_Arab snd_Deva tam_Taml "
    "tel_Telu urd_Arab"
)
INDIC = (
    ("hin_Deva", "रेलवे स्टेशन कहाँ है? खिड़की बंद करने से पहले फ़ाइल सहेजें।"),
    ("hin_Deva", "नमस्ते, क्या आप मेरी चाबियाँ ढूँढने में मदद कर सकते हैं? मैंने उन्हें पुराने पुल के पास खो दिया।"),
    ("hin_Deva", "उसने कहा: “अभी 9:30 बजे हैं – हमें देर नहीं करनी चाहिए!”"),
    ("tam_Taml", "வணக்கம், எப்படி இருக்கிறீர்கள்? நான் தமிழ் பேசுகிறேன்."),
    ("ben_Beng", "আমি বাংলায় গান গাই। আজ তাপমাত্রা ৩৫.৫ %; কাল ৫:৩০ টায় দেখা হবে।"),
    ("tel_Telu", "నేను తెలుగు మాట్లాడతాను. ధర ₹ 1,234 (సుమారు)?"),
    ("urd_Arab", "میں اردو بولتا ہوں۔ آپ کیسے ہیں؟ 20سال پہلے، ABCنے کہا۔"),
    ("sat_Olck", "ᱤᱧ ᱥᱟᱱᱛᱟᱲᱤ ᱨᱚᱲ ᱮᱫᱟᱹᱧ ᱾"),
    ("mni_Mtei", "ꯑꯩꯍꯥꯛ ꯃꯅꯤꯄꯨꯔꯤ ꯉꯥꯡꯉꯤ꯫"),
)


def train_sentencepiece(sentences: tuple[str, ...], kind: str = "unigram", size: int = 300, **settings: Any) -> bytes:
    """Train a model of at most `size` pieces.

    Unless `settings` say otherwise, it has no byte fallback: 0 is unknown, 1 and 2 are "<s>" and "</s>".
    """
    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(sentences),
        model_writer=model,
        model_type=kind,
        vocab_size=size,
        hard_vocab_limit=False,
        character_coverage=1.0,
        num_threads=1,
        minloglevel=2,
        **settings,
    )
    return model.getvalue()


def pieces_of(model: bytes) -> list[str]:
    """Return a model's pieces without the three special ones."""
    processor = sentencepiece.SentencePieceProcessor(model_proto=model)
    return [processor.id_to_piece(index) for index in range(3, processor.get_piece_size())]


def write_marian(directory: Path, languages: tuple[str, ...] = (), is_separate: bool = False) -> Path:
    """Write the files of an OPUS-MT checkpoint: "</s>" is 0, "<unk>" 1, then pieces and `>>xx<<`, "<pad>" is last.

    A shared vocabulary holds the pieces of both models; separate ones have the same size.
    """
    directory.mkdir(parents=True)
    source, target = train_sentencepiece(ENGLISH), train_sentencepiece(GERMAN + FRENCH)
    (directory / "source.spm").write_bytes(source)
    (directory / "target.spm").write_bytes(target)
    codes = [f">>{language}<<" for language in languages]
    sides = {"vocab.json": pieces_of(source), "target_vocab.json": pieces_of(target)}
    if not is_separate:
        sides = {"vocab.json": list(dict.fromkeys([*pieces_of(source), *pieces_of(target)]))}
    size = max(map(len, sides.values()))
    for name, pieces in sides.items():
        padding = [f"▁unused{number}" for number in range(size - len(pieces))]
        write_vocabulary(directory / name, ["</s>", "<unk>", *pieces, *padding, *codes, "<pad>"])
    config = {"source_lang": "en", "target_lang": "de", "separate_vocabs": is_separate}
    (directory / "tokenizer_config.json").write_text(json.dumps(config), encoding="utf-8")
    return directory


def write_m2m100(directory: Path) -> Path:
    """Write the files of an M2M100 checkpoint except for its settings; none of them contains the language tokens."""
    directory.mkdir(parents=True)
    model = train_sentencepiece(ENGLISH + GERMAN + FRENCH + RUSSIAN + HINDI, "bpe", 500)
    (directory / "sentencepiece.bpe.model").write_bytes(model)
    write_vocabulary(directory / "vocab.json", ["<s>", "<pad>", "</s>", "<unk>", *pieces_of(model)])
    return directory


def write_t5(directory: Path) -> Path:
    """Write the files of a T5 checkpoint: "<pad>" is 0, "</s>" 1, "<unk>" 2, and there are 100 sentinels."""
    directory.mkdir(parents=True)
    model = train_sentencepiece(ENGLISH + GERMAN + FRENCH, size=400, pad_id=0, eos_id=1, unk_id=2, bos_id=-1)
    (directory / "spiece.model").write_bytes(model)
    named = {"eos_token": "</s>", "unk_token": "<unk>", "pad_token": "<pad>", "tokenizer_class": "T5Tokenizer"}
    config = {**named, "extra_ids": 100, "additional_special_tokens": [f"<extra_id_{each}>" for each in range(100)]}
    (directory / "tokenizer_config.json").write_text(json.dumps(config), encoding="utf-8")
    return directory


def write_madlad(directory: Path, languages: tuple[str, ...] = ("de", "en", "fr_Latn")) -> Path:
    """Write the files of MADLAD-400: "<unk>" is 0, "<s>" pads, "</s>" is 2, then languages, bytes and other pieces."""
    directory.mkdir(parents=True)
    tokens = [f"<2{code}>" for code in languages]
    sentences = ENGLISH + GERMAN + FRENCH
    model = train_sentencepiece(sentences, size=600, user_defined_symbols=tokens, byte_fallback=True)
    (directory / "spiece.model").write_bytes(model)
    named = {"eos_token": "</s>", "unk_token": "<unk>", "pad_token": "<s>", "tokenizer_class": "T5Tokenizer"}
    config = {**named, "extra_ids": 0, "additional_special_tokens": []}
    (directory / "tokenizer_config.json").write_text(json.dumps(config), encoding="utf-8")
    return directory


def write_fairseq_sentencepiece(directory: Path) -> Path:
    """Write the SentencePiece model of an mBART or PLBart checkpoint: its classes add all special tokens."""
    directory.mkdir(parents=True)
    model = train_sentencepiece(ENGLISH + GERMAN + FRENCH + RUSSIAN + HINDI, size=420)
    (directory / "sentencepiece.bpe.model").write_bytes(model)
    return directory


def write_bart(directory: Path) -> Path:
    """Write `vocab.json` and `merges.txt` of a BART checkpoint: byte-level BPE, special tokens first, "<mask>" last."""
    directory.mkdir(parents=True)
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(vocab_size=380, initial_alphabet=alphabet, show_progress=False)
    tokenizer.train_from_iterator(ENGLISH + GERMAN, trainer)
    tokenizer.model.save(str(directory))
    pieces = sorted(tokenizer.get_vocab(), key=tokenizer.get_vocab().__getitem__)
    write_vocabulary(directory / "vocab.json", ["<s>", "<pad>", "</s>", "<unk>", *pieces, "<mask>"])
    return directory


def write_word_level(file: Path, sentences: tuple[str, ...] = ENGLISH) -> Path:
    """Write a `tokenizer.json` as tutorials train it: words and punctuation, and no decoder."""
    tokenizer = Tokenizer(models.WordLevel(unk_token="[UNK]"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    trainer = trainers.WordLevelTrainer(special_tokens=["[UNK]", "[PAD]", "[SOS]", "[EOS]"], show_progress=False)
    tokenizer.train_from_iterator(sentences, trainer)
    tokenizer.save(str(file))
    return file


def write_bpe(file: Path, languages: tuple[str, ...] = ("eng_Latn", "deu_Latn", "fra_Latn")) -> Path:
    """Write a `tokenizer.json` like NLLB's: BPE, special tokens first, language tokens and "<mask>" last."""
    tokenizer = Tokenizer(models.BPE(unk_token="<unk>", fuse_unk=True))
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace()
    tokenizer.decoder = decoders.Metaspace()
    special = ["<s>", "<pad>", "</s>", "<unk>"]
    trainer = trainers.BpeTrainer(vocab_size=400, special_tokens=special, show_progress=False)
    tokenizer.train_from_iterator(ENGLISH + GERMAN + FRENCH, trainer)
    tokenizer.add_special_tokens([*languages, "<mask>"])
    tokenizer.save(str(file))
    return file


def write_vocabulary(file: Path, pieces: list[str]) -> None:
    """Write a `vocab.json` in which each piece's id is its position."""
    vocabulary = {piece: index for index, piece in enumerate(pieces)}
    file.write_text(json.dumps(vocabulary, ensure_ascii=False), encoding="utf-8")


def write_indictrans2(directory: Path, direction: str = "en-indic") -> tuple[int, int]:
    """Write the files of an IndicTrans2 checkpoint, and return the sizes of its vocabularies.

    The pieces of "indic" are those of all languages, most of them in Devanagari; the source's last ones are languages.
    """
    directory.mkdir(parents=True)
    sizes = []
    for side, kind in zip(("SRC", "TGT"), direction.split("-"), strict=True):
        texts = [("eng_Latn", text) for text in ENGLISH] if kind == "en" else INDIC
        read = [rewritten(text, reading(code)) for code, text in texts]
        model = train_sentencepiece((*read, " ".join(SYMBOLS)), size=400)
        (directory / f"model.{side}").write_bytes(model)
        tags = INDIC_TAGS.split() if side == "SRC" else []
        pieces = ["<s>", "<pad>", "</s>", "<unk>", *pieces_of(model), *tags]
        write_vocabulary(directory / f"dict.{side}.json", pieces)
        sizes.append(len(pieces))
    return sizes[0], sizes[1]
