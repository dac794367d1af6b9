#include "search/hypotheses.h"

#include <algorithm>
#include <cmath>

namespace dragoman {
namespace {

// Insert into a list sorted by score, which is stored at `first` + the beam's rows: of equals, the earlier one stays
// ahead. Returns the list's new size.
int32_t insert(const State &state, const Row &leader, int64_t first, int32_t count, const Hypothesis &hypothesis,
               int64_t index) {
  int32_t place = count;
  while (place > 0 && state.hypotheses[first + leader.beam_rows[place - 1]].score < hypothesis.score)
    --place;
  if (place == leader.width)
    return count;
  const auto store = [&](int32_t to, const Hypothesis &stored, const int64_t *ids, int64_t history) {
    const int64_t row = first + leader.beam_rows[to];
    state.hypotheses[row] = stored;
    std::copy_n(ids, stored.length, state.hypothesis_ids + row * state.capacity);
    std::copy_n(state.history + history * state.capacity, stored.length,
                state.history + (state.num_slots + row) * state.capacity);
  };
  const int32_t new_count = std::min(count + 1, leader.width);
  for (int32_t to = new_count - 1; to > place; --to) {
    const int64_t row = first + leader.beam_rows[to - 1];
    store(to, state.hypotheses[row], state.hypothesis_ids + row * state.capacity, state.num_slots + row);
  }
  store(place, hypothesis, state.output_ids + index * state.capacity, index);
  return new_count;
}

} // namespace

float normalized(const Row &row, float log_prob, int32_t length) {
  const double counted = length - row.caller_prefix;
  return log_prob / static_cast<float>(std::pow(counted, static_cast<double>(row.length_penalty)));
}

void keep_finished(const State &state, Row &leader, const Hypothesis &hypothesis, int64_t index) {
  leader.num_finished = insert(state, leader, 0, leader.num_finished, hypothesis, index);
}

void keep_given_up(const State &state, Row &leader, const Hypothesis &hypothesis, int64_t index) {
  leader.num_given_up = insert(state, leader, state.num_slots, leader.num_given_up, hypothesis, index);
}

bool is_done(const State &state, const Row &leader, float log_prob, int32_t length) {
  if (leader.num_finished < leader.width)
    return false;
  if (leader.flags & (kStopsEarly | kNarrows))
    return true;
  return !(normalized(leader, log_prob, length) > state.hypotheses[leader.beam_rows[leader.width - 1]].score);
}

} // namespace dragoman
