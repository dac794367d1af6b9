// Beam search; the same in Python: `service/engine/search/beam.py`.
//
// There, beams move between rows so that few caches are copied. Here the i-th best beam is always in row beam_rows[i]:
// no cache is copied, as each token of a beam's history names the slot that has its keys and values.
#pragma once

#include <cstdint>

#include "search/search.h"
#include "search/state.h"
#include "search/workspace.h"

namespace dragoman {

// Say that a row's next input is in the row's own slot.
void claim_position(const State &state, int32_t index);

// Append a token to all rows of the running beam led by row `leader_index`; `scores` are those of row r at `places[r]`.
// Returns whether it has ended. All its rows get the same status: kStopped if enough hypotheses are finished, kAtLimit
// at the limit, kRepeating if all were given up, kBroken.
bool advance_beam(const State &state, const SearchModel &model, int32_t leader_index, const Scores *scores,
                  const int32_t *places, Workspace &workspace);

} // namespace dragoman
