#include "execution/join/hash_probe.h"

#include "base/check.h"
#include "plan/work_cost.h"

namespace nam::execution {

HashProbe::HashProbe(const RowBuild& build, const ProbeOptions& options, UnmatchedRows* unmatched)
    : ProbeTask(build, options, unmatched),
      table_(*build.hash()),
      rows_(build.rows()),
      row_keys_(build.keys()),
      program_(*options.keys),
      frame_(program_.NewFrame()),
      keys_(row_keys_.size()) {
  for (size_t k = 0; k < row_keys_.size(); ++k) {
    const TextKeys* const texts = build.texts(k);
    texts_.push_back(texts != nullptr ? std::make_unique<KeyNumbers>(program_, k, texts) : nullptr);
    const bool own = texts != nullptr || program_.physical(k) == Physical::kTruth;
    numbers_.push_back(own ? std::make_unique<int64_t[]>(kChunkRows) : nullptr);
  }
}

bool HashProbe::Start(TaskContext& context, const Chunk& in, Candidates& candidates) {
  Selection tuples = in.selection();
  context.Charge(tuples.count, plan::work_cost::kProbeKeyPs);
  for (size_t k = 0; k < keys_.size(); ++k) {
    if (!EvaluateKey(context, in, k, tuples)) return false;
  }
  if (tuples.positions == nullptr) {
    for (uint32_t i = 0; i < tuples.count; ++i) tuples_[i] = i;
    tuples.positions = tuples_;
  }
  row_keys_.HashTuples(keys_.data(), tuples.positions, tuples.count, hashes_);
  uint32_t count = 0;
  for (uint32_t i = 0; i < tuples.count; ++i) {
    const uint32_t head = table_.Head(hashes_[i]);
    candidates.positions[count] = tuples.positions[i];
    candidates.rows[count] = head - 1;
    count += head != 0;
  }
  candidates.count = count;
  return true;
}

/// Sets keys_[key]; keeps those of `tuples` that may have a match by it.
bool HashProbe::EvaluateKey(TaskContext& context, const Chunk& in, size_t key, Selection& tuples) {
  if (texts_[key] != nullptr) {
    KeyNumbers& entries = *texts_[key];
    const std::optional<uint32_t> count = entries.Evaluate(in, tuples, null_keys());
    if (!count.has_value()) {
      context.Fail(entries.error());
      return false;
    }
    int64_t* const numbers = numbers_[key].get();
    for (uint32_t i = 0; i < *count; ++i) {
      tuples_[i] = entries.positions()[i];
      numbers[tuples_[i]] = entries.numbers()[i];
    }
    tuples = {tuples_, *count};
    keys_[key] = {.narrow = numbers};
    return true;
  }
  const Vector* const vector = program_.Evaluate(key, frame_, in, tuples);
  if (vector == nullptr) {
    context.Fail(frame_.error());
    return false;
  }
  DropNulls(*vector, tuples);
  switch (vector->physical) {
    case Physical::kInt64:
      keys_[key] = {.narrow = vector->narrow};
      break;
    case Physical::kInt128:
      keys_[key] = {.wide = vector->wide};
      break;
    case Physical::kText:
      keys_[key] = {.text = vector->text};
      break;
    default:
      NAM_CHECK(vector->physical == Physical::kTruth);
      ForEach(tuples, [&](uint32_t position) { numbers_[key][position] = vector->truth[position]; });
      keys_[key] = {.narrow = numbers_[key].get()};
  }
  return true;
}

void HashProbe::DropNulls(const Vector& vector, Selection& tuples) {
  uint8_t* const nulls = null_keys();
  if (vector.nulls == nullptr && vector.physical != Physical::kTruth) {
    if (nulls != nullptr) ForEach(tuples, [&](uint32_t position) { nulls[position] = 0; });
    return;
  }
  uint32_t count = 0;
  ForEach(tuples, [&](uint32_t position) {
    const bool null = vector.null(position);
    if (nulls != nullptr) nulls[position] = null;
    tuples_[count] = position;
    count += !null;
  });
  tuples = {tuples_, count};
}

uint32_t HashProbe::Matching(const Candidates& candidates, uint32_t* positions, uint32_t* rows) {
  return row_keys_.Equal(rows_, keys_.data(), candidates.positions, candidates.rows, candidates.count,
                         positions, rows);
}

void HashProbe::Advance(Candidates& candidates) {
  if (!table_.chained()) {
    candidates.count = 0;
    return;
  }
  uint32_t count = 0;
  for (uint32_t i = 0; i < candidates.count; ++i) {
    const uint32_t next = table_.Next(candidates.rows[i]);
    candidates.positions[count] = candidates.positions[i];
    candidates.rows[count] = next - 1;
    count += next != 0;
  }
  candidates.count = count;
}

}  // namespace nam::execution
