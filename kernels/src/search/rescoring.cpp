#include "search/rescoring.h"

#include <algorithm>
#include <cmath>

namespace dragoman {

Candidates given_candidates(const Scores &scores, int num_wanted) {
  Candidates given;
  given.count = std::min(scores.num_candidates, num_wanted);
  for (int index = 0; index < given.count; ++index) {
    given.ids[index] = scores.candidate_ids[index];
    given.log_probs[index] = scores.candidate_logits[index] - scores.log_total;
  }
  return given;
}

Candidates best_candidates(const SearchModel &model, float *scores, int num_wanted, bool normalizes) {
  if (normalizes) {
    float largest, sum;
    model.compute->log_sum(scores, model.vocabulary_size, &largest, &sum);
    if (!std::isinf(largest)) {
      const float total = std::log(sum);
      for (int32_t id = 0; id < model.vocabulary_size; ++id)
        scores[id] = scores[id] - largest - total;
    }
  }
  Candidates best;
  best.count = model.compute->top(scores, model.vocabulary_size, 0, num_wanted, 0, best.ids, best.log_probs);
  return best;
}

} // namespace dragoman
