#include "search/beam.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "search/beam_ranking.h"
#include "search/hypotheses.h"
#include "search/processors.h"
#include "search/repeats.h"

namespace dragoman {
namespace {

// One running beam search.
class Beam {
public:
  Beam(const State &state, const SearchModel &model, int32_t leader_index)
      : state_(state), model_(model), leader_(state.rows[leader_index]), width_(leader_.width),
        length_(leader_.length) {}

  bool advance(const Scores *scores, const int32_t *places, Workspace &workspace) {
    const bool is_forced = length_ < leader_.forced_length;
    state_.control->num_generated += !is_forced;
    for (int32_t rank = 0; rank < width_; ++rank)
      if (scores[places[index(rank)]].is_broken)
        return end(kBroken);
    if (is_forced) {
      for (int32_t rank = 0; rank < width_; ++rank) {
        end_runs(row(rank));
        append(rank, output_ids(rank)[length_]);
      }
      return false;
    }
    Candidates candidates[kMaxBeam];
    float log_probs[kMaxBeam];
    for (int32_t rank = 0; rank < width_; ++rank) {
      candidates[rank] = candidates_of(rank, scores[places[index(rank)]], workspace);
      log_probs[rank] = row(rank).log_prob;
      const float *own = candidates[rank].log_probs;
      if (std::any_of(own, own + candidates[rank].count, [](float value) { return std::isnan(value); }))
        return end(kBroken);
    }
    const Ranking ranking = rank_continuations(log_probs, candidates, width_, model_.eos_id);
    const bool is_at_limit = length_ + 1 >= leader_.limit;
    const bool is_over = collect(ranking, is_at_limit);
    if (is_over || is_at_limit)
      return end(is_over ? kStopped : kAtLimit);
    inherit(ranking.running, workspace);
    const int32_t going_on = num_running();
    for (int32_t rank = 0; rank < width_; ++rank) {
      row(rank).log_prob = rank < going_on ? ranking.running[rank].log_prob : -std::numeric_limits<float>::infinity();
      append_chosen(rank, ranking.running[rank].token_id);
    }
    return is_guarded(leader_) && gives_up() && end(kRepeating);
  }

private:
  int32_t index(int32_t rank) const { return leader_.beam_rows[rank]; }
  Row &row(int32_t rank) const { return state_.rows[index(rank)]; }
  int32_t num_running() const { return leader_.flags & kNarrows ? width_ - leader_.num_finished : width_; }
  int64_t *output_ids(int32_t rank) const { return state_.output_ids + index(rank) * state_.capacity; }
  int32_t *history(int32_t rank) const { return state_.history + index(rank) * state_.capacity; }

  bool end(Status status) {
    for (int32_t rank = 0; rank < width_; ++rank)
      row(rank).status = status;
    return true;
  }

  Candidates candidates_of(int32_t rank, const Scores &scores, Workspace &workspace) const {
    if (!changes_scores(leader_))
      return given_candidates(scores, 2 * width_);
    for (int32_t id = 0; id < model_.vocabulary_size; ++id)
      scores.logits[id] -= scores.log_total;
    process(leader_, output_ids(rank), model_, scores.logits, workspace.floats);
    return best_candidates(model_, scores.logits, 2 * width_, model_.renormalizes);
  }

  // Keep the continuations that end. Returns whether the search is done.
  bool collect(const Ranking &ranking, bool is_at_limit) {
    const bool forces_end = leader_.flags & kForcesEnd;
    const int32_t most = num_running();
    for (int32_t place = 0; place < most; ++place)
      if (ranking.top[place].token_id == model_.eos_id || (is_at_limit && !forces_end))
        finish(ranking.top[place], 0);
    if (is_done(state_, leader_, ranking.running[0].log_prob, length_ + 1))
      return true;
    const int32_t going_on = num_running();
    if (is_at_limit && forces_end)
      for (int32_t place = 0; place < going_on; ++place)
        finish(ranking.running[place], 1);
    return false;
  }

  // Keep a hypothesis that ends with the next token, or `num_forced` tokens later.
  void finish(const Continuation &ending, int32_t num_forced) {
    output_ids(ending.parent)[length_] = ending.token_id; // no token yet: what continues the beam overwrites it
    const float score = normalized(leader_, ending.log_prob, length_ + 1 + num_forced);
    keep_finished(state_, leader_, {score, length_ + 1, 0, 0}, index(ending.parent));
  }

  // Copy to each rank's row the output of the beam that it continues. All are saved first: rows are both read and
  // written.
  void inherit(const Continuation *running, Workspace &workspace) {
    int32_t runs[kMaxBeam][kMaxPeriod];
    workspace.output_ids.resize(kMaxBeam * state_.capacity);
    workspace.history.resize(kMaxBeam * state_.capacity);
    for (int32_t rank = 0; rank < width_; ++rank) {
      const int32_t parent = running[rank].parent;
      if (parent == rank)
        continue;
      std::copy_n(output_ids(parent), length_, &workspace.output_ids[rank * state_.capacity]);
      std::copy_n(history(parent), length_ + 1, &workspace.history[rank * state_.capacity]);
      std::copy_n(row(parent).runs, kMaxPeriod, runs[rank]);
    }
    for (int32_t rank = 0; rank < width_; ++rank) {
      if (running[rank].parent == rank)
        continue;
      std::copy_n(&workspace.output_ids[rank * state_.capacity], length_, output_ids(rank));
      std::copy_n(&workspace.history[rank * state_.capacity], length_ + 1, history(rank));
      std::copy_n(runs[rank], kMaxPeriod, row(rank).runs);
    }
  }

  void append(int32_t rank, int64_t token_id) {
    row(rank).token_id = output_ids(rank)[length_] = token_id;
    row(rank).length = length_ + 1;
    claim_position(state_, index(rank));
  }

  void append_chosen(int32_t rank, int64_t token_id) {
    if (is_guarded(row(rank)))
      note_token(row(rank), output_ids(rank), token_id);
    append(rank, token_id);
  }

  // Give up beams that repeat themselves: in the next step others take their places, if any are left.
  // Returns whether none is.
  bool gives_up() {
    bool has_given_up = false, is_alive = false;
    for (int32_t rank = 0; rank < num_running(); ++rank) {
      if (const int32_t excess = excess_tokens(row(rank))) {
        const float score = normalized(leader_, row(rank).log_prob, length_ + 1);
        keep_given_up(state_, leader_, {score, length_ + 1, excess, 0}, index(rank));
        row(rank).log_prob = -std::numeric_limits<float>::infinity();
        has_given_up = true;
      }
      is_alive |= !std::isinf(row(rank).log_prob);
    }
    return has_given_up && !is_alive;
  }

  const State &state_;
  const SearchModel &model_;
  Row &leader_;
  const int32_t width_;
  const int32_t length_; // before this step
};

} // namespace

void claim_position(const State &state, int32_t index) {
  const Row &row = state.rows[index];
  state.history[index * state.capacity + row.length] = row.slot;
}

bool advance_beam(const State &state, const SearchModel &model, int32_t leader_index, const Scores *scores,
                  const int32_t *places, Workspace &workspace) {
  return Beam(state, model, leader_index).advance(scores, places, workspace);
}

} // namespace dragoman
