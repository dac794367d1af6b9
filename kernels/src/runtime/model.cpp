#include "runtime/model.h"

#include <algorithm>
#include <cinttypes>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <limits>

#include "runtime/selection.h"

namespace dragoman {

namespace {

constexpr int64_t kMaxSize = 10'000'000; // export/architecture/config.py: MAX_SIZE
constexpr int64_t kMaxLayers = 1000;
constexpr int64_t kMaxWidth = 1 << 20; // sums of 2^20 products of 8 bits would exceed 32 bits: see `pack`
constexpr size_t kEmbeddingConstants = 3;          // the first ones, which are not packed

Activation activation_of(const std::string &name) {
  if (name == "relu")
    return Activation::kRelu;
  if (name == "gelu")
    return Activation::kGelu;
  if (name == "silu")
    return Activation::kSilu;
  if (name == "identity")
    return Activation::kIdentity;
  throw std::invalid_argument("attribute activation is '" + name + "', allowed are relu, gelu, silu, identity");
}

// Return the file of a node's packed weights. The same weights have the same name, whatever the instruction set.
SharedWeights::File file_of(const NodeInfo &node) {
  SharedWeights::File file{node.shared_weights(), "", 0};
  if (file.directory.empty())
    return file;
  std::vector<Tensor> constants = node.rest();
  uint64_t hash = 0;
  for (size_t index = kEmbeddingConstants; index < constants.size(); index++) {
    const Tensor &tensor = constants[index];
    if (tensor.type != ort::kInt8 || tensor.shape.size() != 2)
      continue;
    hash = hash_of(tensor.shape.data(), 2 * sizeof(int64_t), hash);
    hash = hash_of(tensor.data, tensor.size(), hash);
    file.num_bytes += round_up(tensor.shape[0], kBlockColumns) * round_up(tensor.shape[1], 4);
  }
  char name[17];
  std::snprintf(name, sizeof name, "%016" PRIx64, hash);
  file.name = name;
  return file;
}

// Return a constant, which may lie anywhere in a mapped file, at an odd address. Throws, naming `what`, if it has NaN or
// infinity; one that `may_forbid` tokens may have minus infinity.
std::vector<float> floats_of(const char *what, const Tensor &tensor, bool may_forbid = false) {
  std::vector<float> values(tensor.size());
  if (!values.empty())
    std::memcpy(values.data(), tensor.data, values.size() * sizeof(float));
  auto is_wrong = [=](float value) { return !std::isfinite(value) && !(may_forbid && value < 0); };
  if (std::any_of(values.begin(), values.end(), is_wrong))
    throw std::invalid_argument(std::string(what) + " has values that are not finite");
  return values;
}

} // namespace

Model::Model(NodeInfo &node) : node_(node), compute_(selected_compute()), packed_(file_of(node)) {
  if (compute_ == nullptr)
    throw std::runtime_error("no instruction set of this CPU is supported");
  architecture_.num_layers = static_cast<int32_t>(node.integer("num_layers", 1, kMaxLayers));
  architecture_.num_heads = static_cast<int32_t>(node.integer("num_heads", 1, 1000));
  architecture_.head_size = static_cast<int32_t>(node.integer("head_size", 1, 10'000));
  architecture_.pre_norm = node.integer("pre_norm", 0, 1) != 0;
  architecture_.scalar_norm = node.integer("scalar_norm", 0, 1) != 0;
  architecture_.final_norm = node.integer("final_norm", 0, 1) != 0;
  architecture_.output_projection = node.integer("output_projection", 0, 1) != 0;
  architecture_.epsilon = static_cast<float>(node.number("epsilon", 0.0, 1e9));
  architecture_.scale = static_cast<float>(node.number("scale", 0.0, 1e9));
  architecture_.activation = activation_of(node.text("activation"));
  int64_t width = int64_t{architecture_.num_heads} * architecture_.head_size;
  if (width > kMaxWidth)
    throw std::invalid_argument("the model's width is " + std::to_string(width) + ", allowed is up to " +
                                std::to_string(kMaxWidth));
  architecture_.width = static_cast<int32_t>(width);
}

float *Model::floats(int64_t size) {
  floats_.emplace_back(size);
  return floats_.back().data();
}

const float *Model::kept(const std::vector<float> &values) {
  float *copy = floats(static_cast<int64_t>(values.size()));
  std::copy(values.begin(), values.end(), copy);
  return copy;
}

CacheShape Model::heads_of(const char *what, int64_t num_outputs, int count) const {
  int64_t all_heads = int64_t{count} * architecture_.num_heads, head_size = num_outputs / all_heads;
  if (num_outputs % all_heads || head_size < architecture_.head_size ||
      head_size > round_up(architecture_.head_size, kLanes))
    throw std::invalid_argument(std::string(what) + " are " + std::to_string(num_outputs) +
                                " wide, which does not fit " + std::to_string(architecture_.num_heads) + " heads of " +
                                std::to_string(architecture_.head_size));
  CacheShape shape{};
  shape.num_heads = architecture_.num_heads;
  shape.head_size = static_cast<int32_t>(head_size);
  shape.padded_head_size = static_cast<int32_t>(round_up(head_size, kLanes));
  return shape;
}

Embedding Model::read_embedding() {
  int64_t width = architecture_.width;
  Tensor tokens = node_.constant("the token embedding", ort::kInt8, {-1, width});
  Embedding embedding{};
  embedding.num_tokens = tokens.shape[0];
  embedding.tokens = static_cast<const int8_t *>(tokens.data);
  const char *scales = "the token embedding's scales";
  embedding.scales = kept(floats_of(scales, node_.constant(scales, ort::kFloat, {embedding.num_tokens, 1})));
  Tensor positions = node_.constant("the positions", ort::kFloat, {-1, width});
  embedding.num_positions = positions.shape[0];
  embedding.positions = kept(floats_of("the positions", positions));
  if (embedding.num_tokens < 1 || embedding.num_tokens > kMaxSize || embedding.num_positions < 1)
    throw std::invalid_argument("the embedding has no tokens or positions, or too many");
  return embedding;
}

Norm Model::read_norm() {
  int64_t width = architecture_.width, stored = architecture_.scalar_norm ? 1 : width;
  Norm norm{};
  norm.width = architecture_.width;
  norm.epsilon = architecture_.epsilon;
  norm.is_scalar = architecture_.scalar_norm;
  const float **targets[] = {&norm.gain, &norm.bias};
  const char *names[] = {"a norm's gain", "a norm's bias"};
  for (int part = 0; part < 2; part++) {
    std::vector<float> values = floats_of(names[part], node_.constant(names[part], ort::kFloat, {stored}));
    float *copy = floats(round_up(width, kLanes));
    for (int64_t index = 0; index < width; index++)
      copy[index] = values[stored == 1 ? 0 : index];
    *targets[part] = copy;
  }
  return norm;
}

Model::Part Model::read_part(const char *what, int64_t num_inputs, int64_t num_outputs, float *input_scale,
                             int32_t *zero_point) {
  Part part{};
  Tensor weights = node_.constant(what, ort::kInt8, {num_outputs, num_inputs});
  part.num_outputs = weights.shape[0];
  part.weights = static_cast<const int8_t *>(weights.data);
  if (weights.shape[1] < 1 || weights.shape[1] > kMaxInputs || part.num_outputs < 1 || part.num_outputs > kMaxSize)
    throw std::invalid_argument(std::string(what) + " has no inputs or outputs, or too many");
  auto floats = [&](const char *kind, const std::vector<int64_t> &dims, bool may_forbid = false) {
    std::string of_what = std::string(kind) + " of " + what;
    return floats_of(of_what.c_str(), node_.constant(of_what.c_str(), ort::kFloat, dims), may_forbid);
  };
  part.scales = floats("scales", {part.num_outputs});
  part.biases = floats("biases", {part.num_outputs}, true);
  float scale = floats("the input scale", {})[0];
  std::string zero_point_name = std::string("the zero point of ") + what;
  int32_t zero = *static_cast<const uint8_t *>(node_.constant(zero_point_name.c_str(), ort::kUint8, {}).data);
  if (!(scale >= 1e-30f && scale <= 1e30f))
    throw std::invalid_argument(std::string(what) + " has an input scale that is not positive");
  *input_scale = scale;
  *zero_point = zero;
  return part;
}

Dense Model::pack(const char *what, const std::vector<Part> &parts, int64_t num_inputs, float input_scale,
                  int32_t zero_point) {
  int64_t num_outputs = 0;
  for (const Part &part : parts)
    num_outputs += part.num_outputs;
  int64_t groups = round_up(num_inputs, 4) / 4, blocks = round_up(num_outputs, kBlockColumns) / kBlockColumns;
  std::vector<const int8_t *> rows; // each output's weights
  float *scales = floats(blocks * kBlockColumns), *biases = floats(blocks * kBlockColumns);
  for (const Part &part : parts)
    for (int64_t output = 0; output < part.num_outputs; output++) {
      const int8_t *row = part.weights + output * num_inputs;
      if (std::memchr(row, -128, static_cast<size_t>(num_inputs))) // products in pairs of 16 bits could overflow
        throw std::invalid_argument(std::string(what) + " has the weight -128, allowed is -127 to 127");
      size_t column = rows.size();
      rows.push_back(row);
      scales[column] = part.scales[output] * input_scale;
      if (!std::isfinite(scales[column]))
        throw std::invalid_argument(std::string(what) + " has scales that are too large");
      biases[column] = part.biases[output];
    }
  auto pack_block = [&](int64_t block, int8_t *to) {
    for (int64_t column = block * kBlockColumns; column < std::min((block + 1) * kBlockColumns, num_outputs); column++)
      for (int64_t input = 0; input < num_inputs; input += 4)
        std::memcpy(to + input / 4 * kGroupBytes + column % kBlockColumns * 4, rows[column] + input,
                    static_cast<size_t>(std::min<int64_t>(num_inputs - input, 4)));
  };
  const int8_t *packed = packed_.keep(blocks, groups * kGroupBytes, pack_block);
  Dense dense{};
  dense.num_inputs = static_cast<int32_t>(num_inputs);
  dense.num_outputs = static_cast<int32_t>(num_outputs);
  dense.num_groups = static_cast<int32_t>(groups);
  dense.num_blocks = static_cast<int32_t>(blocks);
  dense.weights = packed;
  dense.scales = scales;
  dense.biases = biases;
  dense.input_scale = input_scale;
  dense.zero_point = zero_point;
  integers_.emplace_back(blocks * kBlockColumns);
  orders_.emplace_back(order_size(blocks, groups));
  compute_->prepare(dense, integers_.back().data(), orders_.back().data());
  return dense;
}

Dense Model::read_dense(const char *what, int64_t num_inputs, int64_t num_outputs) {
  float scale = 0;
  int32_t zero = 0;
  Part part = read_part(what, num_inputs, num_outputs, &scale, &zero);
  return pack(what, {part}, num_inputs, scale, zero);
}

Dense Model::read_dense_side_by_side(const char *what, int64_t num_inputs, int count) {
  std::vector<Part> parts;
  float scale = 0;
  int32_t zero = 0;
  for (int index = 0; index < count; index++) {
    float own_scale = 0;
    int32_t own_zero = 0;
    parts.push_back(read_part(what, num_inputs, index == 0 ? -1 : parts[0].num_outputs, &own_scale, &own_zero));
    if (index > 0 && (own_scale != scale || own_zero != zero))
      throw std::invalid_argument(std::string(what) + " have one input, but it is quantized in several ways");
    scale = own_scale;
    zero = own_zero;
  }
  return pack(what, parts, num_inputs, scale, zero);
}

std::vector<int64_t> Model::read_ids(const char *what) {
  Tensor tensor = node_.constant(what, ort::kInt64, {-1});
  std::vector<int64_t> ids(tensor.size());
  if (!ids.empty())
    std::memcpy(ids.data(), tensor.data, ids.size() * sizeof(int64_t));
  return ids;
}

Dense Model::with_biases(const Dense &dense, const std::vector<int64_t> &ids, float bias) {
  Dense changed = dense;
  float *biases = floats(int64_t{dense.num_blocks} * kBlockColumns);
  for (int64_t column = 0; column < int64_t{dense.num_blocks} * kBlockColumns; column++)
    biases[column] = column < dense.num_outputs ? dense.biases[column] : -std::numeric_limits<float>::infinity();
  for (int64_t id : ids) {
    if (id < 0 || id >= dense.num_outputs)
      throw std::invalid_argument("the suppressed id " + std::to_string(id) + " is not in the vocabulary");
    biases[id] = bias;
  }
  changed.biases = biases;
  return changed;
}

} // namespace dragoman
