#include <algorithm>
#include <iterator>
#include <utility>

#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "base/status_macros.h"
#include "catalog/chain_groups.h"
#include "catalog/server_ids.h"
#include "catalog/service.h"

/// Detects stores that are not the newest: epochs, marks, and what is given up when an operator accepts an
/// older store.
namespace nam::catalog {
namespace {

/// Marks of earlier epochs are worthless: members have those of their last renewal.
constexpr size_t kEpochsMax = 64;
/// If the store lists no live memory server, unlisted ones still get this long to report.
constexpr int64_t kAwaitUnlistedNs = 500'000'000;
/// Ids that the newer store may have assigned; ids actually seen raise this.
constexpr uint32_t kMemberIdsGivenUp = 1'024;
constexpr uint64_t kAllocationIdsGivenUp = uint64_t{1} << 20;

/// True if the server still has all memory that the table has there.
bool HasMemoryOf(const proto::Table& table, const proto::Member& server, const std::set<uint64_t>& held) {
  if (!table.has_record()) {
    const std::vector<uint64_t> allocations = AllocationsOn(table, StorageOf(server));
    return std::all_of(allocations.begin(), allocations.end(),
                       [&](uint64_t allocation) { return held.contains(allocation); });
  }
  for (const proto::RecordPart& part : table.record().parts()) {
    for (const proto::RecordExtent& extent : part.extents()) {
      if (extent.server() == server.id() && !held.contains(extent.allocation())) return false;
    }
  }
  return true;
}

}  // namespace

absl::Status Service::BeginEpoch() {
  const MutexLock lock(mutex_);
  Mutation mutation = NewMutation();
  mutation.put_epochs.push_back({.number = epochs_.empty() ? 1 : epochs_.rbegin()->first + 1,
                                 .id_high = options_.epoch_id_high,
                                 .id_low = options_.epoch_id_low,
                                 .first_version = mutation.version,
                                 .accepts_older = options_.accept_older_store});
  if (options_.accept_older_store) {
    mutation.next_member += kMemberIdsGivenUp;
    mutation.next_allocation += kAllocationIdsGivenUp;
  }
  mutation.makes_room = true;  // or a catalog on a full disk could not start
  if (epochs_.size() >= kEpochsMax) mutation.delete_epochs.push_back(epochs_.begin()->first);
  NAM_RETURN_IF_ERROR(Apply(mutation));
  if (options_.accept_older_store) {
    events_.Add(LogLevel::kError,
                "--accept-older-store: changes that only a newer copy of this store has are given up");
  }
  return absl::OkStatus();
}

void Service::AwaitMembers(bool existing) {
  const MutexLock lock(mutex_);
  const int64_t now_ns = clock_.NowNs(), lease_ns = int64_t{lease_ms_} * 1'000'000;
  for (const auto& [id, state] : members_) {
    if (state.member.alive() && state.member.role() == proto::ROLE_MEMORY) unheard_.insert(id);
  }
  await_from_ns_ = now_ns;
  await_until_ns_ = now_ns + lease_ns;
  if (unheard_.empty()) await_from_ns_ += std::min(lease_ns, kAwaitUnlistedNs);
  if (options_.accept_older_store) await_from_ns_ = await_until_ns_;
  if (!existing) awaiting_ = false;  // no member can know more
}

void Service::EndAwaiting() {
  ExtendLeasesAfterStall();
  const int64_t now_ns = clock_.NowNs();
  if (now_ns >= await_until_ns_ || (unheard_.empty() && now_ns >= await_from_ns_)) awaiting_ = false;
}

void Service::HearFrom(uint32_t member) {
  unheard_.erase(member);
}

bool Service::AwaitsMembers() {
  if (!awaiting_) return false;
  const MutexLock lock(mutex_);
  EndAwaiting();
  return awaiting_;
}

absl::Status Service::CheckServing() {
  if (!refused_.ok()) return refused_;
  if (awaiting_) EndAwaiting();
  if (!awaiting_) return absl::OkStatus();
  return absl::UnavailableError(
      "the catalog has just started, and asks its memory servers whether its store is the newest; try again");
}

// Called for every call but renewals.
absl::Status Service::Enter(const proto::StoreMark& newest) {
  if (OfAnotherStore(newest)) {
    return absl::FailedPreconditionError(
        "the catalog runs on another store than the one that this process has used; restart this process");
  }
  if (const std::string why = WhyOlder(newest); !why.empty()) {
    proto::RenewRequest only_mark;
    SetMark(only_mark, newest);
    NAM_RETURN_IF_ERROR(options_.accept_older_store ? GiveUpNewer(only_mark, why) : Refuse(why));
  }
  NAM_RETURN_IF_ERROR(CheckServing());
  Expire();
  return absl::OkStatus();
}

absl::Status Service::EnterRenewal(const proto::RenewRequest& request) {
  if (OfAnotherStore(MarkOf(request))) {
    // A memory server keeps its memory and keeps asking until its own store is back.
    return absl::FailedPreconditionError(
        absl::StrFormat("member %d belongs to another store than the one that the catalog runs on; end it, "
                        "or start the catalog on its store",
                        request.id()));
  }
  if (const std::string why = WhyOlder(request); !why.empty()) {
    NAM_RETURN_IF_ERROR(options_.accept_older_store ? GiveUpNewer(request, why) : Refuse(why));
  }
  if (!refused_.ok()) return refused_;
  if (CheckServing().ok()) Expire();
  return absl::OkStatus();
}

bool Service::OfAnotherStore(const proto::StoreMark& newest) const {
  return newest.epoch() != 0 && newest.store() != identity_.store;
}

// The reason why the store is older than the mark or branched off before it; empty if neither.
std::string Service::WhyOlder(const proto::StoreMark& newest) const {
  const uint64_t number = newest.epoch();
  if (number == 0 || number < epochs_.begin()->first) return "";
  for (auto epoch = epochs_.rbegin(); epoch != epochs_.rend() && epoch->first > number; ++epoch) {
    if (epoch->second.accepts_older) return "";
  }
  const auto found = epochs_.find(number);
  if (found == epochs_.end()) {
    return absl::StrFormat("it ends in epoch %d, and the cluster was in epoch %d",
                           epochs_.rbegin()->first - 1, number);
  }
  if (found->second.id_high != newest.id_high() || found->second.id_low != newest.id_low()) {
    return absl::StrFormat("its epoch %d is not the one that the cluster was in", number);
  }
  const auto next = std::next(found);
  const uint64_t last_version = next == epochs_.end() ? version_ : next->second.first_version - 1;
  if (newest.version() <= last_version) return "";
  return absl::StrFormat("its epoch %d ends with version %d, and the cluster was at version %d", number,
                         last_version, newest.version());
}

// Also detects ids that the store has not assigned. Once the catalog serves, such ids are mistakes and prove
// nothing.
std::string Service::WhyOlder(const proto::RenewRequest& request) const {
  if (std::string why = WhyOlder(MarkOf(request)); !why.empty() || !awaiting_) return why;
  if (request.id() >= next_member_) {
    return absl::StrFormat("it has given out %d member ids, and there is a member %d", next_member_ - 1,
                           request.id());
  }
  for (const uint64_t allocation : request.held()) {
    if (allocation < next_allocation_) continue;
    return absl::StrFormat("it has given out %d allocations, and member %d holds memory of allocation %d",
                           next_allocation_ - 1, request.id(), allocation);
  }
  return "";
}

absl::Status Service::Refuse(const std::string& why) {
  if (!refused_.ok()) return refused_;
  awaiting_ = false;
  const std::string text = absl::StrFormat(
      "the catalog's store is older than what its cluster knows (%s): a copy that misses what was committed "
      "later. Nothing is answered from it, and no memory is released. Start the catalog on the newer store; "
      "or, "
      "if that is lost, with --accept-older-store, which gives up what was committed since this copy was "
      "made",
      why);
  refused_ = absl::FailedPreconditionError(text);
  events_.Add(LogLevel::kError, text);
  return refused_;
}

// With accept_older_store: from now on marks and ids of the newer store are below this store's.
absl::Status Service::GiveUpNewer(const proto::RenewRequest& request, const std::string& why) {
  Mutation mutation = NewMutation();
  EpochRecord epoch = epochs_.rbegin()->second;
  if (const uint64_t newer = MarkOf(request).epoch(); newer >= epoch.number) {
    epoch.number = newer + 1;
    epoch.first_version = mutation.version;
    mutation.put_epochs.push_back(epoch);
  }
  mutation.next_member = std::max(mutation.next_member, request.id() + 1);
  for (const uint64_t allocation : request.held())
    mutation.next_allocation = std::max(mutation.next_allocation, allocation + 1);
  NAM_RETURN_IF_ERROR(Apply(mutation));
  events_.Add(
      LogLevel::kError,
      absl::StrFormat("--accept-older-store: the store is older than what the cluster knew (%s); what was "
                      "committed since is given up",
                      why));
  return absl::OkStatus();
}

// True if a member was last answered before an operator accepted an older store. Survives restarts, because
// the mark and the epochs do.
bool Service::MissedAcceptance(const proto::StoreMark& newest) const {
  const auto accepting = std::find_if(epochs_.rbegin(), epochs_.rend(),
                                      [](const auto& epoch) { return epoch.second.accepts_older; });
  return accepting != epochs_.rend() && newest.epoch() < accepting->first;
}

// For a server that missed an acceptance. A table whose memory was freed after the copy was made would be
// read from another allocation's memory, and a record table may have grown into memory that the copy does not
// list. Runs once per start: the server's mark stays old until the catalog serves, and by then it may hold
// memory of loads that are over.
absl::Status Service::GiveUpLostTables(const proto::RenewRequest& request) {
  const uint32_t server = request.id();
  if (!MissedAcceptance(MarkOf(request)) || !HeaderOf(request).held_is_all() ||
      members_.at(server).member.role() != proto::ROLE_MEMORY || looked_through_.contains(server)) {
    return absl::OkStatus();
  }
  const std::set<uint64_t> held(request.held().begin(), request.held().end());
  const bool holds_unknown =
      std::any_of(held.begin(), held.end(), [&](uint64_t allocation) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
        return !loads_.contains(allocation) && !table_allocations_.contains(allocation);
      });
  Mutation mutation = NewMutation();
  for (const auto& [name, state] : tables_) {
    const bool lost = HasBlocksOf(members_.at(server).member, state) &&
                      !HasMemoryOf(*state.table, members_.at(server).member, held);
    if (lost || (holds_unknown && state.table->has_record())) mutation.delete_tables.push_back(name);
  }
  if (!mutation.delete_tables.empty()) {
    NAM_RETURN_IF_ERROR(Apply(mutation));
    events_.Add(
        LogLevel::kError,
        absl::StrFormat("--accept-older-store: given up, since their memory on memory server %d is not what "
                        "the store says: %s",
                        server, absl::StrJoin(mutation.delete_tables, ", ")));
  }
  looked_through_.insert(server);
  return absl::OkStatus();
}

proto::StoreMark Service::Mark() const {
  const EpochRecord& epoch = epochs_.rbegin()->second;
  proto::StoreMark mark;
  mark.set_store(identity_.store);
  mark.set_epoch(epoch.number);
  mark.set_id_high(epoch.id_high);
  mark.set_id_low(epoch.id_low);
  mark.set_version(version_);
  return mark;
}

}  // namespace nam::catalog
