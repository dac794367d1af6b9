#include "search/processors.h"

#include <algorithm>
#include <limits>

namespace dragoman {
namespace {

constexpr float kForbidden = -std::numeric_limits<float>::infinity();
constexpr float kLeastPenalty = 1e-30f; // lower ones would make scores infinite

// The decoder's inputs so far: the start token and the output.
class Inputs {
public:
  Inputs(const SearchModel &model, const Row &row, const int64_t *output_ids)
      : start_id_(model.decoder_start_id), output_ids_(output_ids), count_(row.length + 1) {}

  int32_t count() const { return count_; }
  int64_t operator[](int32_t index) const { return index ? output_ids_[index - 1] : start_id_; }

private:
  int64_t start_id_;
  const int64_t *output_ids_;
  int32_t count_;
};

// Divide the positive scores of all tokens in `inputs` by the penalty and multiply the negative ones by it.
void penalize_repetition(const Row &row, const Inputs &inputs, const SearchModel &model, float *scores,
                         std::vector<float> &found) {
  if (row.repetition_penalty == 1.0f)
    return;
  const float penalty = std::max(row.repetition_penalty, kLeastPenalty);
  // All are read before any is written: a token that comes twice is penalized once.
  found.clear();
  for (int32_t index = 0; index < inputs.count(); ++index)
    found.push_back(inputs[index] < model.vocabulary_size ? scores[inputs[index]] : 0.0f);
  for (int32_t index = 0; index < inputs.count(); ++index)
    if (inputs[index] < model.vocabulary_size)
      scores[inputs[index]] = found[index] < 0 ? found[index] * penalty : found[index] / penalty;
}

// Forbid each token that would complete a run of `no_repeat_ngram_size` tokens that `inputs` already contain.
void forbid_repeated_ngrams(const Row &row, const Inputs &inputs, const SearchModel &model, float *scores) {
  const int32_t size = row.no_repeat_ngram_size;
  if (size <= 0 || size > inputs.count())
    return;
  const int32_t begun = inputs.count() + 1 - size;
  for (int32_t start = 0; start < begun; ++start) {
    int32_t same = 0;
    while (same < size - 1 && inputs[start + same] == inputs[begun + same])
      ++same;
    const int64_t last = inputs[start + size - 1];
    if (same == size - 1 && last < model.vocabulary_size)
      scores[last] = kForbidden;
  }
}

} // namespace

void process(const Row &row, const int64_t *output_ids, const SearchModel &model, float *scores,
             std::vector<float> &found) {
  const Inputs inputs(model, row, output_ids);
  penalize_repetition(row, inputs, model, scores, found);
  forbid_repeated_ngrams(row, inputs, model, scores);
  if (row.length - row.model_prefix < row.min_output_tokens)
    scores[model.eos_id] = kForbidden;
}

} // namespace dragoman
