"""How good the answers of a run are: BLEU and chrF against the references of the held-out sentences."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from benchmarks.workload import SENTENCES


def held_out_references(path: Path = SENTENCES) -> list[str]:
    """Return the German sentences, in the file's order."""
    return [line.split("\t")[1] for line in path.read_text(encoding="utf-8").splitlines()]


def quality_of(answers: Iterable[tuple[int, str]], references: list[str]) -> dict[str, Any]:
    """Return corpus BLEU and chrF of answers, each given with the index of its text; empty if there are none.

    A text that was answered several times counts once, with its first answer; `unequal_texts` got different ones.
    """
    import sacrebleu  # takes a second to import, and not every benchmark judges texts

    found: dict[int, str] = {}
    unequal = set()
    for text, answer in answers:
        if found.setdefault(text, answer) != answer:
            unequal.add(text)
    if not found:
        return {}
    texts = sorted(found)
    hypotheses, expected = [found[text] for text in texts], [[references[text] for text in texts]]
    return {
        "bleu": sacrebleu.corpus_bleu(hypotheses, expected).score,
        "chrf": sacrebleu.corpus_chrf(hypotheses, expected).score,
        "judged_texts": len(texts),
        "unequal_texts": len(unequal),
    }
