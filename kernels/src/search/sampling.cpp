#include "search/sampling.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace dragoman {
namespace {

constexpr float kColdest = std::numeric_limits<float>::min(); // lower temperatures are 0 in float32
constexpr uint64_t kGamma = 0x9E3779B97F4A7C15;

uint64_t mixed(uint64_t word) {
  word = (word ^ (word >> 30)) * 0xBF58476D1CE4E5B9;
  word = (word ^ (word >> 27)) * 0x94D049BB133111EB;
  return word ^ (word >> 31);
}

} // namespace

double uniform(uint64_t seed, int32_t position) {
  // SplitMix64, accessed by position: a row has no state that would have to move with it.
  const uint64_t bits = mixed(seed + (static_cast<uint64_t>(position) + 1) * kGamma);
  return static_cast<double>(bits >> 11) * 0x1p-53;
}

int draw(const Row &row, const float *log_probs, int count) {
  const double divisor = std::max(row.temperature, kColdest);
  count = std::min(count, row.top_k);
  double weights[kMaxCandidates], mass[kMaxCandidates];
  double total = 0.0;
  for (int index = 0; index < count; ++index) {
    weights[index] = std::exp((static_cast<double>(log_probs[index]) - static_cast<double>(log_probs[0])) / divisor);
    mass[index] = total += weights[index];
  }
  const double threshold = static_cast<double>(row.top_p) * total;
  int num_kept = 0; // a prefix, as the best come first
  for (int index = 0; index < count; ++index)
    num_kept += weights[index] > 0.0 && mass[index] - weights[index] < threshold;
  num_kept = std::max(num_kept, 1);
  const double passed = uniform(row.seed, row.length + 1 - row.forced_length) * mass[num_kept - 1];
  int chosen = 0;
  while (chosen < num_kept - 1 && mass[chosen] <= passed)
    ++chosen;
  return chosen;
}

} // namespace dragoman
