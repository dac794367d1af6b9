#include "runtime/decode.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "search/ranges.h"

namespace dragoman {

namespace {

// Rows for which a thread reads all weights by itself. With the base shape on two CPUs of a Zen 4, whose caches hold
// some of its 38 MB, steps of 32 rows took 0.86 to 1.01 of the time, the median 0.95 (docs/benchmarks.md).
constexpr int64_t kGroupRows = 16;

} // namespace

Decode::Decode(NodeInfo &node)
    : model_(pass_shortlists(node)), architecture_(model_.architecture()),
      compute_(model_.compute()), has_shortlists_(node.flag("shortlists")), is_recurrent_(node.flag("recurrent")),
      embedding_(model_.read_embedding()), shape_(model_.heads()) {
  const Architecture &own = architecture_;
  if (own.embedding_norm)
    embedding_norm_ = model_.read_norm();
  biases_ = model_.read_relative_biases(embedding_, false);
  for (int32_t index = 0; index < own.num_layers; index++) {
    Layer layer{};
    layer.self_norm = model_.read_residual_norms();
    layer.projection = is_recurrent_
                           ? model_.read_dense("candidates and gates", own.width, int64_t{2} * own.width)
                           : model_.read_dense("queries, keys and values", own.width, int64_t{3} * own.heads_width);
    if (!is_recurrent_) {
      layer.query_form = model_.read_head_form(shape_, embedding_.angles);
      layer.key_form = model_.read_head_form(shape_, embedding_.angles);
    }
    if (own.output_projection && !is_recurrent_)
      layer.self_output = model_.read_dense("self-attention's output", own.heads_width, own.width);
    layer.cross_norm = model_.read_residual_norms();
    layer.cross_query = model_.read_dense("queries of the source", own.width, own.heads_width);
    layer.cross_form = model_.read_head_form(shape_, nullptr);
    if (own.output_projection)
      layer.cross_output = model_.read_dense("cross-attention's output", own.heads_width, own.width);
    layer.feed_forward_norm = model_.read_residual_norms(true);
    layers_.push_back(layer);
    feed_forwards_.emplace_back(model_);
  }
  if (own.final_norm)
    final_norm_ = model_.read_norm();
  search_model_.renormalizes = node.integer("renormalizes", 0, 1) != 0;
  projection_.emplace(model_, search_model_.renormalizes, has_shortlists_);
  search_model_.vocabulary_size = projection_->vocabulary_size();
  // A token that is chosen is embedded in the next step.
  expect_between("the number of the projection's tokens", search_model_.vocabulary_size, 1, embedding_.num_tokens);
  recorded_layer_ = node.integer("recorded_layer", -1, own.num_layers - 1);
  recorded_heads_ = model_.read_ids("the recorded heads");
  for (int64_t head : recorded_heads_)
    expect_between("a recorded head", head, 0, own.num_heads - 1);
  search_model_.compute = &compute_;
  search_model_.num_readable = embedding_.num_tokens;
  num_inputs_ = model_.num_read();
}

State Decode::bind(const Context &context, const Tensor &result, Caches &caches) const {
  context.require_inputs(num_inputs_);
  State state{};
  Tensor control = context.input(0), rows = context.input(1), outputs = context.input(2), history = context.input(3);
  Tensor hypotheses = context.input(4), ids = context.input(5), self = context.input(6), cross = context.input(7);
  Tensor attention = context.input(8);
  state.control = reinterpret_cast<Control *>(control.as<int32_t>("control", ort::kInt32, {16}));
  state.rows = reinterpret_cast<Row *>(rows.as<uint8_t>("rows", ort::kUint8, {-1, sizeof(Row)}));
  rows.require_alignment("rows", alignof(Row));
  state.num_slots = rows.shape[0];
  state.output_ids = outputs.as<int64_t>("output_ids", ort::kInt64, {state.num_slots, -1});
  state.capacity = outputs.shape[1];
  state.history = history.as<int32_t>("history", ort::kInt32, {3 * state.num_slots, state.capacity});
  state.hypotheses = reinterpret_cast<Hypothesis *>(
      hypotheses.as<uint8_t>("hypotheses", ort::kUint8, {2 * state.num_slots, sizeof(Hypothesis)}));
  hypotheses.require_alignment("hypotheses", alignof(Hypothesis));
  state.hypothesis_ids = ids.as<int64_t>("hypothesis_ids", ort::kInt64, {2 * state.num_slots, state.capacity});
  int64_t blocks = round_up(state.capacity, kBlockTokens) / kBlockTokens;
  caches.num_rows = state.num_slots;
  if (is_recurrent_) {
    int64_t width = round_up(architecture_.width, kLanes);
    self.require("self_cache", ort::kUint16, {state.num_slots, architecture_.num_layers, 2, 2 * width});
    self.require_alignment("self_cache", alignof(float));
    caches.states = static_cast<float *>(self.data);
  } else {
    caches.self = self.as<Bfloat16>(
        "self_cache", ort::kUint16,
        {state.num_slots, architecture_.num_layers, blocks, shape_.num_heads, 2, shape_.block_size() / 2});
  }
  caches.cross = cross.as<Bfloat16>(
      "cross_cache", ort::kUint16,
      {state.num_slots, architecture_.num_layers, -1, shape_.num_heads, 2, shape_.block_size() / 2});
  caches.self_layer = blocks * shape_.num_heads * shape_.block_size();
  caches.self_row = architecture_.num_layers * caches.self_layer;
  caches.cross_layer = cross.shape[2] * shape_.num_heads * shape_.block_size();
  caches.cross_row = architecture_.num_layers * caches.cross_layer;
  caches.cross_tokens = cross.shape[2] * kBlockTokens;
  caches.attention = attention.as<float>("attention", ort::kFloat, {-1, -1, -1});
  caches.attention_positions = attention.shape[1];
  caches.attention_sources = attention.shape[2];
  caches.records = attention.size() > 0;
  if (caches.records)
    attention.require("attention", ort::kFloat, {state.num_slots, -1, -1});
  if (caches.records && (recorded_heads_.empty() || recorded_layer_ < 0))
    throw std::invalid_argument("attention has room, but no heads are to be recorded");
  Memory of_shortlists{};
  if (has_shortlists_) {
    Tensor shortlists = context.input(9);
    caches.shortlists = shortlists.as<const int32_t>("shortlists", ort::kInt32, {state.num_slots, -1});
    caches.shortlist_room = shortlists.shape[1];
    of_shortlists = shortlists.memory("shortlists");
  }
  model_.require_apart({control.memory("control"), rows.memory("rows"), outputs.memory("output_ids"),
                 history.memory("history"), hypotheses.memory("hypotheses"), ids.memory("hypothesis_ids"),
                 self.memory("self_cache"), cross.memory("cross_cache"), result.memory("num_steps"),
                 attention.memory("attention"), of_shortlists});
  return state;
}

// Check what is the decoder's own of a row that `Search` has checked, with its beam and its history.
void Decode::check_row(const State &state, const Caches &caches, int32_t index) const {
  const Row &row = state.rows[index];
  int64_t num_positions = embedding_.num_positions, num_sources = caches.cross_tokens;
  if (caches.records) {
    num_positions = std::min(num_positions, caches.attention_positions);
    num_sources = std::min(num_sources, caches.attention_sources);
  }
  expect_between("slot", row.slot, 0, caches.num_rows - 1);
  expect_between("source_slot", row.source_slot, 0, caches.num_rows - 1);
  expect_between("source_length", row.source_length, 1, num_sources);
  expect_between("limit", row.limit, 1, num_positions);
  if (caches.shortlists == nullptr)
    return;
  const int32_t *own = caches.shortlists + row.source_slot * caches.shortlist_room;
  expect_between("the room for its shortlist", caches.shortlist_room, 1, INT32_MAX);
  expect_between("the length of its shortlist", own[0], 0, caches.shortlist_room - 1);
  for (int32_t place = 1, low = 0; place <= own[0]; low = own[place++] + 1)
    expect_between("an id of its shortlist", own[place], low, search_model_.vocabulary_size - 1);
}

void Decode::check_rows(const State &state, const Caches &caches, const std::vector<int32_t> &live) const {
  for (int32_t index : live)
    try {
      check_row(state, caches, index);
    } catch (const std::invalid_argument &error) {
      throw std::invalid_argument("row " + std::to_string(index) + ": " + error.what());
    }
}

void Decode::run(const Context &context) {
  Caches caches{};
  Tensor num_steps = context.output(0, {1});
  auto *result = num_steps.as<int32_t>("num_steps", ort::kInt32, {1});
  State state = bind(context, num_steps, caches);
  Control &control = *state.control;
  SearchModel search_model = search_model_;
  search_model.eos_id = control.eos_id;
  search_model.decoder_start_id = control.decoder_start_id;
  control.num_steps = control.num_generated = control.num_row_steps = control.num_ended = 0;
  *result = 0;
  Search search(state, search_model);
  check_rows(state, caches, search.live());
  const int32_t num_live = static_cast<int32_t>(search.live().size());
  Pool<Workspaces>::Lease lease(pool_);
  Workspaces &work = *lease;
  work.scores.resize(num_live);
  Team &team = Team::of_this_thread();
  Team::Run of_threads(team, std::clamp<int>(control.num_threads, 1, kMaxThreads));
  while (control.num_steps < control.max_steps && !search.live().empty()) {
    Rows live{search.live().data(), search.needs().data(), work.scores.data(),
              static_cast<int64_t>(search.live().size())};
    control.num_row_steps += static_cast<int32_t>(live.count);
    step(state, caches, live, team, work);
    if (search.advance(work.scores.data()))
      control.num_ended = num_live - static_cast<int32_t>(search.live().size());
    control.num_steps++;
    bool has_room = control.returns_after > 0 && control.num_ended >= control.returns_after;
    int32_t interrupt = __atomic_load_n(&control.interrupt, __ATOMIC_RELAXED);
    bool is_early = interrupt == kForNewcomers && control.num_steps < control.least_steps;
    if (has_room || (interrupt != kNone && !is_early))
      break;
  }
  *result = control.num_steps;
}

// Rows do not need each other in a step. Few of them are computed by all threads together, each of which reads a part
// of the weights. With many, each thread computes some of them: so one may compute while another reads a cache, and one
// that the system has taken off its CPU is waited for at the end of the step, not of each of its phases.
void Decode::step(const State &state, const Caches &caches, const Rows &live, Team &team, Workspaces &work) const {
  int64_t num_groups = live.count >= kGroupRows * team.size() ? team.size() : 1;
  if (static_cast<int64_t>(work.of_groups.size()) < num_groups)
    work.of_groups.resize(num_groups);
  if (num_groups == 1)
    return step_together(state, caches, live, Parallel(compute_, team), work.of_groups[0]);
  share_groups(compute_, team, num_groups, [&](int64_t group, const Parallel &by_one) {
    int64_t first = live.count * group / num_groups, end = live.count * (group + 1) / num_groups;
    Rows own{live.indices + first, live.needs + first, live.scores + first, end - first};
    step_together(state, caches, own, by_one, work.of_groups[group]);
  });
}

void Decode::step_together(const State &state, const Caches &caches, const Rows &live, const Parallel &parallel,
                           Workspace &work) const {
  const Architecture &own = architecture_;
  int64_t count = live.count, stride = round_up(own.width, kBlockColumns);
  float *x = work.x.at_least(count * stride);
  int64_t levels_stride = round_up(std::max(own.width, own.heads_width), kBlockColumns);
  // The input of the next dense layer.
  Levels levels{work.levels.at_least(count * levels_stride), levels_stride, work.scales.at_least(count)};
  for (int64_t place = 0; place < count; place++) {
    const Row &row = state.rows[live.indices[place]];
    compute_.embed(embedding_.tokens, row.token_id, embedding_.scales[row.token_id],
                   embedding_.positions + int64_t{row.length} * own.width, own.width, x + place * stride);
  }
  float *sum = work.sum = own.sandwich_norm ? work.added.at_least(count * stride) : x;
  auto normalize = [&](const ResidualNorms &norms) {
    if (own.pre_norm)
      parallel.norm(norms.own, x, stride, count, nullptr, 0, levels);
    if (own.sandwich_norm)
      std::fill_n(sum, count * stride, 0.0f);
  };
  auto normalize_after = [&](const ResidualNorms &norms) {
    if (!own.pre_norm)
      parallel.norm(norms.own, x, stride, count, x, stride, levels);
    if (own.sandwich_norm)
      parallel.add_norm(norms.output, sum, count, x, stride);
    if (norms.block.gain != nullptr)
      parallel.norm(norms.block, x, stride, count, x, stride, levels);
  };
  if (own.embedding_norm)
    parallel.norm(embedding_norm_, x, stride, count, x, stride, {});
  if (!own.pre_norm)
    parallel.quantize(x, stride, count, own.width, kZero, levels);
  for (int32_t index = 0; index < own.num_layers; index++) {
    const Layer &layer = layers_[index];
    normalize(layer.self_norm);
    if (is_recurrent_)
      recur(layer, index, state, caches, live, parallel, levels, work);
    else
      attend(layer, index, false, state, caches, live, parallel, levels, work);
    normalize_after(layer.self_norm);
    normalize(layer.cross_norm);
    attend(layer, index, true, state, caches, live, parallel, levels, work);
    normalize_after(layer.cross_norm);
    normalize(layer.feed_forward_norm);
    feed_forwards_[index].add(parallel, levels, count, sum, stride, work.feed_forward);
    normalize_after(layer.feed_forward_norm);
  }
  if (own.final_norm)
    parallel.norm(final_norm_, x, stride, count, x, stride, levels);
  else if (own.pre_norm)
    parallel.quantize(x, stride, count, own.width, kZero, levels);
  for (int64_t place = 0; place < count; place++) {
    live.scores[place] = Scores{};
    live.scores[place].is_broken = !compute_.is_finite(x + place * stride, own.width);
  }
  if (has_shortlists_) {
    work.shortlists.resize(count);
    for (int64_t place = 0; place < count; place++) {
      const Row &row = state.rows[live.indices[place]];
      const int32_t *own = caches.shortlists + row.source_slot * caches.shortlist_room;
      bool is_forced = row.length < row.forced_length; // by which token, no list says
      work.shortlists[place] = {own + 1, is_forced ? 0 : own[0]};
    }
  }
  projection_->score(parallel, levels, live.needs, has_shortlists_ ? work.shortlists.data() : nullptr, count,
                     live.scores, work.projection);
}

void Decode::attend(const Layer &layer, int index, bool is_cross, const State &state, const Caches &caches,
                    const Rows &live, const Parallel &parallel, const Levels &levels, Workspace &work) const {
  const Architecture &own = architecture_;
  int64_t count = live.count, width = own.heads_width, stride = round_up(own.width, kBlockColumns);
  const Dense &projection = is_cross ? layer.cross_query : layer.projection;
  const Dense &output = is_cross ? layer.cross_output : layer.self_output;
  int64_t heads_stride = round_up(projection.num_outputs, kBlockColumns);
  float *projected = work.projected.at_least(count * heads_stride);
  parallel.dense(projection, levels, count, Into::kSet, projected, heads_stride);
  int64_t longest = std::max(state.capacity, caches.cross_tokens);
  int64_t scratch_size = shape_.scratch_size(longest);
  float *scratches = work.scratches.at_least(most_shares(parallel.team()) * kMostQueries * scratch_size);
  auto row_at = [&](int64_t place) -> const Row & { return state.rows[live.indices[place]]; };
  auto attend_to_source = [&](int64_t place, const Queries &queries, float *scratch) {
    const Row &row = row_at(place), &next = row_at(std::min(place + queries.count, count - 1));
    for (int64_t query = 0; query < queries.count; query++)
      layer.cross_form.apply(compute_, 0, queries.heads + query * queries.stride);
    const Bfloat16 *source = caches.cross + row.source_slot * caches.cross_row + index * caches.cross_layer;
    int64_t ahead = (next.source_slot - row.source_slot) * caches.cross_row;
    compute_.attend(shape_, queries, own.scale, {}, {source, row.source_length, nullptr, 0, 0, ahead}, scratch);
    if (index == recorded_layer_ && caches.records)
      for (int64_t query = 0; query < queries.count; query++)
        if (row_at(place + query).flags & kWantsAttention)
          record(row_at(place + query), scratch + query * shape_.scratch_size(row.source_length), caches);
  };
  auto attend_to_own = [&](int64_t place, const Queries &queries, float *scratch) {
    const Row &row = row_at(place), &next = row_at(std::min(place + 1, count - 1));
    Bfloat16 *first = caches.self + index * caches.self_layer;
    for (int64_t query = 0; query < queries.count; query++) {
      float *heads = queries.heads + query * queries.stride;
      layer.query_form.apply(compute_, row.length, heads);
      layer.key_form.apply(compute_, row.length, heads + width);
      compute_.append(shape_, heads + width, heads + 2 * width, row.length,
                      first + row_at(place + query).slot * caches.self_row);
    }
    CachedTokens tokens{first, row.length + 1, nullptr, 0, caches.self_row, 0};
    if (row.width > 1) {
      tokens.history = state.history + live.indices[place] * state.capacity;
      tokens.history_stride = state.capacity;
    } else {
      tokens.layer += row.slot * caches.self_row;
      tokens.ahead = (next.slot - row.slot) * caches.self_row;
    }
    ScoreBias bias = biases_[index].of(row.length);
    bias.step = 0; // the same position
    compute_.attend(shape_, queries, own.scale, bias, tokens, scratch);
  };
  // Rows of one beam that lie side by side.
  auto num_together = [&](int64_t place, int64_t end) {
    const Row &row = row_at(place);
    int64_t together = 1;
    for (; row.width > 1 && together < kMostQueries && place + together < end; together++) {
      const Row &other = row_at(place + together);
      if (live.indices[place + together] != live.indices[place] + together || other.source_slot != row.source_slot ||
          other.source_length != row.source_length || other.length != row.length || other.width != row.width)
        break;
    }
    return together;
  };
  share_rows(parallel.team(), count, 64 * width, [&](int64_t begin, int64_t end, int64_t share) {
    float *scratch = scratches + share * kMostQueries * scratch_size;
    for (int64_t place = begin, together; place < end; place += together) {
      together = num_together(place, end);
      Queries queries{projected + place * heads_stride, heads_stride, together};
      if (is_cross)
        attend_to_source(place, queries, scratch);
      else
        attend_to_own(place, queries, scratch);
      if (own.output_projection)
        compute_.quantize(queries.heads, heads_stride, together, width, kZero, levels.from(place));
    }
  });
  if (own.output_projection)
    parallel.dense(output, levels, count, Into::kAdd, work.sum, stride);
  else
    add_heads(projected, heads_stride, count, width, work.sum, stride);
}

// A row has two states of a layer, by the parity of its steps: one that another row's step may still read is not the one
// that a step writes.
void Decode::recur(const Layer &layer, int index, const State &state, const Caches &caches, const Rows &live,
                   const Parallel &parallel, const Levels &levels, Workspace &work) const {
  int64_t count = live.count, width = architecture_.width, stride = round_up(2 * width, kBlockColumns);
  int64_t padded = round_up(width, kLanes);
  float *projected = work.projected.at_least(count * stride);
  parallel.dense(layer.projection, levels, count, Into::kSet, projected, stride);
  auto state_of = [&](int64_t slot, int64_t position) {
    return caches.states + ((slot * architecture_.num_layers + index) * 2 + position % 2) * padded;
  };
  share_rows(parallel.team(), count, 16 * width, [&](int64_t begin, int64_t end, int64_t) {
    for (int64_t place = begin; place < end; place++) {
      const Row &row = state.rows[live.indices[place]];
      const float *before = nullptr;
      if (row.length > 0) {
        int64_t last = row.length - 1;
        before = state_of(row.width > 1 ? state.history[live.indices[place] * state.capacity + last] : row.slot, last);
      }
      compute_.recur(projected + place * stride, before, width, state_of(row.slot, row.length));
    }
  });
  add_heads(projected, stride, count, width, work.sum, round_up(width, kBlockColumns));
}

// Keep the mean of the recorded heads' probabilities, which a row's attention to its source has left in `scratch`.
void Decode::record(const Row &row, const float *scratch, const Caches &caches) const {
  float *to = caches.attention + row.slot * caches.attention_positions * caches.attention_sources +
              int64_t{row.length} * row.source_length;
  std::fill(to, to + row.source_length, 0.0f);
  for (int64_t head : recorded_heads_) {
    const float *weights = scratch + shape_.weights_begin(head, row.source_length);
    float factor = 1.0f / (scratch[head] * static_cast<float>(recorded_heads_.size()));
    for (int64_t place = 0; place < row.source_length; place++)
      to[place] += weights[place] * factor;
  }
}

} // namespace dragoman
