// Counts of repeated tokens at the end of a row's output.
#pragma once

#include <cstdint>

#include "search/state.h"

namespace dragoman {

inline bool is_guarded(const Row &row) { return row.max_repeats < kUnguarded; }

// Count the token that is about to be appended to a row's output. Returns the longest run: while it is below
// `max_repeats`, the row doesn't repeat too often.
int32_t note_token(Row &row, const int64_t *output_ids, int64_t token_id);

// End all runs: the token that is about to be appended is forced.
void end_runs(Row &row);

// Return the number of tokens at the end of the output that repeat once too often; 0 if none do.
int32_t excess_tokens(const Row &row);

// Return how often, at most, the same up to `kMaxPeriod` tokens occur in a row; 1 if nothing repeats.
int32_t most_repeats(const int64_t *ids, int64_t count);

} // namespace dragoman
