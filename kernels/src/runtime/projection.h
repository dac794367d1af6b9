// The projection of hidden states to the vocabulary, and what the search needs to know of the logits.
#pragma once

#include <vector>

#include "runtime/memory.h"
#include "runtime/model.h"
#include "runtime/parallel.h"
#include "runtime/shortlists.h"
#include "search/search.h"

namespace dragoman {

class Projection {
public:
  // The most probable tokens of a row, or of some columns of it; best first.
  struct Candidates {
    int count;
    int32_t ids[kMaxCandidates];
    float logits[kMaxCandidates];
  };
  struct Workspace {
    Array<float> scales, logits, totals, best_logits;
    Array<uint8_t> levels;
    Array<int32_t> best_ids;
    Array<Candidates> candidates;
    Array<float> listed, full; // logits of shortlists, and of all tokens with those
    Array<Candidates> listed_candidates;
    std::vector<int64_t> places; // of each row that is gathered
  };

  // Reads the projection and the suppressed ids. `renormalizes`: log-probabilities are those among the allowed tokens.
  Projection(Model &model, bool renormalizes, bool has_shortlists);

  int32_t vocabulary_size() const { return dense_.num_outputs; }

  // Compute the scores that `num_rows` rows need, except `is_broken`. They point into the workspace. Rows with shortlists
  // (null: none has one) choose among these tokens, whose probabilities sum up to 1.
  void score(const Parallel &parallel, const Levels &x, const Need *needs, const Shortlist *shortlists,
             int64_t num_rows, Scores *scores, Workspace &work) const;

private:
  struct Rows; // which need the same

  void find_best(const Parallel &parallel, const Rows &rows, Workspace &work) const;
  void find_candidates(const Parallel &parallel, const Rows &rows, Workspace &work) const;
  void keep_logits(const Parallel &parallel, const Rows &rows, Workspace &work) const;
  void score_listed(const Parallel &parallel, const Rows &rows, Workspace &work) const;
  // Set suppressed ids to minus infinity in the logits of `count` columns from `first` on.
  void suppress(int64_t first, int64_t count, float *logits) const;
  float log_total(const float *logits, int64_t count) const;

  const Compute &compute_;
  Dense dense_;
  std::vector<int64_t> suppressed_;
  Dense allowed_; // the same, with suppressed ids at minus infinity
  Columns columns_{}; // of `dense_`, if there are shortlists
  bool renormalizes_;
};

} // namespace dragoman
