// A layer's feed-forward: x += W2 activation(W1 input + b1) + b2.
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
  Dense inner_, outer_;
};

} // namespace dragoman
