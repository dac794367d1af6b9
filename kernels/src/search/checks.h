// Checks of the rows that a run takes part in: after them, no access of the search is out of range.
#pragma once

#include <vector>

#include "search/search.h"
#include "search/state.h"

namespace dragoman {

// Return the leader of each running row, which is the row itself unless it is in a beam, and -1 of the others. Throws
// `std::invalid_argument` that names the row and the field, what it is and what is allowed.
std::vector<int32_t> checked_leaders(const State &state, const SearchModel &model);

} // namespace dragoman
