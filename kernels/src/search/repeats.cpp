#include "search/repeats.h"

#include <algorithm>

namespace dragoman {

int32_t note_token(Row &row, const int64_t *output_ids, int64_t token_id) {
  const int num_known = std::min(row.length, kMaxPeriod);
  const int64_t *newest = output_ids + row.length;
  int32_t longest = 0;
  for (int period = 1; period <= num_known; ++period) {
    int32_t &run = row.runs[period - 1];
    run = newest[-period] == token_id ? run + 1 : 0;
    longest = std::max(longest, run);
  }
  return longest; // the runs of longer periods are 0: there is nothing that far back
}

void end_runs(Row &row) { std::fill(row.runs, row.runs + kMaxPeriod, 0); }

int32_t excess_tokens(const Row &row) {
  for (int period = 1; period <= kMaxPeriod; ++period)
    if (row.runs[period - 1] >= row.max_repeats * period)
      return period;
  return 0;
}

int32_t most_repeats(const int64_t *ids, int64_t count) {
  int64_t most = 1;
  for (int64_t period = 1; period <= kMaxPeriod; period++) {
    int64_t run = 0;
    for (int64_t place = period; place < count; place++) {
      run = ids[place] == ids[place - period] ? run + 1 : 0;
      most = std::max(most, run / period + 1);
    }
  }
  return static_cast<int32_t>(most);
}

} // namespace dragoman
