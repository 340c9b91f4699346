#include "txn/column_numbers.h"

#include "base/interruption.h"
#include "base/status_macros.h"

namespace nam::txn {
namespace {

constexpr int64_t kInterruptionLookUs = 50'000;
constexpr size_t kSpacesMax = 256;  // dropped tables leave theirs behind

}  // namespace

absl::StatusOr<uint64_t> ColumnNumbers::Next(const Table& table, uint32_t column) {
  {
    const MutexLock lock(mutex_);
    Taken& taken = taken_[{table.allocation, column}];
    if (taken.next != taken.end) return taken.next++;
  }
  const std::shared_ptr<fabric::Event> own = fabric_.CreateEvent();
  while (true) {
    std::shared_ptr<fabric::Event> others;
    {
      const MutexLock lock(mutex_);
      Taken& taken = taken_[{table.allocation, column}];
      if (taken.next != taken.end) return taken.next++;
      if (taking_ == nullptr) taking_ = own;
      if (taking_ != own) others = taking_;
    }
    if (others != nullptr) {
      NAM_RETURN_IF_ERROR(AwaitTurn(*others));
      continue;
    }
    const absl::StatusOr<uint64_t> first = Reserve(table, column, kTakenAtOnce);
    {
      const MutexLock lock(mutex_);
      taking_ = nullptr;
      if (first.ok()) taken_[{table.allocation, column}] = {*first + 1, *first + kTakenAtOnce};
    }
    own->Set();
    return first;
  }
}

absl::Status ColumnNumbers::AwaitTurn(fabric::Event& over) const {
  while (!over.Wait(fabric_.clock().After(kInterruptionLookUs))) {
    if (Interruption::requested()) return absl::CancelledError("cancelled");
  }
  return absl::OkStatus();
}

absl::StatusOr<uint64_t> ColumnNumbers::Skip(const Table& table, uint32_t column, uint64_t count) {
  const std::shared_ptr<fabric::Event> own = fabric_.CreateEvent();
  while (true) {
    std::shared_ptr<fabric::Event> others;
    {
      const MutexLock lock(mutex_);
      if (taking_ == nullptr) taking_ = own;
      if (taking_ != own) others = taking_;
    }
    if (others == nullptr) break;
    NAM_RETURN_IF_ERROR(AwaitTurn(*others));
  }
  const absl::StatusOr<uint64_t> skipped = Reserve(table, column, count);
  {
    const MutexLock lock(mutex_);
    taking_ = nullptr;
  }
  own->Set();
  return skipped;
}

absl::StatusOr<uint64_t> ColumnNumbers::Reserve(const Table& table, uint32_t column, uint64_t count) {
  // A former member's connections are useless.
  if (access_ != nullptr && access_->channel->member() != directory_.Self().id) access_.reset();
  const auto fetch_add = [&]() -> absl::StatusOr<uint64_t> {
    NAM_ASSIGN_OR_RETURN(ExtentSpace* const space, SpaceOf(table));
    NAM_ASSIGN_OR_RETURN(const storage::Channel::Target word, space->Resolve(column * sizeof(uint64_t)));
    access_->batch->Reset(0);
    auto* const old = access_->batch->Word();
    access_->batch->FetchAdd(word, count, old);
    NAM_RETURN_IF_ERROR(access_->batch->Execute());
    return *old;
  };
  const absl::StatusOr<uint64_t> first = fetch_add();
  if (!first.ok()) access_.reset();
  return first;
}

absl::StatusOr<ExtentSpace*> ColumnNumbers::SpaceOf(const Table& table) {
  if (access_ == nullptr) {
    auto access = std::make_unique<Access>();
    NAM_ASSIGN_OR_RETURN(access->channel,
                         storage::Channel::Open(fabric_, directory_, {.buffer_bytes = 64 << 10}));
    access->batch = std::make_unique<storage::VerbBatch>(*access->channel);
    access_ = std::move(access);
  }
  if (const auto known = access_->spaces.find(table.allocation); known != access_->spaces.end())
    return &known->second;
  if (access_->spaces.size() >= kSpacesMax) access_->spaces.clear();
  NAM_ASSIGN_OR_RETURN(std::shared_ptr<ExtentSource> source, table.open());
  NAM_ASSIGN_OR_RETURN(ExtentSpace space,
                       ExtentSpace::Open(*access_->channel, std::move(source), table.extent_bytes));
  return &access_->spaces.emplace(table.allocation, std::move(space)).first->second;
}

}  // namespace nam::txn
