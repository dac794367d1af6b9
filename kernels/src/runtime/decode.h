// The operator `Decode`: several steps of the decoder, with the choice of tokens.
#pragma once

#include <optional>
#include <vector>

#include "runtime/feed_forward.h"
#include "runtime/memory.h"
#include "runtime/model.h"
#include "runtime/parallel.h"
#include "runtime/projection.h"
#include "runtime/tensor.h"
#include "search/search.h"

namespace dragoman {

class Decode {
public:
  static constexpr const char *name = "Decode";
  static constexpr ort::ElementType inputs[] = {ort::kInt32, ort::kUint8, ort::kInt64, ort::kInt32,
                                                ort::kUint8, ort::kInt64, ort::kUint16, ort::kUint16, ort::kFloat};
  static constexpr ort::ElementType outputs[] = {ort::kInt32};

  explicit Decode(NodeInfo &node);
  void run(const Context &context);

private:
  struct Layer {
    ResidualNorms self_norm, cross_norm, feed_forward_norm;
    Dense projection; // queries, keys and values side by side; of a recurrent layer, candidates and gates
    Dense self_output;
    Dense cross_query, cross_output;
    HeadForm query_form, key_form, cross_form; // of self-attention, and of queries of the source
  };
  struct Workspace { // of rows that are computed together
    Array<float> x, added, projected, scales, scratches;
    float *sum; // what sublayers add to: x, or `added`, if that is normalized before
    Array<uint8_t> levels;
    FeedForward::Workspace feed_forward;
    Projection::Workspace projection;
    std::vector<Shortlist> shortlists; // of each row
  };
  struct Workspaces {
    std::vector<Workspace> of_groups;
    std::vector<Scores> scores; // of all live rows; they point into the groups' workspaces
  };
  // Live rows that are computed together: all, or some that lie side by side.
  struct Rows {
    const int32_t *indices; // of `State::rows`
    const Need *needs;
    Scores *scores; // results
    int64_t count;
  };
  struct Caches {
    Bfloat16 *self, *cross;
    float *states; // instead of `self`, if layers are recurrent: (slots, layers, 2, width rounded up to 16)
    int64_t self_row, self_layer, cross_row, cross_layer; // numbers from one row or layer to the next
    int64_t cross_tokens;                                 // that a row has room for
    int64_t num_rows;
    // Of each slot, how much each token that its rows read attends to each one of the source: (length, source_length),
    // in memory for (attention_positions, attention_sources); if the run `records` any.
    float *attention;
    int64_t attention_positions, attention_sources;
    bool records;
    const int32_t *shortlists; // of slots, if there are any: a number, and so many ids in `shortlist_room` - 1
    int64_t shortlist_room;
  };

  State bind(const Context &context, const Tensor &result, Caches &caches) const;
  void check_row(const State &state, const Caches &caches, int32_t index) const;
  void check_rows(const State &state, const Caches &caches, const std::vector<int32_t> &live) const;
  void step(const State &state, const Caches &caches, const Rows &live, Team &team, Workspaces &work) const;
  void step_together(const State &state, const Caches &caches, const Rows &live, const Parallel &parallel,
                     Workspace &work) const;
  void attend(const Layer &layer, int index, bool is_cross, const State &state, const Caches &caches, const Rows &live,
              const Parallel &parallel, const Levels &levels, Workspace &work) const;
  void recur(const Layer &layer, int index, const State &state, const Caches &caches, const Rows &live,
             const Parallel &parallel, const Levels &levels, Workspace &work) const;
  void record(const Row &row, const float *scratch, const Caches &caches) const;

  Model model_;
  Architecture architecture_;
  const Compute &compute_;
  bool has_shortlists_, is_recurrent_;
  Embedding embedding_;
  Norm embedding_norm_{};
  std::vector<RelativeBias> biases_; // of each layer's self-attention
  std::vector<Layer> layers_;
  std::vector<FeedForward> feed_forwards_; // of each layer
  Norm final_norm_{};
  std::optional<Projection> projection_; // always, once the node has been read
  int64_t recorded_layer_ = -1; // whose attention to the source may be recorded
  std::vector<int64_t> recorded_heads_;
  SearchModel search_model_{};
  CacheShape shape_{};
  size_t num_inputs_;
  Pool<Workspaces> pool_;
};

} // namespace dragoman
