#include "search/checks.h"

#include <algorithm>
#include <stdexcept>
#include <string>
#include <vector>

#include "search/processors.h"
#include "search/ranges.h"
#include "search/repeats.h"

namespace dragoman {
namespace {

[[noreturn]] void reject(const std::string &what) { throw std::invalid_argument(what); }

void check_own_fields(const State &state, const Row &row) {
  expect_between("limit", row.limit, 1, state.capacity);
  expect_between("length", row.length, 0, row.limit - 1);
  expect_between("forced_length", row.forced_length, 0, row.limit - 1);
  expect_between("width", row.width, 1, kMaxBeam);
  expect_between("rank", row.rank, 0, row.width - 1);
  expect_between("max_repeats", row.max_repeats, 1, kUnguarded);
  if (is_guarded(row))
    for (int32_t run : row.runs)
      expect_between("a run of repeats", run, 0, row.length);
}

void check_options(const SearchModel &model, const Row &leader) {
  expect_between("caller_prefix", leader.caller_prefix, 0, leader.forced_length);
  expect_between("model_prefix", leader.model_prefix, 0, leader.forced_length);
#define CHECK_OPTION(name, low, high) expect_between(#name, leader.name, low, high);
  DRAGOMAN_OPTIONS(CHECK_OPTION)
#undef CHECK_OPTION
  if (changes_scores(leader) && !model.compute)
    reject("its options change scores, which this search cannot compute");
}

// Checks all tokens that the search or a decoder reads; only options that change scores look at earlier ones.
void check_tokens(const State &state, const SearchModel &model, int64_t index, bool reads_all) {
  const Row &row = state.rows[index];
  const int64_t last = model.num_readable - 1;
  expect_between("token_id", row.token_id, 0, last);
  const int64_t *output_ids = state.output_ids + index * state.capacity;
  const int32_t end = reads_all ? std::max(row.length, row.forced_length) : row.forced_length;
  for (int32_t position = reads_all ? 0 : row.length; position < end; ++position)
    expect_between("a token of the output", output_ids[position], 0, last);
}

void check_hypotheses(const State &state, const Row &leader) {
  const auto check = [&](const char *name, int32_t count, int64_t first) {
    expect_between(name, count, 0, leader.width);
    for (int32_t place = 0; place < count; ++place)
      expect_between("the length of a hypothesis", state.hypotheses[first + leader.beam_rows[place]].length, 0,
                     state.capacity);
  };
  check("num_finished", leader.num_finished, 0);
  check("num_given_up", leader.num_given_up, state.num_slots);
}

void check_beam(const State &state, int32_t index, std::vector<int32_t> &leaders) {
  const Row &leader = state.rows[index];
  for (int32_t rank = 0; rank < leader.width; ++rank) {
    const int32_t member = leader.beam_rows[rank];
    expect_between("a row of the beam", member, 0, state.control->num_rows - 1);
    const Row &row = state.rows[member];
    const bool fits = row.status == kRunning && row.width == leader.width && row.rank == rank &&
                      row.length == leader.length && row.forced_length == leader.forced_length &&
                      row.limit == leader.limit && row.max_repeats == leader.max_repeats && leaders[member] < 0 &&
                      (rank > 0 || member == index);
    if (!fits)
      reject("its beam lists row " + std::to_string(member) + ", which is in another beam or another state");
    leaders[member] = index;
    expect_between("slot", row.slot, 0, state.num_slots - 1);
    const int32_t *history = state.history + member * state.capacity;
    for (int32_t position = 0; position < row.length; ++position)
      expect_between("a slot in the history of a beam", history[position], 0, state.num_slots - 1);
  }
  check_hypotheses(state, leader);
}

// Checks each running row, and says which one is wrong.
template <typename Check> void check_running(const State &state, Check check) {
  for (int32_t index = 0; index < state.control->num_rows; ++index) {
    const Row &row = state.rows[index];
    try {
      expect_between("status", row.status, kRunning, kBroken);
      if (row.status == kRunning)
        check(index, row);
    } catch (const std::invalid_argument &error) {
      reject("row " + std::to_string(index) + ": " + error.what());
    }
  }
}

} // namespace

std::vector<int32_t> checked_leaders(const State &state, const SearchModel &model) {
  expect_between("num_slots", state.num_slots, 1, INT32_MAX / 2);
  expect_between("capacity", state.capacity, 1, INT32_MAX / 2);
  expect_between("num_rows", state.control->num_rows, 0, state.num_slots);
  expect_between("vocabulary_size", model.vocabulary_size, 2, INT32_MAX - 1);
  expect_between("eos_id", model.eos_id, 0, model.vocabulary_size - 1);
  expect_between("decoder_start_id", model.decoder_start_id, 0, INT32_MAX);
  std::vector<int32_t> leaders(state.control->num_rows, -1);
  check_running(state, [&](int32_t, const Row &row) { check_own_fields(state, row); });
  check_running(state, [&](int32_t index, const Row &row) {
    if (row.width == 1)
      leaders[index] = index;
    else if (row.rank == 0)
      check_beam(state, index, leaders);
  });
  check_running(state, [&](int32_t index, const Row &) {
    if (leaders[index] < 0)
      reject("no beam lists it");
    const Row &leader = state.rows[leaders[index]];
    check_options(model, leader);
    check_tokens(state, model, index, changes_scores(leader));
  });
  return leaders;
}

} // namespace dragoman
