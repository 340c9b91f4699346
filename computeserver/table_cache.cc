#include "computeserver/table_cache.h"

#include "absl/strings/str_format.h"
#include "base/status_macros.h"
#include "catalog/chain_groups.h"
#include "partitioner/table_metadata.h"

namespace nam::computeserver {

absl::StatusOr<std::shared_ptr<const proto::Table>> TableCache::Table(const std::string& name,
                                                                      uint64_t allocation) {
  {
    const MutexLock lock(mutex_);
    const auto found = tables_.find(name);
    if (found != tables_.end() && found->second->allocation() == allocation) return found->second;
  }
  NAM_ASSIGN_OR_RETURN(std::shared_ptr<const proto::Table> table, catalog_.GetTable(name));
  if (table->allocation() != allocation) {
    auto older = std::make_shared<proto::Table>(*table);
    if (!catalog::MayCutBackTo(allocation, *older)) {  // it was compacted since
      NAM_ASSIGN_OR_RETURN(*older, catalog_.GetTableOf(name, allocation));
    }
    if (!catalog::CutBackTo(allocation, *older)) {
      return absl::AbortedError(
          absl::StrFormat("table %s was replaced while the query was being planned: run it again", name));
    }
    table = std::move(older);
  }
  const MutexLock lock(mutex_);
  if (tables_.size() >= kMostTables) {
    tables_.clear();
    known_.clear();
  }
  std::shared_ptr<const proto::Table>& place = tables_[name];
  if (place != nullptr) known_.erase(place->allocation());
  place = table;
  return table;
}

std::shared_ptr<storage::KnownBlocks> TableCache::Known(const proto::Table& table) {
  const auto made = [&] {
    std::vector<uint32_t> blocks;
    for (const proto::Chain& chain : table.partitions()) blocks.push_back(chain.blocks());
    return std::make_shared<storage::KnownBlocks>(blocks);
  };
  const MutexLock lock(mutex_);
  // Another version may have replaced it meanwhile: then knowledge about this one would never be dropped.
  const auto cached = tables_.find(table.name());
  if (cached == tables_.end() || cached->second->allocation() != table.allocation()) return made();
  std::shared_ptr<storage::KnownBlocks>& known = known_[table.allocation()];
  if (known == nullptr) known = made();
  return known;
}

absl::StatusOr<std::shared_ptr<const storage::Dictionary>> TableCache::Dictionary(const proto::Table& table,
                                                                                  uint32_t column,
                                                                                  uint32_t group) {
  const std::pair<uint64_t, uint32_t> key{catalog::GroupId(table, group), column};
  {
    const MutexLock lock(mutex_);
    const auto found = dictionaries_.find(key);
    if (found != dictionaries_.end()) return found->second;
  }
  const proto::Dictionary description = catalog::GroupColumnOf(table, group, column).encoding().dictionary();
  NAM_ASSIGN_OR_RETURN(execution::ChannelPool::Lease channel, channels_.Acquire());
  NAM_ASSIGN_OR_RETURN(auto dictionary, partitioner::ReadDictionary(*channel, description));
  const MutexLock lock(mutex_);
  if (dictionary_bytes_ + description.bytes() > kMostDictionaryBytes) {
    dictionaries_.clear();
    dictionary_bytes_ = 0;
  }
  if (dictionaries_.emplace(key, dictionary).second) dictionary_bytes_ += description.bytes();
  return dictionary;
}

}  // namespace nam::computeserver
