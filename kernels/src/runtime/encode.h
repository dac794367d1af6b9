// The operator `Encode`: the whole encoder over packed sources, to keys and values of every decoder layer.
#pragma once

#include <optional>
#include <vector>

#include "runtime/feed_forward.h"
#include "runtime/memory.h"
#include "runtime/model.h"
#include "runtime/parallel.h"
#include "runtime/shortlists.h"
#include "runtime/tensor.h"

namespace dragoman {

class Encode {
public:
  static constexpr const char *name = "Encode";
  static constexpr ort::ElementType inputs[] = {ort::kInt64, ort::kInt32, ort::kInt32, ort::kUint16, ort::kInt32};
  static constexpr ort::ElementType outputs[] = {ort::kInt32, ort::kInt32};

  explicit Encode(NodeInfo &node);
  void run(const Context &context);

private:
  struct Layer {
    ResidualNorms attention_norm, feed_forward_norm;
    Dense projection; // queries, keys and values side by side
    HeadForm query_form, key_form;
    Dense output;
  };
  struct Workspace {
    Array<float> x, added, projected, scratches, scales;
    float *sum; // what sublayers add to: x, or `added`, if that is normalized before
    Array<Bfloat16> keys_values;
    std::vector<int64_t> first_blocks; // of each source in `keys_values`
    std::vector<int64_t> source_of;    // each token
    Array<uint8_t> levels;
    FeedForward::Workspace feed_forward;
  };
  struct Sources;

  void attend(const Layer &layer, const RelativeBias &bias, const Sources &sources, const Parallel &parallel,
              const Levels &levels, Workspace &work) const;
  static Sources group_of(const Sources &sources, int64_t group, int64_t num_groups);
  void encode_together(const Sources &sources, const Parallel &parallel);
  void encode(const Sources &sources, const Parallel &parallel, Workspace &work) const;
  void write_cross(const Sources &sources, const Parallel &parallel, Workspace &work) const;

  Model model_;
  Architecture architecture_;
  const Compute &compute_;
  Embedding embedding_;
  Norm embedding_norm_{};
  std::vector<RelativeBias> biases_; // of each layer
  std::vector<Layer> layers_;
  std::vector<FeedForward> feed_forwards_; // of each layer
  Norm final_norm_{};
  std::vector<Dense> cross_; // per decoder layer: keys and values side by side
  std::vector<HeadForm> cross_forms_; // of these keys
  std::optional<Shortlists> shortlists_; // if the model has them
  CacheShape shape_{}, cross_shape_{}; // of own attention, and of the decoder's
  size_t num_inputs_;
  Pool<Workspace> pool_;
};

} // namespace dragoman
