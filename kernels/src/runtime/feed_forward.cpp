#include "runtime/feed_forward.h"

#include <algorithm>

namespace dragoman {

namespace {

// Hidden values of rows that are computed together. They are written, searched for each row's largest and read again:
// half of a second-level cache of a megabyte keeps them near, beside their weights.
constexpr int64_t kHiddenValues = 128 * 1024;
constexpr int64_t kLeastRows = 24;

} // namespace

FeedForward::FeedForward(Model &model)
    : activation_(model.architecture().activation),
      inner_(model.read_dense("the inner layer", model.architecture().width, -1)),
      outer_(model.read_dense("the outer layer", inner_.num_outputs, model.architecture().width,
                              model.hidden_zero())) {}

void FeedForward::add(const Parallel &parallel, const Levels &input, int64_t num_rows, float *x, int64_t x_stride,
                      Workspace &work) const {
  int64_t width = round_up(inner_.num_outputs, kBlockColumns);
  int64_t most = std::max(kLeastRows, kHiddenValues / width), num_parts = (num_rows + most - 1) / most;
  int64_t rows_of_part = (num_rows + num_parts - 1) / std::max<int64_t>(num_parts, 1);
  float *hidden = work.hidden.at_least(rows_of_part * width);
  Levels levels{work.levels.at_least(rows_of_part * width), width, work.scales.at_least(rows_of_part)};
  for (int64_t first = 0; first < num_rows; first += rows_of_part) {
    int64_t count = std::min(rows_of_part, num_rows - first);
    parallel.dense_activated(inner_, input.from(first), count, activation_, hidden, width);
    parallel.quantize(hidden, width, count, inner_.num_outputs, outer_.zero_point, levels);
    parallel.dense(outer_, levels, count, true, x + first * x_stride, x_stride);
  }
}

} // namespace dragoman
