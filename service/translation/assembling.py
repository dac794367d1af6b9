"""Assembly of segments' translations into texts: white space, markup, positions."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from service.domain.checkpoint import paced
from service.domain.translation import AlignedSpan, FinishReason, Hypothesis, Segment, Translation
from service.text.markup import BlockTranslation
from service.translation.checks import AnswerSize
from service.translation.restoring import Alignment
from service.translation.segments import PlannedPassage, PlannedText

Candidates = tuple[Hypothesis, ...]
_SIGN = re.compile(r"\S")


@dataclass(frozen=True, slots=True)
class _Part:
    """The translation of a passage at one rank."""

    text: str
    segments: tuple[Segment, ...]
    alignment: Alignment


def assemble(
    planned: PlannedText, candidates: Sequence[Candidates], size: AnswerSize, *, with_alignment: bool
) -> Translation:
    """Return the answer to a text whose segments have these candidates, in order.

    Candidates of the same rank are combined; a segment with fewer repeats its last one. The score is the mean of the
    segments' scores, weighted by tokens. Positions in HTML refer to the text between the tags. `size` counts the answer
    before it is built.
    """
    if len(candidates) == 1 and len(candidates[0]) == 1 and _is_whole(planned):
        return _whole(planned, candidates[0][0], size, with_alignment=with_alignment)
    num_ranks = max(map(len, candidates), default=1)
    ranks = range(num_ranks)
    num_links = sum([len(each[0].alignment) for each in candidates]) if with_alignment else 0
    num_characters = sum([len(_of_rank(each, rank).text) for each in paced(candidates) for rank in ranks])
    size.add(num_characters, len(candidates) + num_links)
    drafts = [_draft(planned, candidates, rank) for rank in ranks]
    best_text, best_parts = drafts[0]
    segments, alignment = _joined(planned, best_parts)
    hypotheses = tuple(_hypothesis(text, candidates, rank) for rank, (text, _) in enumerate(drafts))
    return Translation(
        text=best_text,
        hypotheses=hypotheses,
        finish_reason=hypotheses[0].finish_reason,
        num_source_tokens=sum([len(each.source_ids) for passage in planned.passages for each in passage.segments]),
        segments=segments,
        alignment=alignment if with_alignment else (),
    )


def joined(planned: PlannedText, candidates: Sequence[Candidates]) -> Candidates:
    if len(candidates) == 1 and _is_whole(planned):
        return candidates[0]
    ranks = range(max(map(len, candidates), default=1))
    return tuple(_joined_hypothesis(planned, candidates, rank) for rank in ranks)


def _joined_hypothesis(planned: PlannedText, candidates: Sequence[Candidates], rank: int) -> Hypothesis:
    text, [part] = _draft(planned, candidates, rank)
    flags = dict.fromkeys(flag for segment in part.segments for flag in segment.flags)
    return _hypothesis(text, candidates, rank)._replace(flags=tuple(flags), alignment=part.alignment)


def _is_whole(planned: PlannedText) -> bool:
    if planned.html is not None or len(planned.passages) != 1 or planned.passages[0].offsets is not None:
        return False
    segments = planned.passages[0].segments
    return len(segments) == 1 and len(segments[0].text) == len(planned.text)


def _whole(planned: PlannedText, chosen: Hypothesis, size: AnswerSize, *, with_alignment: bool) -> Translation:
    alignment = chosen.alignment if with_alignment else ()
    size.add(len(chosen.text), 1 + len(alignment))
    [planned_segment] = planned.passages[0].segments
    num_source_tokens = len(planned_segment.source_ids)
    text, num_tokens, reason = chosen.text, chosen.num_tokens, chosen.finish_reason
    segment = Segment(0, len(planned.text), 0, len(text), reason, num_source_tokens, num_tokens, chosen.flags)
    hypothesis = Hypothesis(text, chosen.score, num_tokens, reason)
    return Translation(text, (hypothesis,), reason, num_source_tokens, (segment,), alignment)


def _draft(planned: PlannedText, candidates: Sequence[Candidates], rank: int) -> tuple[str, list[_Part]]:
    remaining = iter(candidates)
    parts = [_passage(passage, remaining, rank) for passage in paced(planned.passages)]
    if planned.html is None:
        return "".join(part.text for part in parts), parts
    blocks = [
        BlockTranslation(part.text, (*part.alignment, *_signs(passage, part)))
        for passage, part in zip(planned.passages, parts, strict=True)
    ]
    return planned.html.render(blocks), parts


def _passage(passage: PlannedPassage, candidates: Iterator[Candidates], rank: int) -> _Part:
    texts: list[str] = []
    segments: list[Segment] = []
    alignment: list[AlignedSpan] = []
    done = length = 0
    for planned in paced(passage.segments, every=16):
        chosen = _of_rank(next(candidates), rank)
        texts += (passage.text[done : planned.start], chosen.text)
        start = length + planned.start - done
        length = start + len(chosen.text)
        done = planned.end
        source, num_tokens = passage.as_written(planned.start, planned.end), len(planned.source_ids)
        reason, flags = chosen.finish_reason, chosen.flags
        segments.append(Segment(*source, start, length, reason, num_tokens, chosen.num_tokens, flags))
        alignment += _moved(chosen.alignment, planned.start, start)
    texts.append(passage.text[done:])
    if passage.offsets is not None:
        alignment = [
            AlignedSpan(*passage.as_written(link.source_start, link.source_end), link.target_start, link.target_end)
            for link in paced(alignment)
        ]
    return _Part("".join(texts), tuple(segments), tuple(alignment))


def _signs(passage: PlannedPassage, part: _Part) -> Iterator[AlignedSpan]:
    """Yield a link for each sign of what is copied between segments, which tags may be around."""
    starts = [0, *(planned.end for planned in passage.segments)]
    ends = [*(planned.start for planned in passage.segments), len(passage.text)]
    targets = [0, *(segment.target_end for segment in part.segments)]
    for start, end, target in zip(starts, ends, targets, strict=True):
        for found in paced(_SIGN.finditer(passage.text, start, end)):
            place = target + found.start() - start
            yield AlignedSpan(*passage.as_written(*found.span()), place, place + 1)


def _joined(planned: PlannedText, parts: Sequence[_Part]) -> tuple[tuple[Segment, ...], Alignment]:
    if len(parts) == 1:
        return parts[0].segments, parts[0].alignment
    segments: list[Segment] = []
    alignment: list[AlignedSpan] = []
    source = target = 0
    for passage, part in paced(zip(planned.passages, parts, strict=True)):
        segments += [
            segment._replace(
                source_start=segment.source_start + source,
                source_end=segment.source_end + source,
                target_start=segment.target_start + target,
                target_end=segment.target_end + target,
            )
            for segment in part.segments
        ]
        alignment += _moved(part.alignment, source, target)
        source += passage.num_characters
        target += len(part.text)
    return tuple(segments), tuple(alignment)


def _moved(alignment: Alignment, source: int, target: int) -> Iterator[AlignedSpan]:
    return (
        AlignedSpan(
            span.source_start + source, span.source_end + source, span.target_start + target, span.target_end + target
        )
        for span in paced(alignment)
    )


def _of_rank(candidates: Candidates, rank: int) -> Hypothesis:
    return candidates[min(rank, len(candidates) - 1)]


def _hypothesis(text: str, candidates: Sequence[Candidates], rank: int) -> Hypothesis:
    chosen = [_of_rank(each, rank) for each in candidates]
    cut_off = (each.finish_reason for each in chosen if each.finish_reason is not FinishReason.STOP)
    num_tokens = sum(each.num_tokens for each in chosen)
    return Hypothesis(text, mean_score(chosen), num_tokens, next(cut_off, FinishReason.STOP))


def mean_score(chosen: Sequence[Hypothesis]) -> float | None:
    """Return the mean of scores, weighted by tokens; `None` if one with tokens has none."""
    if len(chosen) == 1:
        return chosen[0].score
    weighted = [(each.num_tokens, each.score) for each in chosen if each.num_tokens]
    scored = [(weight, score) for weight, score in weighted if score is not None]
    if not scored or len(scored) < len(weighted):
        return None
    return sum(weight * score for weight, score in scored) / sum(weight for weight, _ in scored)
