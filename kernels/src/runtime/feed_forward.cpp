#include "runtime/feed_forward.h"

namespace dragoman {

FeedForward::FeedForward(Model &model)
    : activation_(model.architecture().activation),
      inner_(model.read_dense("the inner layer", model.architecture().width, -1)),
      outer_(model.read_dense("the outer layer", inner_.num_outputs, model.architecture().width,
                              model.hidden_zero())) {}

void FeedForward::add(const Parallel &parallel, const Levels &input, int64_t num_rows, float *x, int64_t x_stride,
                      Workspace &work) const {
  int64_t width = round_up(inner_.num_outputs, kBlockColumns);
  float *hidden = work.hidden.at_least(num_rows * width);
  Levels levels{work.levels.at_least(num_rows * width), width, work.scales.at_least(num_rows)};
  parallel.dense_activated(inner_, input, num_rows, activation_, hidden, width);
  parallel.quantize(hidden, width, num_rows, inner_.num_outputs, outer_.zero_point, levels);
  parallel.dense(outer_, levels, num_rows, true, x, x_stride);
}

} // namespace dragoman
