// A layer's feed-forward: x += W2 h + b2 with h = activation(W1 input + b1) or, if it is gated, with
// h = activation(W0 input + b0) * (W1 input + b1).
#pragma once

#include "runtime/memory.h"
#include "runtime/model.h"
#include "runtime/parallel.h"

namespace dragoman {

class FeedForward {
public:
  struct Workspace {
    Array<float> hidden, scales;
    Array<uint8_t> levels;
  };

  explicit FeedForward(Model &model);

  void add(const Parallel &parallel, const Levels &input, int64_t num_rows, float *x, int64_t x_stride,
           Workspace &work) const;

private:
  Activation activation_;
  bool gated_;
  Dense gate_{}, inner_, outer_;
};

} // namespace dragoman
