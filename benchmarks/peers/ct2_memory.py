"""Loads CTranslate2's `Translator`, prints a line, reads one, translates, prints one, and ends with standard input."""

import sys

from ctranslate2 import Translator

SOURCE_TOKENS = 25
OUTPUT_TOKENS = 30


def main() -> None:
    """Take the model's folder and the number of sentences."""
    folder, count = sys.argv[1], int(sys.argv[2])
    translator = Translator(folder, intra_threads=2)
    print("loaded", flush=True)
    sys.stdin.readline()
    for _ in range(count):
        translator.translate_batch([["</s>"] * SOURCE_TOKENS], beam_size=1, max_decoding_length=OUTPUT_TOKENS)
    print("translated", flush=True)
    sys.stdin.read()


if __name__ == "__main__":
    main()
