"""The training loop: resumable, logged for plotting; keeps the best weights, averaged or not, at every evaluation."""

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
from tqdm import tqdm

from export.architecture.transformer import Transformer
from export.training.batches import Batch, epoch_batches
from export.training.corpus import EncodedCorpus
from export.training.evaluation import translate_greedily, validation_loss
from export.training.gradients import ParallelGradients, smoothed_loss
from export.training.muon import Muon
from export.training.recipe import OptimizerRecipe, Recipe, recipe_fingerprint

STATE_NAME = "state.pt"
FINISH_NAME = "finish.pt"  # the state of a decay started by `finish`; `state.pt` remains as it was before
LOG_NAME = "log.jsonl"


@dataclass(frozen=True, slots=True)
class Hardware:
    """The device, and how to use it."""

    device: torch.device
    workers: int  # threads that compute parts of a batch on a CPU
    bfloat16: bool
    compile: bool


@dataclass(slots=True)
class Progress:
    """The state from which a run resumes."""

    step: int = 0
    epoch: int = 0
    batch: int = 0  # of the epoch
    tokens: int = 0
    cpu_seconds: float = 0.0  # of all threads: excludes time while the process was stopped or others ran
    end_step: int = 0
    decay_steps: int = 0
    averaged: list[dict[str, Tensor]] = field(default_factory=list)  # the last weights, for averaging


