// Beam search with the semantics of transformers' `generate(num_beams=k, do_sample=False)`.
//
// Each step ranks the 2 k most probable continuations of the k running beams. Those among the first k that end (with
// the end-of-sentence token, or all of them at the length limit) become finished hypotheses, of which the k best by
// normalized score are kept; the first k that don't end continue. The search is over when k hypotheses are finished and
// the best running beam, normalized by its current length, does not beat the worst of them (with `kStopsEarly`, i.e.
// `early_stopping=True`, whether it does or not), or at the length limit.
//
// With `kNarrows` it is Marian's: of k beams, k - n go on when n hypotheses are finished, and only those among the
// first k - n that end become finished; the search is over when none goes on. The others' rows stay, impossible.
//
// One deliberate difference: where transformers marks "impossible" with a score of -1e9, this uses minus infinity, so
// that real scores below -1e9 (long outputs under a strongly negative length penalty) keep their order.
//
// The i-th best beam is always in row beam_rows[i]. No cache is copied, as each token of a beam's history names the slot
// that has its keys and values; a plain graph's caches follow by copies (`stepper.h`).
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
