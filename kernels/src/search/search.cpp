#include "search/search.h"

#include <algorithm>

#include "search/beam.h"
#include "search/checks.h"
#include "search/processors.h"
#include "search/single_row.h"

namespace dragoman {
namespace {

// `row` is the leader of a beam, or a row of width 1.
Need need_of(const Row &row, const SearchModel &model) {
  Need need;
  const bool is_beam = row.width > 1;
  if (row.length < row.forced_length)
    return need;
  if (changes_scores(row)) {
    need.logits = true;
    need.log_total = is_beam;
  } else if (is_beam || row.temperature > 0) {
    need.log_total = true;
    need.num_candidates = std::min(is_beam ? 2 * row.width : row.top_k, model.vocabulary_size);
  } else {
    need.log_total = row.flags & kWantsScore;
  }
  return need;
}

} // namespace

Search::Search(const State &state, const SearchModel &model)
    : state_(state), model_(model), leaders_(checked_leaders(state, model)) {
  for (int32_t index = 0; index < state.control->num_rows; ++index)
    if (state.rows[index].status == kRunning) {
      live_.push_back(index);
      if (state.rows[index].width > 1)
        claim_position(state, index);
    }
  note_places();
}

const std::vector<Need> &Search::needs() {
  needs_.clear();
  for (int32_t index : live_)
    needs_.push_back(need_of(state_.rows[leaders_[index]], model_));
  return needs_;
}

bool Search::advance(const Scores *scores) {
  bool has_ended = false;
  for (size_t place = 0; place < live_.size(); ++place) {
    const Row &row = state_.rows[live_[place]];
    if (row.width == 1)
      has_ended |= advance_single(state_, model_, live_[place], scores[place], workspace_.floats);
    else if (row.rank == 0)
      has_ended |= advance_beam(state_, model_, live_[place], scores, places_.data(), workspace_);
  }
  if (has_ended) {
    const auto is_over = [this](int32_t index) { return state_.rows[index].status != kRunning; };
    live_.erase(std::remove_if(live_.begin(), live_.end(), is_over), live_.end());
    note_places();
  }
  return has_ended;
}

void Search::note_places() {
  places_.resize(state_.control->num_rows);
  for (size_t place = 0; place < live_.size(); ++place)
    places_[live_[place]] = static_cast<int32_t>(place);
}

} // namespace dragoman
