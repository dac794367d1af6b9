// The model of a node: its attributes and constants, checked, with weights packed for the arithmetic.
//
// `kernels/README.md` has the order of the constants.
#pragma once

#include <deque>
#include <initializer_list>
#include <string>
#include <vector>

#include "compute/compute.h"
#include "runtime/memory.h"
#include "runtime/shared_weights.h"
#include "runtime/tensor.h"

namespace dragoman {

// What both operators' attributes describe.
struct Architecture {
  int32_t num_layers;
  int32_t num_heads;
  int32_t head_size; // of the model; the projections' heads may be padded
  int32_t width;     // d
  bool pre_norm;
  bool scalar_norm;
  bool final_norm;
  bool output_projection;
  float epsilon;
  float scale;
  Activation activation;
};

struct Embedding {
  const int8_t *tokens;
  const float *scales;
  const float *positions;
  int64_t num_tokens;
  int64_t num_positions;
};

// Reads a node's constants and owns what is packed of them.
class Model {
public:
  explicit Model(NodeInfo &node);

  Model(const Model &) = delete;

  // Read constants in order. `widths`: how many outputs; -1: any.
  Embedding read_embedding();
  Norm read_norm();
  Dense read_dense(const char *what, int64_t num_inputs, int64_t num_outputs);
  // Several dense layers of the same input, side by side.
  Dense read_dense_side_by_side(const char *what, int64_t num_inputs, int count);
  // Tensor of ids, any number of them.
  std::vector<int64_t> read_ids(const char *what);

  // Heads of `count` projections side by side, which may be padded to whole lanes; throws, naming `what`, if the
  // `num_outputs` are not made of such heads.
  CacheShape heads_of(const char *what, int64_t num_outputs, int count) const;

  // Say that all has been read: other processes may use the packed weights.
  void complete() { packed_.complete(); }

  // The same layer with other biases.
  Dense with_biases(const Dense &dense, const std::vector<int64_t> &ids, float bias);

  // What of the constants is read in each run; the rest is copied.
  Memory memory(const Embedding &embedding) const {
    return {"the token embedding", embedding.tokens, embedding.num_tokens * architecture_.width};
  }

  const Architecture &architecture() const { return architecture_; }
  const Compute &compute() const { return *compute_; }
  size_t num_read() const { return node_.next(); }

private:
  struct Part {
    const int8_t *weights; // (outputs, inputs)
    std::vector<float> scales, biases;
    int64_t num_outputs;
  };
  Part read_part(const char *what, int64_t num_inputs, int64_t num_outputs, float *input_scale, int32_t *zero_point);
  Dense pack(const char *what, const std::vector<Part> &parts, int64_t num_inputs, float input_scale,
             int32_t zero_point);
  const float *kept(const std::vector<float> &values);
  float *floats(int64_t size);

  NodeInfo &node_;
  const Compute *compute_;
  Architecture architecture_;
  SharedWeights packed_;
  std::deque<Array<float>> floats_;
  std::deque<Array<int32_t>> integers_;
  std::deque<Array<uint16_t>> orders_;
};

inline Quantization quantization_of(const Dense &reader) { return {1.0f / reader.input_scale, reader.zero_point}; }

} // namespace dragoman
