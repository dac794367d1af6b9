"""The training loop: resumable, with a log to plot, and the last weights averaged in the end."""

import dataclasses
import itertools
import json
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import sentencepiece
import torch
from torch import Tensor, nn
from torch.nn import functional
from tqdm import tqdm

from export.architecture import Transformer
from export.training.batches import Batch, epoch_batches
from export.training.corpus import EncodedCorpus
from export.training.evaluation import translate_greedily, validation_loss
from export.training.muon import Muon
from export.training.recipe import OptimizerRecipe, Recipe, recipe_fingerprint

STATE_NAME = "state.pt"
LOG_NAME = "log.jsonl"


@dataclass(frozen=True, slots=True)
class Hardware:
    """Where and how to compute. `minutes` ends the run by the clock: the learning rate then decays over that time."""

    device: torch.device
    bfloat16: bool
    compile: bool
    minutes: float | None


@dataclass(slots=True)
class Progress:
    """What a resumed run goes on from."""

    step: int = 0
    epoch: int = 0
    batch: int = 0  # of the epoch
    tokens: int = 0
    seconds: float = 0.0
    averaged: list[dict[str, Tensor]] = field(default_factory=list)  # the last weights, for averaging


class Trainer:
    """Trains `model` in place; `run` returns when the schedule or the clock is at its end."""

    def __init__(
        self,
        recipe: Recipe,
        model: Transformer,
        tokenizer: sentencepiece.SentencePieceProcessor,
        training: EncodedCorpus,
        validation: list[Batch],
        output: Path,
        hardware: Hardware,
    ) -> None:
        self.recipe, self.hardware, self.output = recipe, hardware, output
        self.model = model.to(hardware.device)
        self.tokenizer, self.training, self.validation = tokenizer, training, validation
        self.progress = Progress()
        self.optimizers = _optimizers(model, recipe.optimizer)
        loss: Callable[[Tensor, Tensor], Tensor] = self._loss
        self.loss = torch.compile(loss, dynamic=True) if hardware.compile else loss

    def run(self) -> None:
        """Train to the end, then average the last weights into the model."""
        schedule = self.recipe.schedule
        bar = tqdm(total=schedule.total_steps, initial=self.progress.step, desc="train", unit="step", mininterval=5.0)
        before = time.monotonic()
        for batch in self._batches():
            loss = self._step(batch)
            now = time.monotonic()
            self.progress.seconds, before = self.progress.seconds + now - before, now
            bar.update()
            if self.progress.step % 50 == 0:
                self._log({"loss": loss, "rate_share": self.rate_share()})
                rate = self.progress.tokens / self.progress.seconds
                bar.set_postfix_str(f"loss {loss:.3f}, {rate / 1000:.1f}k tokens/s, {self._done():.0%}", refresh=False)
            at_end = self._done() >= 1.0
            if self.progress.step % schedule.evaluate_every == 0 or at_end:
                self._evaluate(bar)
                self._save()
                before = time.monotonic()  # evaluations don't count as training time
            if at_end:
                break
        bar.close()
        self._average()

    def resume(self) -> bool:
        """Go on from the state in the output folder, if there is one.

        Raises:
            ValueError: the state is that of another recipe.
        """
        path = self.output / STATE_NAME
        if not path.exists():
            return False
        state = torch.load(path, map_location=self.hardware.device, weights_only=True)
        if state["recipe"] != recipe_fingerprint(self.recipe):
            raise ValueError(f"{path} is the state of another recipe; choose another --output, or remove it.")
        self.model.load_weights(state["model"])
        for optimizer, saved in zip(self.optimizers, state["optimizers"], strict=True):
            optimizer.load_state_dict(saved)
        self.progress = Progress(**state["progress"])
        return True

    def rate_share(self) -> float:
        """Share of the peak learning rates: linear warm-up over steps, and linear decay over what is done."""
        optimizer = self.recipe.optimizer
        warm = min(1.0, (self.progress.step + 1) / optimizer.warmup_steps)
        decay = 1.0 - (1.0 - optimizer.final_rate_share) * min(1.0, self._done())
        return warm * decay

    def _done(self) -> float:
        """Share of the run that is behind us, by steps or by the clock, whichever is further."""
        by_steps = self.progress.step / self.recipe.schedule.total_steps
        minutes = self.hardware.minutes
        return max(by_steps, self.progress.seconds / 60 / minutes) if minutes else by_steps

    def _batches(self) -> Iterator[Batch]:
        schedule, config = self.recipe.schedule, self.model.config
        for epoch in itertools.count(self.progress.epoch):
            seed = schedule.seed + epoch
            batches = epoch_batches(self.training, schedule.batch_tokens, config.decoder_start_id, config.pad_id, seed)
            for number, batch in enumerate(batches):
                if epoch == self.progress.epoch and number < self.progress.batch:
                    continue  # seen before the run was interrupted
                self.progress.epoch, self.progress.batch = epoch, number + 1
                yield batch
            self.progress.epoch, self.progress.batch = epoch + 1, 0

    def _step(self, batch: Batch) -> float:
        self.model.train()
        source = torch.from_numpy(batch.source_ids).to(self.hardware.device)
        target = torch.from_numpy(batch.target_ids).to(self.hardware.device)
        with torch.autocast(self.hardware.device.type, torch.bfloat16, enabled=self.hardware.bfloat16):
            loss = self.loss(source, target)
        loss.backward()
        nn.utils.clip_grad_norm_(self.model.parameters(), self.recipe.optimizer.clip_norm)
        for optimizer in self.optimizers:
            for group in optimizer.param_groups:
                group["lr"] = optimizer.defaults["lr"] * self.rate_share()
            optimizer.step()
            optimizer.zero_grad(set_to_none=True)
        self.progress.step += 1
        self.progress.tokens += batch.num_tokens
        return float(loss.detach())

    def _loss(self, source: Tensor, target: Tensor) -> Tensor:
        logits = self.model(source, target[:, :-1])  # (B, T, V)
        return functional.cross_entropy(
            logits.flatten(0, 1).float(),
            target[:, 1:].flatten(),
            ignore_index=self.model.config.pad_id,
            label_smoothing=self.recipe.optimizer.label_smoothing,
        )

    def _evaluate(self, bar: "tqdm[Any]") -> None:
        loss = validation_loss(self.model, self.validation, self.hardware.device)
        samples = translate_greedily(self.model, self.tokenizer, self.recipe.samples, self.hardware.device)
        self._log({"validation_loss": loss, "samples": samples})
        bar.write(f"step {self.progress.step}: validation loss {loss:.3f}")
        for text in samples:
            bar.write(f"    {text}")
        weights = {name: value.detach().clone() for name, value in self.model.weights().items()}
        self.progress.averaged = [*self.progress.averaged, weights][-self.recipe.schedule.average_last :]

    def _save(self) -> None:
        state = {
            "recipe": recipe_fingerprint(self.recipe),
            "model": self.model.weights(),
            "optimizers": [optimizer.state_dict() for optimizer in self.optimizers],
            "progress": {item.name: getattr(self.progress, item.name) for item in dataclasses.fields(Progress)},
        }
        temporary = self.output / f"{STATE_NAME}.partial"
        torch.save(state, temporary)
        temporary.replace(self.output / STATE_NAME)

    def _average(self) -> None:
        """Put the mean of the last evaluations' weights into the model, if that is better than the last weights."""
        last = {name: value.detach().clone() for name, value in self.model.weights().items()}
        before = validation_loss(self.model, self.validation, self.hardware.device)
        kept = self.progress.averaged
        self.model.load_weights({name: torch.stack([w[name] for w in kept]).mean(0) for name in last})
        after = validation_loss(self.model, self.validation, self.hardware.device)
        self._log({"validation_loss_last": before, "validation_loss_averaged": after})
        if after > before:
            self.model.load_weights(last)

    def _log(self, record: dict[str, Any]) -> None:
        place = {"step": self.progress.step, "tokens": self.progress.tokens, "seconds": round(self.progress.seconds, 1)}
        with (self.output / LOG_NAME).open("a", encoding="utf-8") as file:
            file.write(json.dumps({**place, **record}, ensure_ascii=False) + "\n")


def _optimizers(model: Transformer, recipe: OptimizerRecipe) -> list[torch.optim.Optimizer]:
    """Muon for the hidden matrices; AdamW without decay for embeddings, norms and biases."""
    hidden = [p for name, p in model.named_parameters() if _is_hidden_matrix(name, p)]
    others = [p for name, p in model.named_parameters() if not _is_hidden_matrix(name, p)]
    return [
        Muon(hidden, lr=recipe.matrix_learning_rate, momentum=recipe.momentum, weight_decay=recipe.weight_decay),
        torch.optim.AdamW(
            others, lr=recipe.other_learning_rate, betas=(0.9, recipe.beta2), weight_decay=0.0, fused=True
        ),
    ]


def _is_hidden_matrix(name: str, parameter: nn.Parameter) -> bool:
    return parameter.dim() == 2 and "embedding" not in name and "projection" not in name
