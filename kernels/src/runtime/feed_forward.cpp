#include "runtime/feed_forward.h"

namespace dragoman {

FeedForward::FeedForward(Model &model)
    : activation_(model.architecture().activation), gated_(model.architecture().gated),
      gate_(gated_ ? model.read_dense("the gate", model.architecture().width, -1) : Dense{}),
      inner_(model.read_dense("the inner layer", model.architecture().width, gated_ ? gate_.num_outputs : -1)),
      outer_(model.read_dense("the outer layer", inner_.num_outputs, model.architecture().width,
                              model.hidden_zero())) {}

void FeedForward::add(const Parallel &parallel, const Levels &input, int64_t num_rows, float *x, int64_t x_stride,
                      Workspace &work) const {
  int64_t width = round_up(inner_.num_outputs, kBlockColumns);
  float *hidden = work.hidden.at_least(num_rows * width);
  Levels levels{work.levels.at_least(num_rows * width), width, work.scales.at_least(num_rows)};
  parallel.dense_activated(gated_ ? gate_ : inner_, input, num_rows, activation_, hidden, width);
  if (gated_)
    parallel.dense(inner_, input, num_rows, Into::kMultiply, hidden, width);
  parallel.quantize(hidden, width, num_rows, inner_.num_outputs, outer_.zero_point, levels);
  parallel.dense(outer_, levels, num_rows, Into::kAdd, x, x_stride);
}

} // namespace dragoman
