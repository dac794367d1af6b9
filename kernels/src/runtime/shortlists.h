// Shortlists: which tokens the translation of a source may consist of.
#pragma once

#include <cstdint>
#include <vector>

#include "runtime/model.h"

namespace dragoman {

// A shortlist as a run of `Decode` reads it: none if there are no ids, and all tokens are allowed.
struct Shortlist {
  const int32_t *ids; // ascending
  int64_t count;
};

// Pass over the input `shortlists`, which follows the other ones if the node has it.
inline NodeInfo &pass_shortlists(NodeInfo &node) {
  if (node.flag("shortlists"))
    node.skip();
  return node;
}

// The lists of all source tokens.
class Shortlists {
public:
  // Reads the ids that are always allowed, and the lists. `vocabulary_size`: of the target.
  Shortlists(Model &model, int64_t vocabulary_size, bool has_one_vocabulary);

  // Write the number of ids, and the ids that are allowed for a source: (room,) numbers. The number is 0 if there is not
  // enough room.
  void find(const int64_t *token_ids, int64_t count, int32_t *result, int64_t room) const;

private:
  std::vector<int64_t> always_, offsets_;
  StoredIds ids_; // of all lists, most of an imported model's constants beside its weights
  int64_t vocabulary_size_;
  bool has_one_vocabulary_; // then a source's own tokens are allowed as well
};

} // namespace dragoman
