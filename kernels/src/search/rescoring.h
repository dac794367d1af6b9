// Log-probabilities and candidates of changed scores.
#pragma once

#include <cstdint>

#include "search/search.h"
#include "search/state.h"

namespace dragoman {

// The most probable tokens of a row, best first, the lower id among equals.
struct Candidates {
  int count;
  int32_t ids[kMaxCandidates];
  float log_probs[kMaxCandidates];
};

// Return at most `num_wanted` of the candidates that the projection computed.
Candidates given_candidates(const Scores &scores, int num_wanted);

// Return the best of scores (vocabulary_size,), made log-probabilities in place first if `normalizes`. A row of which
// all tokens are forbidden stays as it is.
Candidates best_candidates(const SearchModel &model, float *scores, int num_wanted, bool normalizes);

} // namespace dragoman
