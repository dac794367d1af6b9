#include "runtime/shortlists.h"

#include <algorithm>
#include <cstring>
#include <stdexcept>

#include "search/ranges.h"

namespace dragoman {

namespace {

constexpr int64_t kMultiple = 8; // Marian fills up its shortlists to multiples of this, and so do we

} // namespace

Shortlists::Shortlists(Model &model, int64_t vocabulary_size, bool has_one_vocabulary)
    : always_(model.read_ids("the ids that are always allowed")), offsets_(model.read_ids("the shortlists' offsets")),
      ids_(model.read_stored_ids("the shortlists")), vocabulary_size_(vocabulary_size),
      has_one_vocabulary_(has_one_vocabulary) {
  if (offsets_.empty() || offsets_.front() != 0 || offsets_.back() != ids_.size() ||
      !std::is_sorted(offsets_.begin(), offsets_.end()))
    throw std::invalid_argument("the shortlists' offsets do not ascend from 0 to the number of ids, " +
                                std::to_string(ids_.size()));
  for (int64_t id : always_)
    expect_between("an id that is always allowed", id, 0, vocabulary_size_ - 1);
  for (int64_t index = 0; index < ids_.size(); index++)
    expect_between("an id of a shortlist", ids_[index], 0, vocabulary_size_ - 1);
}

void Shortlists::find(const int64_t *token_ids, int64_t count, int32_t *result, int64_t room) const {
  thread_local std::vector<uint64_t> allowed; // a bit for each token
  allowed.assign((vocabulary_size_ + 63) / 64, 0);
  int64_t num_allowed = 0;
  auto allow = [&](int64_t id) {
    uint64_t &word = allowed[id / 64], bit = uint64_t{1} << id % 64;
    num_allowed += (word & bit) == 0;
    word |= bit;
  };
  for (int64_t id : always_)
    allow(id);
  for (int64_t place = 0; place < count; place++) {
    int64_t token = token_ids[place];
    if (token + 1 < static_cast<int64_t>(offsets_.size()))
      for (int64_t index = offsets_[token]; index < offsets_[token + 1]; index++)
        if (int64_t id = ids_[index]; id >= 0 && id < vocabulary_size_)
          allow(id);
    if (has_one_vocabulary_ && token < vocabulary_size_)
      allow(token);
  }
  for (int64_t id = static_cast<int64_t>(always_.size()); num_allowed % kMultiple && id < vocabulary_size_; id++)
    allow(id);
  result[0] = 0;
  if (num_allowed >= room)
    return;
  result[0] = static_cast<int32_t>(num_allowed);
  int32_t *next = result + 1;
  for (size_t word = 0; word < allowed.size(); word++)
    for (uint64_t bits = allowed[word]; bits; bits &= bits - 1)
      *next++ = static_cast<int32_t>(word * 64 + __builtin_ctzll(bits));
}

} // namespace dragoman
