#include "search/stepper.h"

#include <algorithm>
#include <stdexcept>
#include <string>

#include "search/ranges.h"

namespace dragoman {

void Stepper::begin() {
  Control &control = *state_.control;
  control.num_steps = control.num_generated = control.num_row_steps = control.num_ended = 0;
  exchange_.step->num_copies = 0;
  model_.eos_id = control.eos_id;
  model_.decoder_start_id = control.decoder_start_id;
  search_.emplace(state_, model_);
  if (static_cast<int32_t>(search_->live().size()) != control.num_rows)
    throw std::invalid_argument("a row that has ended is still in the batch");
  place_rows();
  plan();
}

void Stepper::advance() {
  Control &control = *state_.control;
  const std::vector<int32_t> &live = search_->live();
  const std::vector<Need> &needs = search_->needs();
  scores_.resize(live.size());
  candidate_ids_.resize(state_.num_slots * kMaxCandidates);
  for (size_t place = 0; place < live.size(); ++place)
    read_scores(live[place], needs[place], scores_[place]);
  control.num_row_steps += static_cast<int32_t>(live.size());
  search_->advance(scores_.data());
  control.num_steps++;
  control.num_ended = control.num_rows - static_cast<int32_t>(live.size());
  exchange_.step->num_copies = 0;
  for (int32_t index : live)
    if (state_.rows[index].width > 1 && state_.rows[index].rank == 0)
      inherit_caches(state_.rows[index]);
  plan();
}

void Stepper::place_rows() {
  places_.resize(state_.num_slots);
  for (int32_t index : search_->live()) {
    const Row &leader = state_.rows[index];
    if (leader.width == 1)
      places_[index] = index;
    if (leader.width == 1 || leader.rank > 0)
      continue;
    uint32_t found = 0;
    for (int32_t rank = 0; rank < leader.width; ++rank) {
      const int32_t row = leader.beam_rows[rank], cache_rank = exchange_.cache_ranks[row];
      expect_between("the cache rank of a row of the beam", cache_rank, 0, leader.width - 1);
      places_[row] = leader.beam_rows[cache_rank];
      found |= 1u << cache_rank;
    }
    if (found != (1u << leader.width) - 1)
      throw std::invalid_argument("two rows of the beam led by row " + std::to_string(index) + " share a cache");
  }
}

void Stepper::read_scores(int32_t index, const Need &need, Scores &scores) {
  const int64_t place = places_[index];
  const Step &step = *exchange_.step;
  scores = Scores{};
  scores.is_broken = exchange_.next_ids[place] < 0;
  scores.best_id = static_cast<int32_t>(exchange_.next_ids[place]);
  if (need.logits) {
    scores.logits = exchange_.logits + place * model_.vocabulary_size;
    scores.log_total = need.log_total ? exchange_.log_totals[place] : 0.0f;
  } else if (need.num_candidates) { // log-probabilities: `log_total` is 0
    const int64_t first = place * step.num_candidates;
    int32_t *ids = &candidate_ids_[index * kMaxCandidates];
    std::copy_n(exchange_.candidate_ids + first, need.num_candidates, ids);
    scores.num_candidates = need.num_candidates;
    scores.candidate_ids = ids;
    scores.candidate_logits = exchange_.candidate_log_probs + first;
  } else if (need.log_total) {
    scores.best_logit = exchange_.next_log_probs[place];
  }
}

// The first child of a beam takes over its cache. Further children get copies, in place of those of beams that have
// none: no row is both copied and overwritten.
void Stepper::inherit_caches(const Row &leader) {
  const int32_t width = leader.width;
  int32_t before[kMaxBeam], wanted[kMaxBeam];
  bool is_taken[kMaxBeam] = {}, is_first[kMaxBeam];
  for (int32_t rank = 0; rank < width; ++rank)
    before[rank] = exchange_.cache_ranks[leader.beam_rows[rank]];
  for (int32_t rank = 0; rank < width; ++rank) {
    // The slot of the last token that was computed is that of the beam that it continues.
    const int32_t slot = state_.history[leader.beam_rows[rank] * state_.capacity + leader.length - 1];
    int32_t parent = 0;
    while (parent < width - 1 && state_.rows[leader.beam_rows[parent]].slot != slot)
      ++parent;
    wanted[rank] = before[parent];
    is_first[rank] = !is_taken[wanted[rank]];
    is_taken[wanted[rank]] = true;
  }
  int32_t free = 0;
  for (int32_t rank = 0; rank < width; ++rank) {
    int32_t cache_rank = wanted[rank];
    if (!is_first[rank]) {
      while (is_taken[free])
        ++free;
      cache_rank = free++;
      int32_t *copy = exchange_.copies + 3 * exchange_.step->num_copies++;
      copy[0] = leader.beam_rows[wanted[rank]];
      copy[1] = leader.beam_rows[cache_rank];
      copy[2] = leader.length;
    }
    exchange_.cache_ranks[leader.beam_rows[rank]] = cache_rank;
    places_[leader.beam_rows[rank]] = leader.beam_rows[cache_rank];
  }
}

void Stepper::plan() {
  const Control &control = *state_.control;
  Step &step = *exchange_.step;
  const int32_t num_copies = step.num_copies, interrupt = __atomic_load_n(&control.interrupt, __ATOMIC_RELAXED);
  const bool is_early = interrupt == kForNewcomers && control.num_steps < std::max(control.least_steps, 1);
  step = Step{};
  step.num_copies = num_copies;
  step.is_over = control.num_rows == 0 || control.num_ended > 0 || control.num_steps >= control.max_steps ||
                 (interrupt != kNone && !is_early);
  if (step.is_over)
    return;
  const std::vector<int32_t> &live = search_->live();
  const std::vector<Need> &needs = search_->needs();
  for (size_t place = 0; place < live.size(); ++place) {
    const Row &row = state_.rows[live[place]];
    const Need &need = needs[place];
    step.num_candidates = std::max(step.num_candidates, need.num_candidates);
    step.log_probs |= need.log_total && !need.logits && need.num_candidates == 0;
    step.logits |= need.logits;
    step.log_totals |= need.log_total && need.logits;
    step.total_length = std::max(step.total_length, row.length + 1);
    step.longest_source = std::max(step.longest_source, row.source_length);
    const int32_t target = places_[live[place]];
    exchange_.token_ids[target] = row.token_id;
    exchange_.lengths[target] = row.length;
    exchange_.source_lengths[target] = row.source_length;
  }
}

} // namespace dragoman
