"""LibreTranslate on our weights: its server from the package index, in a virtual environment of its own.

`make bench-peers` installs it. A package of Argos Translate, the library below it, has a CTranslate2 model, a
SentencePiece model and a sentence splitter. Ours has CTranslate2's form of the shipped model, its vocabulary written as
SentencePiece's pieces, and spaCy's rule-based splitter, as Argos's own, MiniSBD, would have to be downloaded. Nothing
else is changed: one text at a time, each of its threads with one request. It decodes greedily, as the other contenders.
"""

import json
import os
import shutil
import signal
import socket
import subprocess
import time
from pathlib import Path
from typing import Any
from urllib.error import URLError
from urllib.request import Request, urlopen

import click
from sentencepiece import SentencePieceProcessor

ENVIRONMENT = Path("build/peers/libretranslate")
PACKAGES = Path("build/bench/models/argos")
START_SECONDS = 120.0
LOG_NAME = "log.txt"
# Written by the environment's own Python, as spaCy is only there.
_WRITE_SPLITTER = "import spacy, sys; spacy.blank(sys.argv[1]).to_disk(sys.argv[2])"


def is_installed() -> bool:
    """Return whether `make bench-peers` has installed it."""
    return (ENVIRONMENT / "bin" / "libretranslate").exists()


def write_package(ct2_model: Path, tokenizer: Path, destination: Path) -> None:
    """Write an Argos package, English to German, of a CTranslate2 model that `tests.references.ct2` wrote."""
    shutil.rmtree(destination, ignore_errors=True)
    (destination / "model").mkdir(parents=True)
    shutil.copyfile(ct2_model / "model.bin", destination / "model" / "model.bin")
    shutil.copyfile(tokenizer, destination / "sentencepiece.model")
    pieces = _pieces(tokenizer)
    config = json.loads((ct2_model / "config.json").read_text(encoding="utf-8"))
    begin, end, unknown = pieces[0], pieces[2], pieces[3]
    config |= {"bos_token": begin, "eos_token": end, "unk_token": unknown, "decoder_start_token": end}
    config["add_source_eos"] = True  # Argos does not add it
    _write_json(destination / "model" / "config.json", config)
    _write_json(destination / "model" / "shared_vocabulary.json", pieces)
    about = {
        "package_version": "1.0",
        "argos_version": "1.9",
        "from_code": "en",
        "from_name": "English",
        "to_code": "de",
        "to_name": "German",
    }
    _write_json(destination / "metadata.json", about)


def _pieces(tokenizer: Path) -> list[str]:
    processor: Any = SentencePieceProcessor(model_file=str(tokenizer))
    return [processor.id_to_piece(number) for number in range(processor.get_piece_size())]


def _write_json(path: Path, document: Any) -> None:
    path.write_text(json.dumps(document, ensure_ascii=False), encoding="utf-8")


@click.command()
@click.option("--model", required=True, type=click.Path(exists=True, path_type=Path), help="CTranslate2's form.")
@click.option("--tokenizer", required=True, type=click.Path(exists=True, path_type=Path))
@click.option("--compute-type", default="int8_float32")
@click.option("--inter-threads", default=1)
@click.option("--intra-threads", default=2)
@click.option("--threads", default=4, help="Of its HTTP server.")
@click.option("--max-waiting", "_", type=int, help="Ignored: its queue has no bound.")
def main(
    model: Path, tokenizer: Path, compute_type: str, inter_threads: int, intra_threads: int, threads: int, _: int
) -> None:
    """Write the package and serve it until SIGTERM."""
    package = PACKAGES.resolve() / "packages" / "en_de"
    write_package(model, tokenizer, package)
    bin_folder = ENVIRONMENT.resolve() / "bin"
    subprocess.run([bin_folder / "python", "-c", _WRITE_SPLITTER, "en", package / "spacy"], check=True)
    data = PACKAGES.resolve() / "data"
    cached = data / "argos-translate" / "spacy" / "senter" / "model"  # or it would ask for spaCy's own splitter
    cached.parent.mkdir(parents=True, exist_ok=True)
    cached.touch()
    environment = {
        **os.environ,
        "ARGOS_PACKAGES_DIR": str(package.parent),
        "ARGOS_PACKAGE_INDEX": "http://127.0.0.1:9/",  # nothing is downloaded
        "ARGOS_CHUNK_TYPE": "SPACY",
        "ARGOS_COMPUTE_TYPE": compute_type,
        "ARGOS_BEAM_SIZE": "1",
        "ARGOS_INTER_THREADS": str(inter_threads),
        "ARGOS_INTRA_THREADS": str(intra_threads),
        "XDG_DATA_HOME": str(data),
        "XDG_CONFIG_HOME": str(data),
        "XDG_CACHE_HOME": str(data),
    }
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [
        str(bin_folder / "libretranslate"),
        "--host",
        "127.0.0.1",
        "--port",
        str(port),
        "--threads",
        str(threads),
    ]
    command += ["--disable-web-ui", "--disable-files-translation"]
    with (data / LOG_NAME).open("wb") as log:  # it writes ten lines for each text
        server = subprocess.Popen(command, env=environment, cwd=data, stdout=log, stderr=log)
    signal.signal(signal.SIGTERM, lambda *_: server.terminate())
    try:
        _wait(server, f"http://127.0.0.1:{port}", data / LOG_NAME)
        print(f"LibreTranslate is ready: HTTP on http://127.0.0.1:{port}. ", flush=True)
        server.wait()
    finally:
        server.kill()


def _wait(server: subprocess.Popen[bytes], address: str, log: Path) -> None:
    """Return once it has translated a text, for which it loads the model."""
    body = json.dumps({"q": ["Hello!"], "source": "en", "target": "de", "format": "text"}).encode()
    request = Request(f"{address}/translate", body, {"Content-Type": "application/json"})
    ends = time.monotonic() + START_SECONDS
    while server.poll() is None and time.monotonic() < ends:
        try:
            with urlopen(request, timeout=START_SECONDS) as answer:
                answer.read()
            return
        except URLError:
            time.sleep(0.2)
    raise click.ClickException(f"LibreTranslate was not ready in {START_SECONDS:.0f} s; its message is in {log}.")


if __name__ == "__main__":
    main()
