#include "search/single_row.h"

#include <cmath>

#include "search/processors.h"
#include "search/repeats.h"
#include "search/rescoring.h"
#include "search/sampling.h"

namespace dragoman {
namespace {

struct Choice {
  int64_t token_id;
  float log_prob; // 0 where nobody asked
};

Choice drawn(const Row &row, const Candidates &candidates) {
  const int chosen = draw(row, candidates.log_probs, candidates.count);
  return {candidates.ids[chosen], candidates.log_probs[chosen]};
}

Choice choose_rescored(const Row &row, const int64_t *output_ids, const SearchModel &model, float *logits,
                       std::vector<float> &workspace) {
  process(row, output_ids, model, logits, workspace);
  int32_t best_id;
  float best;
  model.compute->top(logits, model.vocabulary_size, 0, 1, 0, &best_id, &best);
  if (std::isinf(best)) { // all tokens are forbidden: it ends
    best_id = model.eos_id;
    logits[best_id] = 0.0f;
  }
  if (row.temperature > 0)
    return drawn(row, best_candidates(model, logits, row.top_k, true));
  float log_prob = 0.0f;
  if (row.flags & kWantsScore) {
    float largest, sum;
    model.compute->log_sum(logits, model.vocabulary_size, &largest, &sum);
    log_prob = -std::log(sum);
  }
  return {best_id, log_prob};
}

Choice choose(const Row &row, const int64_t *output_ids, const SearchModel &model, const Scores &scores,
              std::vector<float> &workspace) {
  if (changes_scores(row))
    return choose_rescored(row, output_ids, model, scores.logits, workspace);
  if (row.temperature > 0)
    return drawn(row, given_candidates(scores, row.top_k));
  return {scores.best_id, row.flags & kWantsScore ? scores.best_logit - scores.log_total : 0.0f};
}

} // namespace

bool advance_single(const State &state, const SearchModel &model, int32_t index, const Scores &scores,
                    std::vector<float> &workspace) {
  Row &row = state.rows[index];
  int64_t *output_ids = state.output_ids + index * state.capacity;
  const bool is_forced = row.length < row.forced_length;
  state.control->num_generated += !is_forced;
  if (scores.is_broken) {
    row.status = kBroken;
    return true;
  }
  if (is_forced) {
    row.token_id = output_ids[row.length++];
    end_runs(row);
    return false;
  }
  const Choice choice = choose(row, output_ids, model, scores, workspace);
  if (std::isnan(choice.log_prob)) {
    row.status = kBroken;
    return true;
  }
  int32_t excess = 0;
  if (is_guarded(row) && note_token(row, output_ids, choice.token_id) >= row.max_repeats)
    excess = excess_tokens(row);
  row.log_prob += choice.log_prob;
  row.token_id = output_ids[row.length++] = choice.token_id;
  if (choice.token_id == model.eos_id) {
    row.status = kStopped;
  } else if (excess) {
    row.status = kRepeating;
    row.excess = excess;
  } else if (row.length >= row.limit) {
    row.status = kAtLimit;
  }
  return row.status != kRunning;
}

} // namespace dragoman
