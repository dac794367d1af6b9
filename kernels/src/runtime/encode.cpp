#include "runtime/encode.h"

#include <algorithm>

#include "search/ranges.h"
#include "search/repeats.h"
#include "search/state.h"

namespace dragoman {

// Sources that are encoded together: those of a run, or some of them. Places of tokens count from the first one's.
struct Encode::Sources {
  const int64_t *token_ids;
  const int32_t *ends; // in the run's tokens
  const int32_t *slots;
  int32_t *is_finite, *most_repeats; // results
  int32_t *shortlists;               // of slots, if there are any; each has `shortlist_room` numbers
  int64_t shortlist_room;
  Bfloat16 *cross_cache;
  int64_t num_sources, num_tokens;
  int64_t cross_row, cross_layer; // numbers from one row or layer of the cache to the next
  int64_t first_token;            // in the run's tokens

  int64_t end(int64_t source) const { return ends[source] - first_token; }
  int64_t begin(int64_t source) const { return source == 0 ? 0 : end(source - 1); }
  int64_t length(int64_t source) const { return end(source) - begin(source); }

  Sources some(int64_t first, int64_t last) const {
    Sources part = *this;
    part.token_ids += begin(first);
    part.ends += first;
    part.slots += first;
    part.is_finite += first;
    part.most_repeats += first;
    part.num_sources = last - first;
    part.num_tokens = last > first ? begin(last - 1) + length(last - 1) - begin(first) : 0;
    part.first_token += begin(first);
    return part;
  }
};

namespace {

// Of sources that are encoded together, if they are not long: what is computed of these stays in a second-level cache.
constexpr int64_t kGroupTokens = 64;

constexpr int64_t kMaxTargets = 10'000'000; // export/architecture/config.py: MAX_SIZE

} // namespace

Encode::Encode(NodeInfo &node)
    : model_(pass_shortlists(node)), architecture_(model_.architecture()),
      compute_(model_.compute()), embedding_(model_.read_embedding()), shape_(model_.heads()),
      cross_shape_(model_.decoder_heads()) {
  const Architecture &own = architecture_;
  if (own.embedding_norm)
    embedding_norm_ = model_.read_norm();
  biases_ = model_.read_relative_biases(embedding_, true);
  for (int32_t index = 0; index < own.num_layers; index++) {
    Layer layer{};
    layer.attention_norm = model_.read_residual_norms();
    layer.projection = model_.read_dense("queries, keys and values", own.width, int64_t{3} * own.heads_width);
    layer.query_form = model_.read_head_form(shape_, embedding_.angles);
    layer.key_form = model_.read_head_form(shape_, embedding_.angles);
    if (own.output_projection)
      layer.output = model_.read_dense("attention's output", own.heads_width, own.width);
    layer.feed_forward_norm = model_.read_residual_norms(true);
    layers_.push_back(layer);
    feed_forwards_.emplace_back(model_);
  }
  if (own.final_norm)
    final_norm_ = model_.read_norm();
  int64_t num_decoder_layers = node.integer("num_decoder_layers", 1, 1000);
  int64_t cross_width = int64_t{cross_shape_.num_heads} * cross_shape_.head_size;
  for (int64_t index = 0; index < num_decoder_layers; index++) {
    cross_.push_back(model_.read_dense("keys and values of the source", own.width, 2 * cross_width));
    cross_forms_.push_back(model_.read_head_form(cross_shape_, nullptr));
  }
  if (node.flag("shortlists"))
    shortlists_.emplace(model_, node.integer("vocabulary_size", 1, kMaxTargets),
                        node.flag("one_vocabulary"));
  num_inputs_ = model_.num_read();
}

void Encode::run(const Context &context) {
  context.require_inputs(num_inputs_);
  Sources sources{};
  Tensor ids = context.input(0), ends = context.input(1), slots = context.input(2), cache = context.input(3);
  Tensor threads = context.input(4);
  sources.token_ids = ids.as<const int64_t>("token_ids", ort::kInt64, {-1});
  sources.ends = ends.as<const int32_t>("ends", ort::kInt32, {-1});
  sources.num_sources = ends.shape[0];
  sources.num_tokens = sources.num_sources ? sources.ends[sources.num_sources - 1] : 0;
  sources.slots = slots.as<const int32_t>("slots", ort::kInt32, {sources.num_sources});
  int32_t num_threads = *threads.as<const int32_t>("num_threads", ort::kInt32, {1});
  int64_t num_layers = static_cast<int64_t>(cross_.size());
  sources.cross_cache = cache.as<Bfloat16>("cross_cache", ort::kUint16,
                                        {-1, num_layers, -1, cross_shape_.num_heads, 2, cross_shape_.block_size() / 2});
  Tensor is_finite = context.output(0, {sources.num_sources}), most = context.output(1, {sources.num_sources});
  sources.is_finite = is_finite.as<int32_t>("is_finite", ort::kInt32, {-1});
  sources.most_repeats = most.as<int32_t>("most_repeats", ort::kInt32, {-1});
  Memory of_shortlists{};
  if (shortlists_) {
    Tensor shortlists = context.input(5);
    sources.shortlists = shortlists.as<int32_t>("shortlists", ort::kInt32, {cache.shape[0], -1});
    sources.shortlist_room = shortlists.shape[1];
    if (sources.shortlist_room < 1)
      throw std::invalid_argument("shortlists has no columns, allowed: 1 or more");
    of_shortlists = shortlists.memory("shortlists");
  }
  model_.require_apart({ids.memory("token_ids"), ends.memory("ends"), slots.memory("slots"),
                        cache.memory("cross_cache"), threads.memory("num_threads"), is_finite.memory("is_finite"),
                        most.memory("most_repeats"), of_shortlists});
  sources.cross_layer = cache.shape[2] * cross_shape_.num_heads * cross_shape_.block_size();
  sources.cross_row = num_layers * sources.cross_layer;
  for (int64_t source = 0; source < sources.num_sources; source++) {
    int64_t length = sources.length(source);
    expect_between("the length of a source", length, 1,
                   std::min(cache.shape[2] * kBlockTokens, embedding_.num_positions));
    expect_between("the slot of a source", sources.slots[source], 0, cache.shape[0] - 1);
  }
  expect_between("the total length of the sources", sources.num_tokens, 0, ids.shape[0]);
  for (int64_t place = 0; place < sources.num_tokens; place++)
    expect_between("a token id", sources.token_ids[place], 0, embedding_.num_tokens - 1);
  if (sources.num_sources == 0)
    return;
  Team &team = Team::of_this_thread();
  Team::Run of_threads(team, std::clamp<int>(num_threads, 1, kMaxThreads));
  // Sources do not need each other: if there are enough, each thread encodes some of them to the end. Many are encoded
  // some at a time, which takes less memory.
  int64_t num_groups =
      std::min<int64_t>(sources.num_sources, std::max<int64_t>(team.size(), sources.num_tokens / kGroupTokens));
  if (num_groups == 1)
    return encode_together(sources, Parallel(compute_, team));
  share_groups(compute_, team, num_groups, [&](int64_t group, const Parallel &by_one) {
    encode_together(group_of(sources, group, num_groups), by_one);
  });
}

// One of several groups of about as many tokens.
Encode::Sources Encode::group_of(const Sources &sources, int64_t group, int64_t num_groups) {
  auto first_of = [&](int64_t number) {
    int64_t source = 0;
    while (source < sources.num_sources && sources.begin(source) * num_groups < sources.num_tokens * number)
      source++;
    return source;
  };
  return sources.some(first_of(group), group + 1 == num_groups ? sources.num_sources : first_of(group + 1));
}

void Encode::encode_together(const Sources &sources, const Parallel &parallel) {
  if (sources.num_sources == 0)
    return;
  Pool<Workspace>::Lease lease(pool_);
  Workspace &work = *lease;
  encode(sources, parallel, work);
  int64_t width = architecture_.width, stride = round_up(width, kBlockColumns);
  for (int64_t source = 0; source < sources.num_sources; source++) {
    int64_t begin = sources.begin(source), length = sources.length(source);
    bool is_good = true;
    for (int64_t place = begin; place < begin + length; place++)
      is_good = is_good && compute_.is_finite(work.x.data() + place * stride, width);
    sources.is_finite[source] = is_good;
    sources.most_repeats[source] = most_repeats(sources.token_ids + begin, length);
    if (shortlists_)
      shortlists_->find(sources.token_ids + begin, length,
                        sources.shortlists + sources.slots[source] * sources.shortlist_room, sources.shortlist_room);
  }
  write_cross(sources, parallel, work);
}

void Encode::encode(const Sources &sources, const Parallel &parallel, Workspace &work) const {
  const Architecture &own = architecture_;
  int64_t count = sources.num_tokens, stride = round_up(own.width, kBlockColumns);
  float *x = work.x.at_least(count * stride);
  int64_t levels_stride = round_up(std::max(own.width, own.heads_width), kBlockColumns);
  Levels levels{work.levels.at_least(count * levels_stride), levels_stride, work.scales.at_least(count)};
  for (int64_t source = 0; source < sources.num_sources; source++)
    for (int64_t begin = sources.begin(source), place = begin; place < sources.end(source); place++) {
      int64_t id = sources.token_ids[place];
      compute_.embed(embedding_.tokens, id, embedding_.scales[id], embedding_.positions + (place - begin) * own.width,
                     own.width, x + place * stride);
    }
  if (own.embedding_norm)
    parallel.norm(embedding_norm_, x, stride, count, x, stride, {});
  float *sum = work.sum = own.sandwich_norm ? work.added.at_least(count * stride) : x;
  auto clear = [&] {
    if (own.sandwich_norm)
      std::fill_n(sum, count * stride, 0.0f);
  };
  for (int32_t index = 0; index < own.num_layers; index++) {
    const Layer &layer = layers_[index];
    if (own.pre_norm)
      parallel.norm(layer.attention_norm.own, x, stride, count, nullptr, 0, levels);
    else
      parallel.quantize(x, stride, count, own.width, kZero, levels);
    clear();
    attend(layer, biases_[index], sources, parallel, levels, work);
    if (own.sandwich_norm)
      parallel.add_norm(layer.attention_norm.output, sum, count, x, stride);
    if (own.pre_norm)
      parallel.norm(layer.feed_forward_norm.own, x, stride, count, nullptr, 0, levels);
    else
      parallel.norm(layer.attention_norm.own, x, stride, count, x, stride, levels);
    clear();
    feed_forwards_[index].add(parallel, levels, count, sum, stride, work.feed_forward);
    if (own.sandwich_norm)
      parallel.add_norm(layer.feed_forward_norm.output, sum, count, x, stride);
    if (!own.pre_norm)
      parallel.norm(layer.feed_forward_norm.own, x, stride, count, x, stride, {});
    if (own.block_norm)
      parallel.norm(layer.feed_forward_norm.block, x, stride, count, x, stride, {});
  }
  if (own.final_norm)
    parallel.norm(final_norm_, x, stride, count, x, stride, {});
}

void Encode::attend(const Layer &layer, const RelativeBias &bias, const Sources &sources, const Parallel &parallel,
                    const Levels &levels, Workspace &work) const {
  int64_t width = architecture_.heads_width, heads_stride = round_up(3 * width, kBlockColumns);
  float *projected = work.projected.at_least(sources.num_tokens * heads_stride);
  parallel.dense(layer.projection, levels, sources.num_tokens, Into::kSet, projected, heads_stride);
  int64_t num_blocks = 0, longest = 0;
  work.first_blocks.clear();
  work.source_of.clear();
  for (int64_t source = 0; source < sources.num_sources; source++) {
    int64_t length = sources.length(source);
    work.first_blocks.push_back(num_blocks);
    work.source_of.insert(work.source_of.end(), length, source);
    num_blocks += round_up(length, kBlockTokens) / kBlockTokens;
    longest = std::max(longest, length);
  }
  int64_t row_size = shape_.num_heads * shape_.block_size(), scratch_size = shape_.scratch_size(longest);
  Bfloat16 *keys_values = work.keys_values.at_least(num_blocks * row_size);
  float *scratches = work.scratches.at_least(most_shares(parallel.team()) * kMostQueries * scratch_size);
  auto own_of = [&](int64_t place) { return keys_values + work.first_blocks[work.source_of[place]] * row_size; };
  share_rows(parallel.team(), sources.num_tokens, 8 * width, [&](int64_t first, int64_t end, int64_t) {
    for (int64_t place = first; place < end; place++) {
      float *row = projected + place * heads_stride;
      int64_t position = place - sources.begin(work.source_of[place]);
      layer.query_form.apply(compute_, position, row);
      layer.key_form.apply(compute_, position, row + width);
      compute_.append(shape_, row + width, row + 2 * width, position, own_of(place));
    }
  });
  share_rows(parallel.team(), sources.num_tokens, 64 * width, [&](int64_t first, int64_t end, int64_t share) {
    float *scratch = scratches + share * kMostQueries * scratch_size;
    for (int64_t place = first, next; place < end; place = next) {
      int64_t source = work.source_of[place];
      next = std::min({end, place + kMostQueries, sources.end(source)});
      Queries queries{projected + place * heads_stride, heads_stride, next - place};
      compute_.attend(shape_, queries, architecture_.scale, bias.of(place - sources.begin(source)),
                      {own_of(place), sources.length(source), nullptr, 0, 0, 0}, scratch);
      if (architecture_.output_projection)
        compute_.quantize(queries.heads, heads_stride, queries.count, width, kZero, levels.from(place));
    }
  });
  int64_t stride = round_up(architecture_.width, kBlockColumns);
  if (architecture_.output_projection)
    parallel.dense(layer.output, levels, sources.num_tokens, Into::kAdd, work.sum, stride);
  else
    add_heads(projected, heads_stride, sources.num_tokens, width, work.sum, stride);
}

void Encode::write_cross(const Sources &sources, const Parallel &parallel, Workspace &work) const {
  int64_t width = architecture_.width, stride = round_up(width, kBlockColumns);
  int64_t heads_width = int64_t{cross_shape_.num_heads} * cross_shape_.head_size;
  // All layers read the same rows.
  Levels levels{work.levels.data(), stride, work.scales.data()};
  parallel.quantize(work.x.data(), stride, sources.num_tokens, width, kZero, levels);
  for (size_t layer = 0; layer < cross_.size(); layer++) {
    const Dense &cross = cross_[layer];
    int64_t cross_stride = round_up(cross.num_outputs, kBlockColumns);
    float *projected = work.projected.at_least(sources.num_tokens * cross_stride);
    parallel.dense(cross, levels, sources.num_tokens, Into::kSet, projected, cross_stride);
    for (int64_t source = 0; source < sources.num_sources; source++) {
      Bfloat16 *target = sources.cross_cache + sources.slots[source] * sources.cross_row +
                      static_cast<int64_t>(layer) * sources.cross_layer;
      for (int64_t begin = sources.begin(source), place = begin; place < sources.end(source); place++) {
        float *row = projected + place * cross_stride;
        cross_forms_[layer].apply(compute_, 0, row);
        compute_.append(cross_shape_, row, row + heads_width, place - begin, target);
      }
    }
  }
}

} // namespace dragoman
