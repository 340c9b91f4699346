#include "txn/column_numbers.h"

#include "base/status_macros.h"

namespace nam::txn {

absl::StatusOr<std::unique_ptr<ColumnNumbers>> ColumnNumbers::Open(fabric::Fabric& fabric,
                                                                   fabric::RegionDirectory& directory,
                                                                   std::shared_ptr<ExtentSource> source,
                                                                   uint64_t extent_bytes) {
  NAM_ASSIGN_OR_RETURN(std::unique_ptr<storage::Channel> channel,
                       storage::Channel::Open(fabric, directory, {.buffer_bytes = 64 << 10}));
  NAM_ASSIGN_OR_RETURN(ExtentSpace space, ExtentSpace::Open(*channel, std::move(source), extent_bytes));
  return std::unique_ptr<ColumnNumbers>(new ColumnNumbers(std::move(channel), std::move(space)));
}

absl::StatusOr<uint64_t> ColumnNumbers::Next(uint32_t column) {
  Taken& taken = taken_[column];
  if (taken.next == taken.end) {
    NAM_ASSIGN_OR_RETURN(const storage::Channel::Target word, space_.Resolve(column * sizeof(uint64_t)));
    batch_.Reset(0);
    auto* const old = batch_.Word();
    batch_.FetchAdd(word, kTakenAtOnce, old);
    NAM_RETURN_IF_ERROR(batch_.Execute());
    taken = {*old, *old + kTakenAtOnce};
  }
  return taken.next++;
}

}  // namespace nam::txn
