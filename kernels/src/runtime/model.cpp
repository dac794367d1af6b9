#include "runtime/model.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "runtime/selection.h"
#include "search/ranges.h"

namespace dragoman {

namespace {

constexpr int64_t kMaxSize = 10'000'000; // export/architecture/config.py: MAX_SIZE
constexpr int64_t kMaxLayers = 1000;
constexpr int64_t kMaxWidth = kMaxInputs;

Activation activation_of(const std::string &name) {
  if (name == "relu")
    return Activation::kRelu;
  if (name == "gelu")
    return Activation::kGelu;
  if (name == "silu")
    return Activation::kSilu;
  if (name == "gelu_tanh")
    return Activation::kGeluTanh;
  if (name == "identity")
    return Activation::kIdentity;
  throw std::invalid_argument("attribute activation is '" + name +
                              "', allowed: relu, gelu, gelu_tanh, silu, identity");
}

// Return a constant, which may lie anywhere in a mapped file, at an odd address. Throws, naming `what`, if it has NaN or
// infinity; one that `may_forbid` tokens may have minus infinity.
std::vector<float> floats_of(const char *what, const Tensor &tensor, bool may_forbid = false) {
  std::vector<float> values(tensor.size());
  if (!values.empty())
    std::memcpy(values.data(), tensor.data, values.size() * sizeof(float));
  auto is_wrong = [=](float value) { return !std::isfinite(value) && !(may_forbid && value < 0); };
  if (std::any_of(values.begin(), values.end(), is_wrong))
    throw std::invalid_argument(std::string(what) + " contains NaN or infinity");
  return values;
}

} // namespace

Model::Model(NodeInfo &node) : node_(node), compute_(selected_compute()) {
  if (compute_ == nullptr)
    throw std::runtime_error("no instruction set of this CPU is supported");
  architecture_.num_layers = static_cast<int32_t>(node.integer("num_layers", 1, kMaxLayers));
  architecture_.num_heads = static_cast<int32_t>(node.integer("num_heads", 1, 1000));
  architecture_.head_size = static_cast<int32_t>(node.integer("head_size", 1, 10'000));
  architecture_.pre_norm = node.integer("pre_norm", 0, 1) != 0;
  bool is_scalar = node.integer("scalar_norm", 0, 1) != 0, is_rms = node.flag("rms_norm");
  if (is_scalar && is_rms)
    throw std::invalid_argument("attributes scalar_norm and rms_norm are both 1, allowed: at most one of them");
  architecture_.norm_kind = is_scalar ? NormKind::kScalar : is_rms ? NormKind::kRms : NormKind::kVector;
  architecture_.sandwich_norm = node.flag("sandwich_norm");
  architecture_.block_norm = node.flag("block_norm");
  if (architecture_.sandwich_norm && !architecture_.pre_norm)
    throw std::invalid_argument("attribute sandwich_norm is 1, which requires pre_norm 1");
  architecture_.embedding_norm = node.flag("embedding_norm");
  architecture_.final_norm = node.integer("final_norm", 0, 1) != 0;
  architecture_.output_projection = node.integer("output_projection", 0, 1) != 0;
  architecture_.gated = node.flag("gated");
  architecture_.rotary_size = static_cast<int32_t>(node.integer_or_zero("rotary_size", architecture_.head_size));
  if (architecture_.rotary_size % 2 != 0)
    throw std::invalid_argument("attribute rotary_size is " + std::to_string(architecture_.rotary_size) +
                                ", allowed: even numbers");
  architecture_.qk_norm = static_cast<int32_t>(node.integer_or_zero("qk_norm", 2));
  architecture_.epsilon = static_cast<float>(node.number("epsilon", 0.0, 1e9));
  architecture_.scale = static_cast<float>(node.number("scale", 0.0, 1e9));
  architecture_.activation = activation_of(node.text("activation"));
  int64_t heads_width = int64_t{architecture_.num_heads} * architecture_.head_size;
  expect_between("num_heads * head_size", heads_width, 1, kMaxWidth);
  int64_t width = node.integer_or_zero("width", kMaxWidth);
  architecture_.heads_width = static_cast<int32_t>(heads_width);
  architecture_.width = static_cast<int32_t>(width == 0 ? heads_width : width);
  if (architecture_.width != heads_width && !architecture_.output_projection)
    throw std::invalid_argument("attribute width is " + std::to_string(width) + " and num_heads * head_size is " +
                                std::to_string(heads_width) + ", which requires output_projection 1");
}

float *Model::floats(int64_t size) {
  floats_.emplace_back(size);
  return floats_.back().data();
}

std::vector<float> Model::read_floats(const std::string &what, const std::vector<int64_t> &dims, bool may_forbid) {
  return floats_of(what.c_str(), node_.constant(what.c_str(), ort::kFloat, dims), may_forbid);
}

// Return a copy of the values, with zeros up to `size`.
const float *Model::kept(const std::vector<float> &values, int64_t size) {
  float *copy = floats(size);
  std::copy(values.begin(), values.end(), copy);
  return copy;
}

CacheShape Model::heads() const {
  CacheShape shape{};
  shape.num_heads = architecture_.num_heads;
  shape.head_size = architecture_.head_size;
  shape.padded_head_size = static_cast<int32_t>(round_up(architecture_.head_size, kLanes));
  return shape;
}

CacheShape Model::decoder_heads() const {
  int64_t num_heads = node_.integer_or_zero("decoder_num_heads", 1000);
  int64_t head_size = node_.integer_or_zero("decoder_head_size", 10'000), width = num_heads * head_size;
  if (num_heads == 0 && head_size == 0)
    return heads();
  expect_between("decoder_num_heads * decoder_head_size", width, 1, kMaxWidth);
  return {static_cast<int32_t>(num_heads), static_cast<int32_t>(head_size),
          static_cast<int32_t>(round_up(head_size, kLanes))};
}

// Bytes of a packed table.
static int64_t num_packed(int64_t num_outputs, int64_t num_inputs) {
  return round_up(num_outputs, kBlockColumns) * round_up(num_inputs, 4);
}

// Return a packed table (blocks, groups, 64, 4) in its place.
const int8_t *Model::read_packed(const char *what, int64_t num_outputs, int64_t num_inputs) {
  if (num_outputs < 1 || num_outputs > kMaxSize || num_inputs < 1 || num_inputs > kMaxInputs)
    throw std::invalid_argument(std::string(what) + " has " + std::to_string(num_inputs) + " x " +
                                std::to_string(num_outputs) + " weights, allowed: up to " + std::to_string(kMaxInputs) +
                                " x " + std::to_string(kMaxSize));
  Tensor packed = node_.constant(what, ort::kInt8, {round_up(num_outputs, kBlockColumns) / kBlockColumns,
                                                    round_up(num_inputs, 4) / 4, kBlockColumns, 4});
  packed.require_alignment(what, kAlignment);
  in_place_.push_back(packed.memory("a table of weights"));
  return static_cast<const int8_t *>(packed.data);
}

Embedding Model::read_embedding() {
  const char *what = "the token embedding";
  int64_t width = architecture_.width;
  std::vector<float> scales = read_floats("the token embedding's scales", {-1});
  Embedding embedding{};
  embedding.num_tokens = static_cast<int64_t>(scales.size());
  embedding.scales = kept(scales, embedding.num_tokens);
  embedding.tokens = read_packed(what, embedding.num_tokens, width);
  Tensor positions = node_.constant("the positions", ort::kFloat, {-1, width});
  embedding.num_positions = positions.shape[0];
  embedding.positions = kept(floats_of("the positions", positions), positions.size());
  if (embedding.num_positions < 1)
    throw std::invalid_argument("the embedding has no positions");
  if (int64_t size = architecture_.rotary_size; size > 0)
    embedding.angles = kept(read_floats("the angles", {embedding.num_positions, size}), embedding.num_positions * size);
  return embedding;
}

Norm Model::read_norm() { return read_norm(architecture_.norm_kind, architecture_.width); }

HeadForm Model::read_head_form(const CacheShape &shape, const float *angles) {
  HeadForm form{};
  form.norm.width = shape.head_size;
  if (architecture_.qk_norm != 0)
    form.norm = read_norm(architecture_.qk_norm == 1 ? NormKind::kRms : NormKind::kVector, shape.head_size);
  form.angles = angles;
  form.rotary_size = architecture_.rotary_size;
  form.num_heads = shape.num_heads;
  return form;
}

Norm Model::read_norm(NormKind kind, int32_t width) {
  int64_t stored = kind == NormKind::kScalar ? 1 : width;
  Norm norm{};
  norm.width = width;
  norm.epsilon = architecture_.epsilon;
  norm.kind = kind;
  const float **targets[] = {&norm.gain, &norm.bias};
  const char *names[] = {"a norm's gain", "a norm's bias"};
  for (int part = 0; part < 2; part++) {
    float *copy = floats(round_up(width, kLanes));
    *targets[part] = copy;
    if (part == 1 && norm.kind == NormKind::kRms) // it has no bias
      continue;
    std::vector<float> values = read_floats(names[part], {stored});
    for (int64_t index = 0; index < width; index++)
      copy[index] = values[stored == 1 ? 0 : index];
  }
  return norm;
}

ResidualNorms Model::read_residual_norms(bool ends_layer) {
  ResidualNorms norms{};
  norms.own = read_norm();
  if (architecture_.sandwich_norm)
    norms.output = read_norm();
  if (architecture_.block_norm && ends_layer)
    norms.block = read_norm();
  return norms;
}

std::vector<RelativeBias> Model::read_relative_biases(const Embedding &embedding, bool both_ways) {
  int64_t num_tables = node_.integer_or_zero("relative_biases", architecture_.num_layers);
  if (num_tables > 1 && num_tables < architecture_.num_layers)
    throw std::invalid_argument("attribute relative_biases is " + std::to_string(num_tables) +
                                ", allowed: 0, 1 or num_layers, which is " + std::to_string(architecture_.num_layers));
  int64_t num_places = embedding.num_positions + (both_ways ? embedding.num_positions - 1 : 0);
  std::vector<RelativeBias> biases;
  for (int64_t table = 0; table < num_tables; table++) {
    std::vector<float> values = read_floats("relative biases", {architecture_.num_heads, num_places});
    const float *copy = kept(values, static_cast<int64_t>(values.size()) + kBlockTokens);
    biases.emplace_back(copy, num_places, embedding.num_positions);
  }
  biases.resize(architecture_.num_layers, num_tables == 1 ? biases[0] : RelativeBias());
  return biases;
}

Dense Model::read_dense(const char *what, int64_t num_inputs, int64_t num_outputs, int32_t zero_point) {
  std::vector<float> scales = read_floats(std::string("scales of ") + what, {num_outputs});
  num_outputs = static_cast<int64_t>(scales.size());
  Dense dense{};
  dense.weights = read_packed(what, num_outputs, num_inputs);
  // Products in pairs of 16 bits could overflow. (An embedding is not multiplied; nor need its pages be read from disk.)
  if (std::memchr(dense.weights, -128, static_cast<size_t>(num_packed(num_outputs, num_inputs))))
    throw std::invalid_argument(std::string(what) + " has the weight -128, allowed: -127 to 127");
  dense.num_inputs = static_cast<int32_t>(num_inputs);
  dense.num_outputs = static_cast<int32_t>(num_outputs);
  dense.num_groups = static_cast<int32_t>(round_up(num_inputs, 4) / 4);
  dense.num_blocks = static_cast<int32_t>(round_up(num_outputs, kBlockColumns) / kBlockColumns);
  int64_t num_columns = int64_t{dense.num_blocks} * kBlockColumns;
  dense.scales = kept(scales, num_columns);
  dense.biases = kept(read_floats(std::string("biases of ") + what, {num_outputs}, true), num_columns);
  dense.zero_point = zero_point;
  integers_.emplace_back(num_columns);
  orders_.emplace_back(order_size(dense.num_blocks, dense.num_groups));
  compute_->prepare(dense, integers_.back().data(), orders_.back().data());
  return dense;
}

void Model::require_apart(std::initializer_list<Memory> all) const {
  dragoman::require_apart(all);
  for (const Memory &one : all)
    for (const Memory &constant : in_place_)
      dragoman::require_apart({one, constant});
}

// They may lie at an odd address.
std::vector<int64_t> Model::read_ids(const char *what) {
  Tensor tensor = node_.constant(what, ort::kInt64, {-1});
  std::vector<int64_t> ids(tensor.size());
  if (!ids.empty())
    std::memcpy(ids.data(), tensor.data, ids.size() * sizeof(int64_t));
  return ids;
}

StoredIds Model::read_stored_ids(const char *what) {
  Tensor tensor = node_.constant(what, ort::kInt32, {-1});
  in_place_.push_back(tensor.memory("a table of ids"));
  return StoredIds(tensor);
}

Columns Model::columns_of(const Dense &dense) {
  Columns columns{};
  columns.stride = round_up(dense.num_inputs, 64);
  columns_.emplace_back(dense.num_outputs * columns.stride);
  integers_.emplace_back(dense.num_outputs);
  int8_t *weights = columns_.back().data();
  int32_t *sums = integers_.back().data();
  for (int64_t column = 0; column < dense.num_outputs; column++) {
    const int8_t *from = dense.weights + column / kBlockColumns * dense.num_groups * kGroupBytes +
                         column % kBlockColumns * 4;
    int8_t *to = weights + column * columns.stride;
    for (int64_t group = 0; group < dense.num_groups; group++)
      std::memcpy(to + 4 * group, from + group * kGroupBytes, 4);
    for (int64_t place = 0; place < dense.num_inputs; place++)
      sums[column] += to[place];
  }
  columns.weights = weights;
  columns.sums = sums;
  return columns;
}

Dense Model::with_biases(const Dense &dense, const std::vector<int64_t> &ids, float bias) {
  Dense changed = dense;
  float *biases = floats(int64_t{dense.num_blocks} * kBlockColumns);
  for (int64_t column = 0; column < int64_t{dense.num_blocks} * kBlockColumns; column++)
    biases[column] = column < dense.num_outputs ? dense.biases[column] : -std::numeric_limits<float>::infinity();
  for (int64_t id : ids) {
    expect_between("a suppressed id", id, 0, dense.num_outputs - 1);
    biases[id] = bias;
  }
  changed.biases = biases;
  return changed;
}

} // namespace dragoman
