// The model of a node: its attributes and constants, checked. Weights are read where the file is mapped.
//
// `kernels/README.md` has the order of the constants.
#pragma once

#include <cstring>
#include <deque>
#include <initializer_list>
#include <string>
#include <vector>

#include "compute/compute.h"
#include "runtime/memory.h"
#include "runtime/tensor.h"

namespace dragoman {

// What both operators' attributes describe.
struct Architecture {
  int32_t num_layers;
  int32_t num_heads;
  int32_t head_size;
  int32_t width;       // d
  int32_t heads_width; // of all heads side by side: mostly d
  bool pre_norm;
  bool sandwich_norm;
  bool block_norm;
  NormKind norm_kind;
  bool embedding_norm;
  bool final_norm;
  bool output_projection;
  bool gated;
  int32_t rotary_size; // of a head in self-attention
  int32_t qk_norm;     // 0: none, 1: rms, 2: with mean and bias
  float epsilon;
  float scale;
  Activation activation;
};

struct Embedding {
  const int8_t *tokens; // packed like weights: one table is both the embedding and the projection
  const float *scales;
  const float *positions;
  const float *angles; // of each position's rotation; null: none
  int64_t num_tokens;
  int64_t num_positions;
};

// Of a residual connection: before or after its sublayer; of what the sublayer gives, if norms are a sandwich; at the end
// of a layer. What it lacks has no gain.
struct ResidualNorms {
  Norm own, output, block;
};

// What attention adds to the score of a token by how far it is from the one that attends; nothing if it is empty.
class RelativeBias {
public:
  RelativeBias() = default;
  RelativeBias(const float *values, int64_t num_places, int64_t num_positions)
      : values_(values), num_places_(num_places), num_positions_(num_positions) {}
  // For the token at `position`, and those after it.
  ScoreBias of(int64_t position) const {
    return {values_ == nullptr ? nullptr : values_ + num_positions_ - 1 - position, num_places_, -1};
  }

private:
  const float *values_ = nullptr; // (H, places): of a token's position less the attending one's, plus positions - 1
  int64_t num_places_ = 0, num_positions_ = 0;
};

// What is done to queries or keys before attention: a norm, a rotation by their position, both or nothing.
struct HeadForm {
  Norm norm; // no gain: none
  const float *angles; // (P, rotary_size), or null
  int32_t rotary_size, num_heads;

  void apply(const Compute &compute, int64_t position, float *heads) const {
    if (norm.gain != nullptr || angles != nullptr)
      compute.form_heads(norm, angles == nullptr ? nullptr : angles + position * rotary_size, rotary_size, num_heads,
                         heads);
  }
};

// Ids where they were read to, or where their file is mapped: at any address, and whoever writes to that file changes
// them, so they are checked whenever they are used.
class StoredIds {
public:
  explicit StoredIds(const Tensor &tensor) : data_(static_cast<const char *>(tensor.data)), size_(tensor.size()) {}
  int64_t size() const { return size_; }
  int32_t operator[](int64_t index) const {
    int32_t id;
    std::memcpy(&id, data_ + index * sizeof id, sizeof id);
    return id;
  }

private:
  const char *data_;
  int64_t size_;
};

// Reads a node's constants, and owns what is computed of them.
class Model {
public:
  explicit Model(NodeInfo &node);

  Model(const Model &) = delete;

  // Read constants in order. `widths`: how many outputs; -1: any.
  Embedding read_embedding();
  Norm read_norm();
  ResidualNorms read_residual_norms(bool ends_layer = false);
  // Of queries or keys, in such heads, that are rotated or, with `angles` null, not.
  HeadForm read_head_form(const CacheShape &shape, const float *angles);
  // Of each layer, where tokens attend to those before them or, with `both_ways`, to all.
  std::vector<RelativeBias> read_relative_biases(const Embedding &embedding, bool both_ways);
  // `zero_point`: of its input.
  Dense read_dense(const char *what, int64_t num_inputs, int64_t num_outputs, int32_t zero_point = kZero);
  // Tensor of ids, any number of them.
  std::vector<int64_t> read_ids(const char *what);
  StoredIds read_stored_ids(const char *what);

  // The heads of attention, side by side.
  CacheShape heads() const;
  // Those of the decoder's attention, as its encoder names them if they differ.
  CacheShape decoder_heads() const;
  // The zero point of the feed-forward's hidden values.
  int32_t hidden_zero() const {
    return architecture_.activation == Activation::kRelu && !architecture_.gated ? 0 : kZero;
  }

  // The columns of a layer whose weights have been read.
  Columns columns_of(const Dense &dense);

  // The same layer with other biases.
  Dense with_biases(const Dense &dense, const std::vector<int64_t> &ids, float bias);

  // Throw if two of what a run reads or writes share a byte, or one does with a constant that runs read in its place.
  void require_apart(std::initializer_list<Memory> all) const;

  const Architecture &architecture() const { return architecture_; }
  const Compute &compute() const { return *compute_; }
  size_t num_read() const { return node_.next(); }

private:
  Norm read_norm(NormKind kind, int32_t width);
  const int8_t *read_packed(const char *what, int64_t num_outputs, int64_t num_inputs);
  std::vector<float> read_floats(const std::string &what, const std::vector<int64_t> &dims, bool may_forbid = false);
  const float *kept(const std::vector<float> &values, int64_t size);
  float *floats(int64_t size);

  NodeInfo &node_;
  const Compute *compute_;
  Architecture architecture_;
  std::vector<Memory> in_place_; // constants that runs read where they are
  std::deque<Array<float>> floats_;
  std::deque<Array<int32_t>> integers_;
  std::deque<Array<uint16_t>> orders_;
  std::deque<Array<int8_t>> columns_;
};

} // namespace dragoman
