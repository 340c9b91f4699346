#include "execution/join/probe.h"

#include <utility>

#include "base/status_macros.h"
#include "execution/join/direct_probe.h"
#include "execution/join/domain_probe.h"
#include "execution/join/hash_probe.h"
#include "execution/join/loop_probe.h"

namespace nam::execution {
namespace {

using plan::JoinKind;

bool DrainsBuild(JoinKind kind) {
  return kind == JoinKind::kRight || kind == JoinKind::kFull;
}

bool Numbers(Physical physical) {
  return physical == Physical::kInt64 || physical == Physical::kInt128 || physical == Physical::kTruth;
}

absl::Status Check(const ProbeOptions& options, const BuildSide& build, size_t keys) {
  if ((options.keys == nullptr ? 0 : options.keys->outputs()) != keys)
    return absl::InvalidArgumentError("not a plan: a probe has other keys than its build side");
  const bool anti = options.kind == JoinKind::kNullAwareAnti, compares = options.compared != nullptr;
  if (options.null_aware && options.kind != JoinKind::kMark)
    return absl::InvalidArgumentError("not a plan: only marks are of IN or of EXISTS");
  if (compares && (options.null_aware || !(anti || options.kind == JoinKind::kMark)))
    return absl::InvalidArgumentError("not a plan: a probe that compares for no mark");
  const bool by_key = options.null_aware || (anti && !compares);
  if (by_key && (keys != 1 || options.residuals != nullptr))
    return absl::InvalidArgumentError("not a plan: IN has one key and no further conditions");
  for (uint32_t column : options.fetch) {
    if (column >= build.payload_columns())
      return absl::InvalidArgumentError("not a plan: a probe fetches a column that its build side lacks");
  }
  if (!DrainsBuild(options.kind)) return absl::OkStatus();
  for (uint32_t slot : options.keep) {
    if (slot >= options.input.size())
      return absl::InvalidArgumentError("not a plan: a probe keeps a column that its input lacks");
  }
  return absl::OkStatus();
}

class DirectProbeOperator : public StepOperator {
 public:
  DirectProbeOperator(const BuildSide& build, const DirectTable& table, const TextKeys* texts,
                      ProbeOptions options, std::unique_ptr<UnmatchedRows> unmatched)
      : build_(build),
        table_(table),
        texts_(texts),
        options_(std::move(options)),
        unmatched_(std::move(unmatched)) {}
  std::unique_ptr<StepTask> NewTask(TaskContext&) override {
    return std::make_unique<DirectProbe>(build_, table_, texts_, options_, unmatched_.get());
  }

 private:
  const BuildSide& build_;
  const DirectTable& table_;
  const TextKeys* const texts_;
  const ProbeOptions options_;
  const std::unique_ptr<UnmatchedRows> unmatched_;
};

class DomainProbeOperator : public StepOperator {
 public:
  DomainProbeOperator(const RowBuild& build, ProbeOptions options, std::unique_ptr<UnmatchedRows> unmatched)
      : build_(build), options_(std::move(options)), unmatched_(std::move(unmatched)) {}
  std::unique_ptr<StepTask> NewTask(TaskContext&) override {
    return std::make_unique<DomainProbe>(build_, *build_.domain(), options_, unmatched_.get());
  }

 private:
  const RowBuild& build_;
  const ProbeOptions options_;
  const std::unique_ptr<UnmatchedRows> unmatched_;
};

class HashProbeOperator : public StepOperator {
 public:
  HashProbeOperator(const RowBuild& build, ProbeOptions options, std::unique_ptr<UnmatchedRows> unmatched)
      : build_(build), options_(std::move(options)), unmatched_(std::move(unmatched)) {}
  std::unique_ptr<StepTask> NewTask(TaskContext&) override {
    return std::make_unique<HashProbe>(build_, options_, unmatched_.get());
  }

 private:
  const RowBuild& build_;
  const ProbeOptions options_;
  const std::unique_ptr<UnmatchedRows> unmatched_;
};

class LoopProbeOperator : public StepOperator {
 public:
  LoopProbeOperator(const RowBuild& build, ProbeOptions options, std::unique_ptr<UnmatchedRows> unmatched)
      : build_(build), options_(std::move(options)), unmatched_(std::move(unmatched)) {}
  std::unique_ptr<StepTask> NewTask(TaskContext&) override {
    return std::make_unique<LoopProbe>(build_, options_, unmatched_.get());
  }

 private:
  const RowBuild& build_;
  const ProbeOptions options_;
  const std::unique_ptr<UnmatchedRows> unmatched_;
};

absl::Status CheckNumbersOrText(const Program& keys, size_t key, bool text) {
  const Physical physical = keys.physical(key);
  if (text ? physical == Physical::kText : Numbers(physical)) return absl::OkStatus();
  return absl::InvalidArgumentError("not a plan: a probe has a key of another kind than its build side");
}

}  // namespace

std::unique_ptr<Chunk> NewProbeChunk(const ProbeOptions& options) {
  switch (options.kind) {
    case JoinKind::kSemi:
    case JoinKind::kAnti:
    case JoinKind::kNullAwareAnti:
      return std::make_unique<Chunk>(options.keep.size(), 1);
    case JoinKind::kMark:
      return std::make_unique<Chunk>(options.keep.size() + 1, 1);
    default:
      return std::make_unique<Chunk>(options.keep.size() + options.fetch.size(), 2 + options.input_row_sets);
  }
}

absl::StatusOr<std::unique_ptr<StepOperator>> DirectBuild::NewProbe(ProbeOptions options) const {
  NAM_RETURN_IF_ERROR(Check(options, *this, 1));
  NAM_RETURN_IF_ERROR(CheckNumbersOrText(*options.keys, 0, texts() != nullptr));
  if (DrainsBuild(options.kind))
    return absl::InvalidArgumentError("a build side that is drained has its rows at rest");
  return std::make_unique<DirectProbeOperator>(*this, table(), texts(), std::move(options), nullptr);
}

absl::StatusOr<std::unique_ptr<StepOperator>> RowBuild::NewProbe(ProbeOptions options) const {
  const RowBuild& build = *this;
  const size_t keys = build.key_count();
  NAM_RETURN_IF_ERROR(Check(options, build, keys));
  for (size_t k = 0; k < keys; ++k) {
    const bool text = build.texts(k) != nullptr || build.keys().form(k) == RowKeys::Form::kText;
    NAM_RETURN_IF_ERROR(CheckNumbersOrText(*options.keys, k, text));
  }
  std::unique_ptr<UnmatchedRows> unmatched;
  if (DrainsBuild(options.kind)) {
    if (!build.has_match_bits())
      return absl::InvalidArgumentError("a build side that is drained has bits for its matches");
    unmatched = std::make_unique<UnmatchedRows>(build);
  }
  if (keys == 0) return std::make_unique<LoopProbeOperator>(build, std::move(options), std::move(unmatched));
  if (build.domain() != nullptr)
    return std::make_unique<DomainProbeOperator>(build, std::move(options), std::move(unmatched));
  if (build.direct() != nullptr) {
    return std::make_unique<DirectProbeOperator>(build, *build.direct(), build.texts(0), std::move(options),
                                                 std::move(unmatched));
  }
  return std::make_unique<HashProbeOperator>(build, std::move(options), std::move(unmatched));
}

}  // namespace nam::execution
