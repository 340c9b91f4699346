#include "execution/join/domain_table.h"

#include "base/check.h"
#include "base/status_macros.h"

namespace nam::execution {
namespace {

/// One for each position, and one for nowhere().
uint64_t HeadsOf(const DomainTable::Options& options) {
  return (options.domain.size() >> options.shared_bits) + 1;
}

}  // namespace

uint64_t DomainTable::BytesNeeded(const Options& options) {
  return HeadsOf(options) * sizeof(uint32_t);
}

absl::StatusOr<DomainTable> DomainTable::Make(const Options& options, MemoryBudget& budget) {
  NAM_CHECK(options.domain.known() && options.shared_bits <= options.domain.bits);
  NAM_ASSIGN_OR_RETURN(MappedArray<uint32_t> heads, MappedArray<uint32_t>::Make(HeadsOf(options), budget));
  return DomainTable(options.domain, std::move(heads));
}

absl::Status DomainTable::MakeChains(uint64_t row_numbers, MemoryBudget& budget) {
  NAM_ASSIGN_OR_RETURN(next_, MappedArray<uint32_t>::Make(row_numbers, budget));
  return absl::OkStatus();
}

}  // namespace nam::execution
