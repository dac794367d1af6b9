// Finished hypotheses of beams.
#pragma once

#include <cstdint>

#include "search/state.h"

namespace dragoman {

// Normalize the summed log-probability of an output of `length` tokens, forced ones included; the caller's own prefix
// does not count.
float normalized(const Row &row, float log_prob, int32_t length);

// Keep a hypothesis that ended if it is among the best of its beam, as many as the beam is wide. Its tokens and their
// history are those of the row `index`.
void keep_finished(const State &state, Row &leader, const Hypothesis &hypothesis, int64_t index);

// Keep one that repeats itself; it counts only if too few others end.
void keep_given_up(const State &state, Row &leader, const Hypothesis &hypothesis, int64_t index);

// Return whether as many hypotheses as the beam is wide are finished, and the best running one, of this log-probability
// and length, does not beat the worst of them.
bool is_done(const State &state, const Row &leader, float log_prob, int32_t length);

} // namespace dragoman
