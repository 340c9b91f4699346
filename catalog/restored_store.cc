#include "catalog/restored_store.h"

#include <sys/random.h>

#include <algorithm>
#include <memory>

#include "absl/strings/str_format.h"
#include "base/check.h"
#include "base/status_macros.h"
#include "catalog/record_tables.h"

namespace nam::catalog {
namespace {

uint64_t DrawStore() {
  uint64_t store = 0;
  NAM_CHECK(getrandom(&store, sizeof store, 0) == ssize_t{sizeof store}, "no randomness");
  return store;
}

}  // namespace

absl::StatusOr<ClusterIdentity> MakeRestoredStore(const std::string& path, const RestoredCluster& cluster) {
  const ClusterIdentity identity{.name = cluster.name, .fabric = cluster.fabric, .store = DrawStore()};
  NAM_ASSIGN_OR_RETURN(const std::unique_ptr<Store> store, OpenEmbeddedStore(path, identity));
  NAM_ASSIGN_OR_RETURN(const StoredState state, store->Load());
  if (state.identity.store != identity.store)
    return absl::AlreadyExistsError(absl::StrFormat("there is a store already: `%s`", path));
  Mutation mutation;
  mutation.version = state.version + 1;
  mutation.next_member = state.next_member;
  mutation.next_allocation = state.next_allocation;
  mutation.put_saved_records = cluster.saved_records;
  for (const proto::Table& table : cluster.tables) {
    proto::Table& put = mutation.put_tables.emplace_back(table);
    put.set_version(mutation.version);
    put.clear_retired();
    for (const uint64_t allocation : AllocationsOf(put))
      mutation.next_allocation = std::max(mutation.next_allocation, allocation + 1);
    for (const uint32_t server : ServersOf(put))
      mutation.next_member = std::max(mutation.next_member, server + 1);
  }
  for (const auto& [storage, directory] : cluster.directories)
    mutation.next_member = std::max(mutation.next_member, storage + 1);
  // As if they had left: a client that asks for their tables is told where a memory server is to be started.
  for (const auto& [storage, directory] : cluster.directories) {
    proto::Member& left = mutation.put_members.emplace_back();
    left.set_id(mutation.next_member++);
    left.set_role(proto::ROLE_MEMORY);
    left.set_storage(storage);
    left.set_data_directory(directory);
  }
  NAM_RETURN_IF_ERROR(store->Apply(mutation));
  return identity;
}

}  // namespace nam::catalog