class Trainer:
    """Trains `model` in place; calls `keep` with the model and its validation loss at every evaluation."""

    def __init__(
        self,
        recipe: Recipe,
        model: Transformer,
        tokenizer: sentencepiece.SentencePieceProcessor,
        training: EncodedCorpus,
        validation: list[Batch],
        output: Path,
        hardware: Hardware,
        keep: Callable[[Transformer, float], None],
    ) -> None:
        self.recipe, self.hardware, self.output, self.keep = recipe, hardware, output, keep
        self.model = model.to(hardware.device)
        self.tokenizer, self.training, self.validation = tokenizer, training, validation
        self.progress = Progress(end_step=recipe.schedule.total_steps, decay_steps=recipe.schedule.decay_steps)
        self.optimizers = _optimizers(model, recipe.optimizer)
        self._add_gradients = self._gradients()
        self._is_finishing = self._is_stopping = False

    def run(self) -> bool:
        """Train to the end; return `False` if `stop` ended the run early."""
        progress, schedule = self.progress, self.recipe.schedule
        if progress.step >= progress.end_step:
            return True
        bar = tqdm(total=progress.end_step, initial=progress.step, desc="train", unit="step", mininterval=5.0)
        before = time.process_time()
        for batch in self._batches():
            loss = self._step(batch)
            now = time.process_time()
            progress.cpu_seconds, before = progress.cpu_seconds + now - before, now
            bar.update()
            if progress.step % 50 == 0:
                self._log({"loss": loss, "rate_share": self.rate_share()})
                rate = progress.tokens / progress.cpu_seconds
                bar.set_postfix_str(f"loss {loss:.3f}, {rate / 1000:.1f}k tokens a CPU second", refresh=False)
            at_end = progress.step >= progress.end_step
            if progress.step % schedule.evaluate_every == 0 or at_end:
                self._evaluate(bar)
                before = time.process_time()  # evaluations don't count as training time
                self._save()
            if at_end or self._is_stopping:
                break
        bar.close()
        if self._is_stopping:
            self._save()
        elif self._is_finishing:
            (self.output / FINISH_NAME).unlink(missing_ok=True)
        return not self._is_stopping

    def stop(self) -> None:
        """End the run after the current step, with its state saved to disk. Safe in a signal handler."""
        self._is_stopping = True

    def resume(self) -> None:
        if not (self.output / STATE_NAME).exists():
            return
        self._load(self.output / STATE_NAME)
        schedule = self.recipe.schedule
        self.progress.end_step, self.progress.decay_steps = schedule.total_steps, schedule.decay_steps

    def finish(self, steps: int) -> None:
        """Decay the learning rates over `steps` from the state in the output folder, which is kept for resuming.

        An interrupted decay resumes with its original settings.
        """
        started, stable = self.output / FINISH_NAME, self.output / STATE_NAME
        if not stable.exists():
            raise ValueError(f"{stable} is missing: there is no run to finish; train without --finish first.")
        self._is_finishing = True
        self._load(started if started.exists() else stable)
        if not started.exists():
            self.progress.end_step, self.progress.decay_steps = self.progress.step + steps, steps

    def rate_share(self) -> float:
        """Return the share of the peak learning rates at this step: linear warm-up, the peak, then linear decay."""
        progress, optimizer = self.progress, self.recipe.optimizer
        warm = min(1.0, (progress.step + 1) / optimizer.warmup_steps)
        left = min(1.0, max(0, progress.end_step - progress.step) / progress.decay_steps)
        return warm * (optimizer.final_rate_share + (1.0 - optimizer.final_rate_share) * left)

    def _batches(self) -> Iterator[Batch]:
        schedule, config = self.recipe.schedule, self.model.config
        for epoch in itertools.count(self.progress.epoch):
            seed = schedule.seed + epoch
            batches = epoch_batches(self.training, schedule.batch_tokens, config.decoder_start_id, config.pad_id, seed)
            for number, batch in enumerate(batches):
                if epoch == self.progress.epoch and number < self.progress.batch:
                    continue  # processed before the run was interrupted
                self.progress.epoch, self.progress.batch = epoch, number + 1
                yield batch
            self.progress.epoch, self.progress.batch = epoch + 1, 0

    def _step(self, batch: Batch) -> float:
        self.model.train()
        loss = self._add_gradients(batch)
        nn.utils.clip_grad_norm_(self.model.parameters(), self.recipe.optimizer.clip_norm)
        for optimizer in self.optimizers:
            for group in optimizer.param_groups:
                group["lr"] = optimizer.defaults["lr"] * self.rate_share()
            optimizer.step()
            optimizer.zero_grad(set_to_none=True)
        self.progress.step += 1
        self.progress.tokens += batch.num_tokens
        return loss

    def _gradients(self) -> Callable[[Batch], float]:
        hardware, smoothing = self.hardware, self.recipe.optimizer.label_smoothing
        if hardware.device.type == "cpu" and not hardware.compile:
            return ParallelGradients(self.model, smoothing, hardware.workers, hardware.bfloat16).add
        summed_loss = torch.compile(smoothed_loss, dynamic=True) if hardware.compile else smoothed_loss

        def add(batch: Batch) -> float:
            source = torch.from_numpy(batch.source_ids).to(hardware.device)
            target = torch.from_numpy(batch.target_ids).to(hardware.device)
            count = int((batch.target_ids[:, 1:] != self.model.config.pad_id).sum())
            with torch.autocast(hardware.device.type, torch.bfloat16, enabled=hardware.bfloat16):
                loss: Tensor = summed_loss(self.model, source, target, smoothing) / count
            loss.backward()
            return float(loss.detach())

        return add

    def _evaluate(self, bar: "tqdm[Any]") -> None:
        last = {name: value.detach().clone() for name, value in self.model.weights().items()}
        self.progress.averaged = [*self.progress.averaged, last][-self.recipe.schedule.average_last :]
        loss = validation_loss(self.model, self.validation, self.hardware.device)
        self.keep(self.model, loss)
        kept = self.progress.averaged
        self.model.load_weights({name: torch.stack([weights[name] for weights in kept]).mean(0) for name in last})
        averaged = validation_loss(self.model, self.validation, self.hardware.device)
        self.keep(self.model, averaged)
        samples = translate_greedily(self.model, self.tokenizer, self.recipe.samples, self.hardware.device)
        self.model.load_weights(last)
        self._log({"validation_loss": loss, "averaged_validation_loss": averaged, "samples": samples})
        bar.write(f"step {self.progress.step}: validation loss {loss:.3f}, averaged {averaged:.3f}")
        for text, translation in zip(self.recipe.samples, samples, strict=True):
            bar.write(f"    {text} -> {translation}")

    def _save(self) -> None:
        state = {
            "recipe": recipe_fingerprint(self.recipe),
            "model": self.model.weights(),
            "optimizers": [optimizer.state_dict() for optimizer in self.optimizers],
            "progress": {item.name: getattr(self.progress, item.name) for item in dataclasses.fields(Progress)},
        }
        path = self.output / (FINISH_NAME if self._is_finishing else STATE_NAME)
        temporary = path.with_suffix(".partial")
        torch.save(state, temporary)
        temporary.replace(path)
        if not self._is_finishing:
            (self.output / FINISH_NAME).unlink(missing_ok=True)  # it belongs to an earlier state

    def _load(self, path: Path) -> None:
        state = torch.load(path, map_location=self.hardware.device, weights_only=True)
        if state["recipe"] != recipe_fingerprint(self.recipe):
            raise ValueError(f"{path} is the state of another recipe; choose another --output, or remove it.")
        self.model.load_weights(state["model"])
        for optimizer, saved in zip(self.optimizers, state["optimizers"], strict=True):
            optimizer.load_state_dict(saved)
        self.progress = Progress(**state["progress"])

    def _log(self, record: dict[str, Any]) -> None:
        progress = self.progress
        place = {"time": round(time.time()), "cpu_seconds": round(progress.cpu_seconds, 1)}
        place |= {"step": progress.step, "tokens": progress.tokens}
        with (self.output / LOG_NAME).open("a", encoding="utf-8") as file:
            file.write(json.dumps({**place, **record}, ensure_ascii=False) + "\n")


def _optimizers(model: Transformer, recipe: OptimizerRecipe) -> list[torch.optim.Optimizer]:
    """Return Muon for the hidden matrices, and AdamW without decay for embeddings, norms and biases."""
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
