// Memory that a search uses again in each step.
#pragma once

#include <cstdint>
#include <vector>

namespace dragoman {

struct Workspace {
  std::vector<float> floats;
  std::vector<int64_t> output_ids; // of the beams that others continue
  std::vector<int32_t> history;
};

} // namespace dragoman
