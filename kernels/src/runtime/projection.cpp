#include "runtime/projection.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

namespace dragoman {

namespace {

constexpr float kLowest = -std::numeric_limits<float>::infinity();
// Logits that are looked at before the next ones are computed: those of 64 rows are a quarter of a megabyte, and stay in
// a second-level cache. The sums of such spans are summed up in turn, so a row's total does not depend on who computes
// which.
constexpr int64_t kSpanBlocks = 16, kSpan = kSpanBlocks * kBlockColumns;
constexpr int64_t kMostParts = 8; // of the columns, each with candidates of its own

// Merge candidates whose ids are higher.
void add_candidates(const Projection::Candidates &more, int num_wanted, Projection::Candidates &best) {
  Projection::Candidates merged;
  merged.count = 0;
  for (int own = 0, other = 0; merged.count < num_wanted && (own < best.count || other < more.count);) {
    bool takes_own = other == more.count || (own < best.count && best.logits[own] >= more.logits[other]);
    merged.ids[merged.count] = takes_own ? best.ids[own] : more.ids[other];
    merged.logits[merged.count++] = takes_own ? best.logits[own++] : more.logits[other++];
  }
  best = merged;
}

} // namespace

struct Projection::Rows {
  Levels x;
  const int64_t *places; // of each row in `needs` and `scores`
  int64_t count;
  const Need *needs;
  Scores *scores;
  const Shortlist *shortlists;

