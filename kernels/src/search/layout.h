// Written by `python -m kernels.layout` from service/bundle/search_layout.py: change that.
#pragma once

#include <cstdint>

namespace dragoman {

constexpr int kMaxBeam = 8;
constexpr int kMaxCandidates = 64;
constexpr int kMaxPeriod = 16;
constexpr int kMaxThreads = 64;
constexpr int kUnguarded = 67108864; // of max_repeats: no limit

// Whether a row goes on, or how it has ended.
enum Status : int32_t {
  kRunning = 0,
  kStopped = 1,
  kAtLimit = 2,
  kRepeating = 3,
  kBroken = 4,
};

// Options that are set or not.
enum Flags : int32_t {
  kWantsScore = 1,
  kForcesEnd = 2,
  kStopsEarly = 4,
  kWantsAttention = 8,
  kNarrows = 16,
};

// Why other threads end a run early.
enum Interrupt : int32_t {
  kNone = 0,
  kNow = 1,
  kForNewcomers = 2,
};

// One row: one hypothesis of a running sequence. A beam of k has k rows, in the order of their ranks, best first.
struct Row {
  int64_t token_id; // the input of the next step
  uint64_t seed;
  int32_t length; // tokens in the self-attention cache, as many as in the output, forced ones included
  int32_t source_length;
  int32_t forced_length; // output_ids[0 .. forced_length) are forced
  int32_t limit; // the length at which the output is cut
  int32_t slot; // the row of a fused graph's self-attention cache that holds its own tokens
  int32_t source_slot; // the row of a fused graph's cross-attention cache
  int32_t max_repeats; // kUnguarded: no limit
  float log_prob; // summed over the tokens that the model chose
  int32_t width; // of the beam; 1: greedy search or sampling
  int32_t rank; // in the beam; 0: the leader, whose fields below count for the beam
  int32_t beam_rows[kMaxBeam]; // rows of the beam by rank; of the leader
  int32_t caller_prefix; // forced tokens that scores leave out
  int32_t model_prefix; // forced tokens before those
  float length_penalty; // an option
  float temperature; // an option
  int32_t top_k; // an option
  float top_p; // an option
  float repetition_penalty; // an option
  int32_t no_repeat_ngram_size; // an option
  int32_t min_output_tokens; // an option
  int32_t flags;
  int32_t status;
  int32_t excess;
  int32_t num_finished; // hypotheses of the beam; of the leader
  int32_t num_given_up;
  int32_t runs[kMaxPeriod]; // how many of the last tokens equal the one p + 1 positions before
};
static_assert(sizeof(Row) == 208);

// A finished hypothesis of a beam. Those of the beam with rows r[0], r[1], ... are, best first, at r[0], r[1], ..., and
// those it gave up, because they repeat themselves, at num_slots + r[0], num_slots + r[1], ...
struct Hypothesis {
  float score; // normalized by length
  int32_t length;
  int32_t excess; // tokens at its end that repeat once too often
  int32_t reserved;
};
static_assert(sizeof(Hypothesis) == 16);

// What a run is told and what it tells, all int32.
struct Control {
  int32_t num_rows; // rows [0, num_rows) take part
  int32_t max_steps;
  int32_t returns_after; // rows that end before the run returns; 0: it goes on without them
  int32_t interrupt; // polled between steps: other threads set it to an Interrupt
  int32_t eos_id;
  int32_t decoder_start_id;
  int32_t num_steps; // out: steps that were made
  int32_t num_generated; // out: tokens chosen, one per sequence and step, without forced ones
  int32_t num_threads; // that the run may use, the caller's included
  int32_t num_row_steps; // out: the rows of every step
  int32_t num_ended; // out: rows that ended
  int32_t least_steps; // that an interrupt for newcomers leaves the run
  int32_t reserved[4];
};
static_assert(sizeof(Control) == 64);

// What the next step of a plain graph needs, all int32.
struct Step {
  int32_t num_candidates; // the most that a row wants
  int32_t log_probs; // whether a row wants that of its best token,
  int32_t logits; // all logits,
  int32_t log_totals; // or their log-sum-exp
  int32_t total_length; // the most tokens in a row's cache after the step
  int32_t longest_source;
  int32_t is_over; // there is none: the run ends
  int32_t num_copies; // caches to copy before the step, even if the run ends
};
static_assert(sizeof(Step) == 32);

// The options of a row, with the least and the largest that is allowed.
#define DRAGOMAN_OPTIONS(X) \
  X(length_penalty, -10.0f, 10.0f) \
  X(temperature, 0.0f, 10.0f) \
  X(top_k, 1, 64) \
  X(top_p, 0.0f, 1.0f) \
  X(repetition_penalty, 0.0f, 10.0f) \
  X(no_repeat_ngram_size, 0, 100) \
  X(min_output_tokens, 0, INT32_MAX)

} // namespace dragoman
