// The search behind functions for ctypes. Its arithmetic is the plainest there is.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <exception>
#include <limits>
#include <numeric>
#include <vector>

#include "search/search.h"

namespace {

using namespace dragoman;

void log_sum(const float *x, int64_t count, float *largest, float *sum) {
  *largest = *std::max_element(x, x + count);
  *sum = 0.0f;
  for (int64_t index = 0; index < count; ++index)
    *sum += std::exp(x[index] - *largest);
}

int top(const float *x, int64_t count, int32_t, int num_wanted, int, int32_t *indices, float *values) {
  std::vector<int32_t> order(count);
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [x](int32_t one, int32_t other) { return x[one] > x[other]; });
  const int num_best = static_cast<int>(std::min<int64_t>(num_wanted, count));
  for (int place = 0; place < num_best; ++place) {
    indices[place] = order[place];
    values[place] = x[order[place]];
  }
  return num_best;
}

Compute arithmetic() {
  Compute table{};
  table.log_sum = log_sum;
  table.top = top;
  return table;
}

const Compute kArithmetic = arithmetic();

} // namespace

#define ENTRY extern "C" __attribute__((visibility("default")))

// Returns null, and why in `error`, if the state is not valid.
ENTRY Search *search_new(const State *state, int32_t vocabulary_size, int32_t renormalizes, int64_t num_readable,
                         char *error, size_t error_size) {
  const Control &control = *state->control;
  SearchModel model{vocabulary_size, control.eos_id, control.decoder_start_id, renormalizes != 0, &kArithmetic,
                    num_readable};
  try {
    return new Search(*state, model);
  } catch (const std::exception &caught) {
    std::snprintf(error, error_size, "%s", caught.what());
    return nullptr;
  }
}

ENTRY void search_delete(Search *search) { delete search; }

ENTRY int32_t search_live(const Search *search, int32_t *rows) {
  std::copy(search->live().begin(), search->live().end(), rows);
  return static_cast<int32_t>(search->live().size());
}

// `needs` (n, 3): log_total, num_candidates, logits.
ENTRY void search_needs(Search *search, int32_t *needs) {
  for (const Need &need : search->needs()) {
    *needs++ = need.log_total;
    *needs++ = need.num_candidates;
    *needs++ = need.logits;
  }
}

ENTRY int32_t search_advance(Search *search, const Scores *scores) { return search->advance(scores); }