  const Shortlist &shortlist(int64_t row) const { return shortlists[places[row]]; }
  const Need &need(int64_t row) const { return needs[places[row]]; }
  Scores &score(int64_t row) const { return scores[places[row]]; }
};

Projection::Projection(Model &model, bool renormalizes, bool has_shortlists)
    : compute_(model.compute()), dense_(model.read_dense("the projection", model.architecture().width, -1)),
      suppressed_(model.read_ids("the suppressed ids")), allowed_(model.with_biases(dense_, suppressed_, kLowest)),
      renormalizes_(renormalizes) {
  if (has_shortlists)
    columns_ = model.columns_of(dense_);
}

void Projection::score(const Parallel &parallel, const Levels &x, const Need *needs, const Shortlist *shortlists,
                       int64_t num_rows, Scores *scores, Workspace &work) const {
  using Compute = void (Projection::*)(const Parallel &, const Rows &, Workspace &) const;
  constexpr Compute kOfKinds[] = {&Projection::find_best, &Projection::find_candidates, &Projection::keep_logits,
                                    &Projection::score_listed};
  auto kind_of = [&](int64_t row) {
    if (shortlists != nullptr && shortlists[row].count > 0)
      return 3;
    return needs[row].logits ? 2 : needs[row].is_arg_max_only() ? 0 : 1;
  };
  // Rows of each kind together.
  std::vector<int64_t> &places = work.places;
  places.clear();
  int64_t ends[std::size(kOfKinds)];
  for (size_t kind = 0; kind < std::size(kOfKinds); kind++) {
    for (int64_t row = 0; row < num_rows; row++)
      if (kind_of(row) == static_cast<int>(kind))
        places.push_back(row);
    ends[kind] = static_cast<int64_t>(places.size());
  }
  Levels gathered = x;
  if (!std::is_sorted(places.begin(), places.end())) {
    gathered = {work.levels.at_least(num_rows * x.stride), x.stride, work.scales.at_least(num_rows)};
    for (int64_t row = 0; row < num_rows; row++) {
      std::memcpy(gathered.levels + row * x.stride, x.levels + places[row] * x.stride, x.stride);
      gathered.scales[row] = x.scales[places[row]];
    }
  }
  int64_t first = 0;
  for (size_t kind = 0; kind < std::size(kOfKinds); first = ends[kind++]) {
    const Compute compute = kOfKinds[kind]; // not in the call: g++ 12's sanitizer looks it up with an index of its own
    if (ends[kind] > first)
      (this->*compute)(
          parallel, {gathered.from(first), places.data() + first, ends[kind] - first, needs, scores, shortlists}, work);
  }
}

void Projection::find_best(const Parallel &parallel, const Rows &rows, Workspace &work) const {
  int32_t *ids = work.best_ids.at_least(rows.count * Parallel::kMaxParts);
  float *logits = work.best_logits.at_least(rows.count * Parallel::kMaxParts);
  parallel.dense_arg_max(allowed_, rows.x, rows.count, ids, logits);
  for (int64_t row = 0; row < rows.count; row++) {
    rows.score(row).best_id = ids[row];
    rows.score(row).best_logit = logits[row];
  }
}

// The logits are computed span by span and not kept.
void Projection::find_candidates(const Parallel &parallel, const Rows &rows, Workspace &work) const {
  Team &team = parallel.team();
  int64_t num_spans = (dense_.num_blocks + kSpanBlocks - 1) / kSpanBlocks;
  int64_t num_parts = team.size() == 1 ? 1 : std::min({num_spans, kMostParts, 4 * int64_t{team.size()}});
  float *logits_of_parts = work.logits.at_least(num_parts * rows.count * kSpan);
  float *totals = work.totals.at_least(rows.count * num_spans);
  Candidates *candidates = work.candidates.at_least(num_parts * rows.count);
  auto wanted = [&](int64_t row) { return std::clamp(rows.need(row).num_candidates, 1, kMaxCandidates); };
  auto search_span = [&](int64_t span, float *logits, Candidates *best) {
    Dense columns = blocks_of(dense_, span * kSpanBlocks, std::min<int64_t>((span + 1) * kSpanBlocks, dense_.num_blocks));
    compute_.dense(columns, rows.x, rows.count, Into::kSet, logits, kSpan);
    int64_t first = span * kSpan, count = columns.num_outputs;
    for (int64_t row = 0; row < rows.count; row++, logits += kSpan) {
      bool has_total = rows.need(row).log_total;
      if (has_total && !renormalizes_)
        totals[row * num_spans + span] = log_total(logits, count);
      suppress(first, count, logits);
      if (has_total && renormalizes_)
        totals[row * num_spans + span] = log_total(logits, count);
      best[row].count = compute_.top(logits, count, static_cast<int32_t>(first), wanted(row), best[row].count,
                                     best[row].ids, best[row].logits);
    }
  };
  team.share(num_parts, [&](int64_t part) {
    Candidates *best = candidates + part * rows.count;
    for (int64_t row = 0; row < rows.count; row++)
      best[row].count = 0;
    for (int64_t span = num_spans * part / num_parts; span < num_spans * (part + 1) / num_parts; span++)
      search_span(span, logits_of_parts + part * rows.count * kSpan, best);
  });
  for (int64_t row = 0; row < rows.count; row++) {
    Candidates &best = candidates[row];
    for (int64_t part = 1; part < num_parts; part++)
      add_candidates(candidates[part * rows.count + row], wanted(row), best);
    Scores &scores = rows.score(row);
    if (rows.need(row).log_total)
      scores.log_total = log_total(totals + row * num_spans, num_spans);
    scores.best_id = best.ids[0];
    scores.best_logit = best.logits[0];
    scores.num_candidates = best.count;
    scores.candidate_ids = best.ids;
    scores.candidate_logits = best.logits;
  }
}

void Projection::keep_logits(const Parallel &parallel, const Rows &rows, Workspace &work) const {
  int64_t stride = int64_t{dense_.num_blocks} * kBlockColumns;
  float *logits = work.logits.at_least(rows.count * stride);
  parallel.dense(dense_, rows.x, rows.count, Into::kSet, logits, stride);
  parallel.team().share(rows.count, [&](int64_t row) {
    Scores &scores = rows.score(row);
    scores.logits = logits + row * stride;
    if (rows.need(row).log_total)
      scores.log_total = log_total(scores.logits, dense_.num_outputs);
    suppress(0, dense_.num_outputs, scores.logits);
  });
}

void Projection::score_listed(const Parallel &parallel, const Rows &rows, Workspace &work) const {
  int64_t longest = 0, num_full = 0; // the rows that want the logits of all tokens
  for (int64_t row = 0; row < rows.count; row++) {
    longest = std::max(longest, rows.shortlist(row).count);
    num_full += rows.need(row).logits;
  }
  int64_t stride = round_up(longest, kLanes), full_stride = int64_t{dense_.num_blocks} * kBlockColumns;
  float *listed = work.listed.at_least(rows.count * stride);
  float *full = num_full ? work.full.at_least(rows.count * full_stride) : nullptr;
  Candidates *candidates = work.listed_candidates.at_least(rows.count);
  share_rows(parallel.team(), rows.count, longest * dense_.num_inputs, [&](int64_t begin, int64_t end, int64_t) {
    for (int64_t row = begin; row < end; row++) {
      const Shortlist &shortlist = rows.shortlist(row);
      const Need &need = rows.need(row);
      Scores &scores = rows.score(row);
      float *logits = listed + row * stride;
      compute_.dense_columns(dense_, columns_, rows.x.levels + row * rows.x.stride, rows.x.scales[row], shortlist.ids,
                             shortlist.count, logits);
      bool counts_all = !renormalizes_ || need.logits;
      if (need.log_total && counts_all)
        scores.log_total = log_total(logits, shortlist.count);
      for (int64_t id : suppressed_) {
        const int32_t *found = std::lower_bound(shortlist.ids, shortlist.ids + shortlist.count, id);
        if (found != shortlist.ids + shortlist.count && *found == id)
          logits[found - shortlist.ids] = kLowest;
      }
      if (need.log_total && !counts_all)
        scores.log_total = log_total(logits, shortlist.count);
      if (need.logits) {
        scores.logits = full + row * full_stride;
        std::fill(scores.logits, scores.logits + dense_.num_outputs, kLowest);
        for (int64_t place = 0; place < shortlist.count; place++)
          scores.logits[shortlist.ids[place]] = logits[place];
        continue;
      }
      Candidates &best = candidates[row];
      best.count = compute_.top(logits, shortlist.count, 0, std::clamp(need.num_candidates, 1, kMaxCandidates), 0,
                                best.ids, best.logits);
      for (int place = 0; place < best.count; place++)
        best.ids[place] = shortlist.ids[best.ids[place]];
      scores.best_id = best.ids[0];
      scores.best_logit = best.logits[0];
      scores.num_candidates = best.count;
      scores.candidate_ids = best.ids;
      scores.candidate_logits = best.logits;
    }
  });
}

void Projection::suppress(int64_t first, int64_t count, float *logits) const {
  for (int64_t id : suppressed_)
    if (id >= first && id < first + count)
      logits[id - first] = kLowest;
}

float Projection::log_total(const float *logits, int64_t count) const {
  float largest = 0, sum = 0;
  compute_.log_sum(logits, count, &largest, &sum);
  return std::log(sum) + largest;
}

} // namespace dragoman
