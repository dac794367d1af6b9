// The search over a model outside of this library, which makes one step of all rows at a time: a plain graph.
//
// Its caches are in rows, too: its own, as those of a beam follow the tokens, not the ranks, so that few are copied.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "search/search.h"
#include "search/state.h"

namespace dragoman {

// What the search and the model tell each other, in memory that Python owns. n rows run: those of the model are a
// permutation of the search's, which changes nothing but the rows of a beam.
struct Exchange {
  Step *step;
  int64_t *token_ids; // inputs of a step, each (num_slots,)
  int32_t *lengths;
  int32_t *source_lengths;
  const int64_t *next_ids; // (n,): the arg-max; negative if the last hidden state has NaN
  const float *next_log_probs;
  const int64_t *candidate_ids; // (n, step.num_candidates), best first
  const float *candidate_log_probs;
  float *logits; // (n, vocabulary_size); changed in place
  const float *log_totals;
  int32_t *cache_ranks; // (num_slots,): the cache of a row is that of the model's row `beam_rows[cache_ranks[row]]`
  int32_t *copies;      // (num_slots, 3): from and to which row of the model to copy how many tokens
};

class Stepper {
public:
  // Both are read in every call.
  Stepper(const State &state, const SearchModel &model, const Exchange *exchange)
      : state_(state), model_(model), exchange_(*exchange) {}

  // Begin a run as `Control` says, and say what its first step needs. Throws `std::invalid_argument` if the rows are
  // not valid. A run ends once a row has ended: the model's rows have to stay side by side.
  void begin();

  // Append a token to each row, once the model has made the step, and say what the next one needs.
  void advance();

private:
  void place_rows();
  void read_scores(int32_t index, const Need &need, Scores &scores);
  void inherit_caches(const Row &leader);
  void plan();

  State state_;
  SearchModel model_;
  const Exchange &exchange_;
  std::optional<Search> search_;
  std::vector<int32_t> places_; // the model's row of each row
  std::vector<Scores> scores_;
  std::vector<int32_t> candidate_ids_;
};

} // namespace dragoman
