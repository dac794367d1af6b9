#include "search/beam_ranking.h"

namespace dragoman {

Ranking rank_continuations(const float *log_probs, const Candidates *candidates, int32_t width, int32_t eos_id) {
  Continuation best[2 * kMaxBeam]; // contain at least `width` that don't end, as only one of a beam does
  const int most = 2 * width;
  int count = 0;
  for (int32_t parent = 0; parent < width; ++parent) {
    for (int index = 0; index < candidates[parent].count; ++index) {
      const float total = log_probs[parent] + candidates[parent].log_probs[index];
      if (count == most && !(total > best[most - 1].log_prob))
        break; // nor are the beam's other candidates better
      int place = count < most ? count++ : most - 1;
      for (; place > 0 && best[place - 1].log_prob < total; --place)
        best[place] = best[place - 1];
      best[place] = {parent, candidates[parent].ids[index], total};
    }
  }
  Ranking ranking{};
  int num_running = 0;
  for (int index = 0; index < count && num_running < width; ++index)
    if (best[index].token_id != eos_id)
      ranking.running[num_running++] = best[index];
  for (int index = 0; index < width; ++index)
    ranking.top[index] = best[index];
  return ranking;
}

} // namespace dragoman
