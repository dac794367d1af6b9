// Greedy search and sampling: sequences of one row each.
#pragma once

#include <vector>

#include "search/search.h"
#include "search/state.h"

namespace dragoman {

// Append a token to a running row of width 1. Returns whether the row has ended.
bool advance_single(const State &state, const SearchModel &model, int32_t index, const Scores &scores,
                    std::vector<float> &workspace);

} // namespace dragoman
