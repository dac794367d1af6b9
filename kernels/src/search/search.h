// The choice of tokens: greedy search, sampling, beams, forced tokens, guards, and options that change scores.
//
// It is judged by what transformers' `generate` gives, by slow searches in Python, and by recorded answers.
#pragma once

#include <cstdint>
#include <vector>

#include "compute/compute.h"
#include "search/state.h"
#include "search/workspace.h"

namespace dragoman {

// What the projection must compute for a row. Everything below needs what is above it only where it says so.
struct Need {
  bool log_total = false;  // log-sum-exp over the vocabulary
  int num_candidates = 0;  // the most probable tokens
  bool logits = false;     // of all tokens; then nothing else is computed but `is_broken` and, if asked, `log_total`

  bool is_arg_max_only() const { return !log_total && !logits && num_candidates == 0; }
};

// What the projection computed for one row.
struct Scores {
  bool is_broken;   // the last hidden state has NaN: nothing else is valid
  int32_t best_id;  // arg-max over the allowed tokens; the lowest id among equals
  float best_logit;
  // Log-sum-exp of all tokens, suppressed ones included; of the allowed ones if the model renormalizes and `logits` are
  // not asked for: changed scores are normalized again.
  float log_total;
  int num_candidates;
  const int32_t *candidate_ids;   // best first; the lower id among equals
  const float *candidate_logits;
  float *logits; // (vocabulary_size,), minus infinity for suppressed tokens; may be changed in place
};

struct SearchModel {
  int32_t vocabulary_size;
  int32_t eos_id;
  int32_t decoder_start_id;
  bool renormalizes; // scores are normalized again once they are changed (transformers' `renormalize_logits`)
  const Compute *compute = nullptr; // `log_sum` and `top`; needed only by rows whose options change scores
  int64_t num_readable = INT32_MAX; // tokens of the decoder's embedding: forced ones may be beyond the vocabulary
};

// Chooses tokens for the rows of one run. Holds no state between runs: that is in `State`.
class Search {
public:
  // Check all rows that take part, so that no later access is out of range; throws `std::invalid_argument`.
  Search(const State &state, const SearchModel &model);

  // Rows that are still running, ascending. A beam's rows run and end together.
  const std::vector<int32_t> &live() const { return live_; }

  // What to compute for each live row in the coming step, in the order of `live()`.
  const std::vector<Need> &needs();

  // Append a token to each live row, given its scores in the order of `live()`; rows that end leave `live()`.
  // All rows of a beam end together, with one status (`beam.h`); its hypotheses are then in `State::hypotheses`.
  // Returns whether a row ended.
  bool advance(const Scores *scores);

private:
  void note_places();

  State state_;
  SearchModel model_;
  std::vector<int32_t> live_;
  std::vector<int32_t> leaders_; // of each row
  std::vector<int32_t> places_;  // of each row in `live_`
  std::vector<Need> needs_;
  Workspace workspace_;
};

} // namespace dragoman
