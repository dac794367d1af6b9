// The arithmetic, shared among a team's threads. Every result is computed as by one thread.
#pragma once

#include <algorithm>
#include <atomic>
#include <new>

#include "compute/compute.h"
#include "runtime/team.h"

namespace dragoman {

constexpr int64_t kSmallestShare = 100'000; // products worth handing to another thread: about a microsecond
constexpr int64_t kShareRows = 48;          // rows that share a pass over a block of weights

// The blocks [first, last) of a dense layer as one of their own.
inline Dense blocks_of(const Dense &dense, int64_t first, int64_t last) {
  Dense part = dense;
  int64_t column = first * kBlockColumns;
  part.weights += first * dense.num_groups * kGroupBytes;
  part.offsets += column;
  if (part.order != nullptr)
    part.order += order_size(first, dense.num_groups);
  part.scales += column;
  part.biases += column;
  part.num_blocks = static_cast<int32_t>(last - first);
  part.num_outputs = static_cast<int32_t>(std::min<int64_t>(dense.num_outputs, last * kBlockColumns) - column);
  return part;
}

// Call body(part of the layer, first column, first row, end row) for all of a product's columns and rows.
template <typename Body>
void share_product(Team &team, const Dense &dense, int64_t num_rows, const Body &body) {
  int64_t products = int64_t{dense.num_inputs} * dense.num_outputs * num_rows;
  int64_t most = std::min<int64_t>(products / kSmallestShare, 2 * team.size());
  if (team.size() == 1 || most <= 1) {
    body(dense, int64_t{0}, int64_t{0}, num_rows);
    return;
  }
  // Columns first, as each block of weights is then read by one thread only; rows where there are many of them.
  int64_t by_columns = std::min<int64_t>(dense.num_blocks, most);
  int64_t by_rows = std::clamp<int64_t>(most / by_columns, 1, std::max<int64_t>(num_rows / kShareRows, 1));
  team.share(by_columns * by_rows, [&](int64_t chunk) {
    int64_t column = chunk / by_rows, row = chunk % by_rows;
    int64_t first = dense.num_blocks * column / by_columns, last = dense.num_blocks * (column + 1) / by_columns;
    body(blocks_of(dense, first, last), first * kBlockColumns, num_rows * row / by_rows,
         num_rows * (row + 1) / by_rows);
  });
}

// Call body(first, end, share) for ranges of `count` items, each of about `cost` floating-point operations; shares are
// numbered from 0 to below `most_shares`.
inline int64_t most_shares(const Team &team) { return 4 * int64_t{team.size()}; }
template <typename Body> void share_rows(Team &team, int64_t count, int64_t cost, const Body &body) {
  int64_t most = std::min(std::min(count, most_shares(team)), count * cost / kSmallestShare * 4);
  if (team.size() == 1 || most <= 1) {
    body(int64_t{0}, count, int64_t{0});
    return;
  }
  team.share(most, [&](int64_t share) { body(count * share / most, count * (share + 1) / most, share); });
}

// x += the heads of attention without an output layer, what a recurrence outputs, or what a norm makes of these.
inline void add_heads(const float *heads, int64_t heads_stride, int64_t num_rows, int64_t width, float *x,
                      int64_t x_stride) {
  for (int64_t row = 0; row < num_rows; row++)
    for (int64_t column = 0; column < width; column++)
      x[row * x_stride + column] += heads[row * heads_stride + column];
}

// `Compute`'s functions over many rows, on all threads of a run.
class Parallel {
public:
  Parallel(const Compute &compute, Team &team) : compute_(compute), team_(team) {}

  Team &team() const { return team_; }

  void quantize(const float *x, int64_t x_stride, int64_t num_rows, int64_t width, int32_t zero_point,
                const Levels &to) const {
    share_rows(team_, num_rows, width, [&](int64_t first, int64_t end, int64_t) {
      compute_.quantize(x + first * x_stride, x_stride, end - first, width, zero_point, to.from(first));
    });
  }

  void norm(const Norm &norm, const float *x, int64_t x_stride, int64_t num_rows, float *normed, int64_t normed_stride,
            const Levels &to) const {
    share_rows(team_, num_rows, 4 * norm.width, [&](int64_t first, int64_t end, int64_t) {
      compute_.norm(norm, x + first * x_stride, x_stride, end - first,
                    normed == nullptr ? nullptr : normed + first * normed_stride, normed_stride,
                    to.levels == nullptr ? to : to.from(first));
    });
  }

  // x += norm(added), which `added` then is.
  void add_norm(const Norm &norm, float *added, int64_t num_rows, float *x, int64_t stride) const {
    share_rows(team_, num_rows, 5 * norm.width, [&](int64_t first, int64_t end, int64_t) {
      float *own = added + first * stride;
      compute_.norm(norm, own, stride, end - first, own, stride, {});
      add_heads(own, stride, end - first, norm.width, x + first * stride, stride);
    });
  }

  void dense(const Dense &dense, const Levels &x, int64_t num_rows, Into into, float *y, int64_t y_stride) const {
    share_product(team_, dense, num_rows, [&](const Dense &part, int64_t column, int64_t first, int64_t end) {
      compute_.dense(part, x.from(first), end - first, into, y + first * y_stride + column, y_stride);
    });
  }

  void dense_activated(const Dense &dense, const Levels &x, int64_t num_rows, Activation activation, float *y,
                       int64_t y_stride) const {
    share_product(team_, dense, num_rows, [&](const Dense &part, int64_t column, int64_t first, int64_t end) {
      compute_.dense_activated(part, x.from(first), end - first, activation, y + first * y_stride + column, y_stride);
    });
  }

  // `best` and `best_values` have room for `num_rows` times `kMaxParts`; the results are the first `num_rows`.
  static constexpr int64_t kMaxParts = 64;
  void dense_arg_max(const Dense &dense, const Levels &x, int64_t num_rows, int32_t *best, float *best_values) const {
    int64_t num_parts = std::min<int64_t>({kMaxParts, dense.num_blocks, 4 * int64_t{team_.size()}});
    if (team_.size() == 1)
      num_parts = 1;
    team_.share(num_parts, [&](int64_t part) {
      int64_t first = dense.num_blocks * part / num_parts, last = dense.num_blocks * (part + 1) / num_parts;
      compute_.dense_arg_max(blocks_of(dense, first, last), x, num_rows, best + part * num_rows,
                             best_values + part * num_rows);
      for (int64_t row = part * num_rows; row < (part + 1) * num_rows; row++)
        best[row] += static_cast<int32_t>(first * kBlockColumns);
    });
    for (int64_t part = 1; part < num_parts; part++)
      for (int64_t row = 0; row < num_rows; row++)
        if (best_values[part * num_rows + row] > best_values[row]) { // among equals the lowest column
          best_values[row] = best_values[part * num_rows + row];
          best[row] = best[part * num_rows + row];
        }
  }

private:
  const Compute &compute_;
  Team &team_;
};

// Call body(group, `Parallel` of one thread) for every group in [0, num_groups): each group is computed to its end by
// one thread, which waits for no other and moves nothing to another CPU. Only memory can be lacking there: then it
// throws `std::bad_alloc`. (`kernels/zig` has no std::exception_ptr.)
template <typename Body>
void share_groups(const Compute &compute, Team &team, int64_t num_groups, const Body &body) {
  std::atomic<bool> has_memory{true};
  team.share(num_groups, [&](int64_t group) {
    try {
      Team alone;
      body(group, Parallel(compute, alone));
    } catch (...) {
      has_memory = false;
    }
  });
  if (!has_memory)
    throw std::bad_alloc();
}

} // namespace dragoman
