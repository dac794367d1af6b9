// The options that change scores before a token is chosen.
#pragma once

#include <cstdint>
#include <vector>

#include "search/search.h"
#include "search/state.h"

namespace dragoman {

inline bool changes_scores(const Row &row) {
  return row.repetition_penalty != 1.0f || row.no_repeat_ngram_size > 0 || row.min_output_tokens > 0;
}

// Apply the options of `row`, which is the leader in a beam, to the scores (vocabulary_size,) of the token that follows
// an output of its length: logits in greedy search and sampling, log-probabilities in beam search. `found` is a
// workspace.
void process(const Row &row, const int64_t *output_ids, const SearchModel &model, float *scores,
             std::vector<float> &found);

} // namespace dragoman
