#include <algorithm>
#include <limits>
#include <optional>
#include <utility>

#include "catalog/chain_groups.h"
#include "catalog/compacted_groups.h"
#include "catalog/service.h"

/// Groups retired by compaction, and the statements that still read them.
namespace nam::catalog {
namespace {

/// Former versions kept per table. If a compute server still needs an older one, its query runs again.
constexpr size_t kFormersMax = 8;

}  // namespace

void Service::KeepFormer(std::shared_ptr<const proto::Table> former, uint64_t version) {
  std::vector<Former>& formers = tables_.at(former->name()).formers;
  if (formers.size() >= kFormersMax) formers.erase(formers.begin());
  formers.push_back({version, std::move(former)});
}

// Over all clients, from their last renewals; a client that has not renewed yet blocks.
uint64_t Service::OldestVersionRead() const {
  uint64_t oldest = std::numeric_limits<uint64_t>::max();
  for (const auto& [id, state] : members_) {
    if (state.member.role() == proto::ROLE_CLIENT && Living(state))
      oldest = std::min(oldest, state.reads_from);
  }
  return oldest;
}

// In memory alone: a store that still lists them costs another check after a start.
void Service::ForgetRetiredGroups() {
  std::optional<uint64_t> oldest;
  for (auto& [name, state] : tables_) {
    if (state.table->retired().empty()) continue;
    if (!oldest.has_value()) oldest = OldestVersionRead();
    const auto& retired = state.table->retired();
    if (std::none_of(retired.begin(), retired.end(),
                     [&](const proto::RetiredGroups& groups) { return groups.version() <= *oldest; }))
      continue;
    auto table = std::make_shared<proto::Table>(*state.table);
    for (const uint64_t allocation : ForgetRetired(*oldest, *table)) table_allocations_.erase(allocation);
    state.table = std::move(table);
    std::erase_if(state.formers, [&](const Former& former) { return former.until_version <= *oldest; });
  }
}

std::shared_ptr<const proto::Table> Service::FindVersion(const TableState& table, uint64_t allocation) {
  if (allocation == 0 || MayCutBackTo(allocation, *table.table)) return table.table;
  for (auto former = table.formers.rbegin(); former != table.formers.rend(); ++former) {
    if (MayCutBackTo(allocation, *former->table)) return former->table;
  }
  return table.table;
}

}  // namespace nam::catalog
