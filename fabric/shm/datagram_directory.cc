#include "fabric/shm/datagram_directory.h"

#include <algorithm>
#include <cstdlib>
#include <utility>

#include "absl/strings/str_format.h"
#include "base/status_macros.h"
#include "fabric/shm/doorbell.h"

namespace nam::fabric::shm {
namespace {

constexpr uint32_t kRingsMax = 4096;  // into one queue pair
constexpr size_t kMembersMax = 4096;  // of one group
constexpr size_t kIdDigits = 16;

absl::Status Gone(const char* what) {
  return absl::NotFoundError(absl::StrFormat("the peer has no such %s (any more)", what));
}

}  // namespace

std::string FormatDatagramAddress(const DatagramAddress& address) {
  return absl::StrFormat("%s/%c%016x", address.socket, address.is_group ? 'g' : 'q', address.id);
}

std::optional<DatagramAddress> ParseDatagramAddress(const std::string& text) {
  const size_t slash = text.rfind('/');
  if (slash == std::string::npos || slash == 0 || text.size() != slash + 2 + kIdDigits) return std::nullopt;
  DatagramAddress address{.socket = text.substr(0, slash), .is_group = text[slash + 1] == 'g'};
  address.id = std::strtoull(text.c_str() + slash + 2, nullptr, 16);
  if (FormatDatagramAddress(address) != text) return std::nullopt;
  return address;
}

absl::Status DatagramInbox::Add(std::shared_ptr<IncomingRing> ring) {
  if (count_.load(std::memory_order_relaxed) >= kRingsMax) {
    return absl::ResourceExhaustedError(
        absl::StrFormat("%d senders send datagrams to the queue pair already", kRingsMax));
  }
  count_.fetch_add(1, std::memory_order_relaxed);
  {
    const MutexLock lock(mutex_);
    added_.push_back(std::move(ring));
    has_added_.store(true, std::memory_order_release);
  }
  Ring(bell_);
  return absl::OkStatus();
}

void DatagramInbox::End(IncomingRing& ring) {
  ring.ended.store(true, std::memory_order_release);
  Ring(bell_);
}

std::vector<std::shared_ptr<IncomingRing>> DatagramInbox::TakeAdded() {
  if (!has_added_.load(std::memory_order_acquire)) return {};
  const MutexLock lock(mutex_);
  has_added_.store(false, std::memory_order_relaxed);
  return std::exchange(added_, {});
}

absl::Status DatagramGroup::Add(uint64_t link, std::shared_ptr<PeerProcess> peer, uint32_t bell_index) {
  Doorbell* const bell = peer->doorbell(bell_index);
  if (bell == nullptr) return absl::InvalidArgumentError("the peer does not follow the protocol");
  const MutexLock lock(mutex_);
  if (members_.size() >= kMembersMax) {
    return absl::ResourceExhaustedError(absl::StrFormat("the group has %d members already", kMembersMax));
  }
  members_.push_back({link, std::move(peer), bell});
  return absl::OkStatus();
}

void DatagramGroup::Remove(uint64_t link) {
  const MutexLock lock(mutex_);
  std::erase_if(members_, [&](const Member& member) { return member.link == link; });
}

void DatagramGroup::RingMembers() {
  const MutexLock lock(mutex_);
  for (const Member& member : members_) Ring(*member.bell);
}

void DatagramDirectory::AddInbox(uint64_t id, std::shared_ptr<DatagramInbox> inbox) {
  const MutexLock lock(mutex_);
  inboxes_[id] = std::move(inbox);
}

void DatagramDirectory::RemoveInbox(uint64_t id) {
  const MutexLock lock(mutex_);
  inboxes_.erase(id);
}

void DatagramDirectory::AddGroup(uint64_t id, std::shared_ptr<DatagramGroup> group) {
  const MutexLock lock(mutex_);
  groups_[id] = std::move(group);
}

void DatagramDirectory::RemoveGroup(uint64_t id) {
  const MutexLock lock(mutex_);
  groups_.erase(id);
}

absl::Status DatagramDirectory::Answer(int socket, uint64_t link, const std::shared_ptr<PeerProcess>& peer,
                                       const Packet& packet) {
  if (served_.contains(link)) return absl::InvalidArgumentError("the peer does not follow the protocol");
  absl::Status done = packet.message.type == MessageType::kDatagramJoin
                          ? Join(socket, link, peer, packet.message)
                          : Accept(socket, link, packet);
  if (!done.ok()) SendMessage(socket, MakeRefusal(done)).IgnoreError();
  return done;
}

absl::Status DatagramDirectory::Join(int socket, uint64_t link, const std::shared_ptr<PeerProcess>& peer,
                                     const Message& request) {
  std::shared_ptr<DatagramGroup> group;
  {
    const MutexLock lock(mutex_);
    const auto found = groups_.find(request.datagram_id);
    if (found == groups_.end()) return Gone("multicast group");
    group = found->second;
  }
  NAM_ASSIGN_OR_RETURN(const UniqueFd ring, group->Descriptor());
  NAM_RETURN_IF_ERROR(group->Add(link, peer, request.bell));
  served_[link] = {.group = group};
  const int descriptors[] = {ring.get()};
  return SendMessage(socket, {.type = MessageType::kDatagramReply, .slots = group->slots()}, descriptors);
}

absl::Status DatagramDirectory::Accept(int socket, uint64_t link, const Packet& packet) {
  std::shared_ptr<DatagramInbox> inbox;
  {
    const MutexLock lock(mutex_);
    const auto found = inboxes_.find(packet.message.datagram_id);
    if (found == inboxes_.end()) return Gone("datagram queue pair");
    inbox = found->second;
  }
  NAM_ASSIGN_OR_RETURN(DatagramRingReader reader,
                       DatagramRingReader::Map(packet.descriptors[0].get(), packet.message.slots));
  auto ring = std::make_shared<IncomingRing>(std::move(reader));
  NAM_RETURN_IF_ERROR(inbox->Add(ring));
  const uint32_t bell = inbox->bell_index();
  served_[link] = {.inbox = std::move(inbox), .ring = std::move(ring)};
  return SendMessage(socket, {.type = MessageType::kDatagramReply, .bell = bell});
}

void DatagramDirectory::Forget(uint64_t link) {
  const auto found = served_.find(link);
  if (found == served_.end()) return;
  const Served& served = found->second;
  if (served.group != nullptr) served.group->Remove(link);
  if (served.inbox != nullptr) served.inbox->End(*served.ring);
  served_.erase(found);
}

void DatagramDirectory::Count(const DatagramDrops& drops) {
  no_receive_.fetch_add(drops.no_receive, std::memory_order_relaxed);
  overrun_.fetch_add(drops.overrun, std::memory_order_relaxed);
  refused_.fetch_add(drops.refused, std::memory_order_relaxed);
}

DatagramDrops DatagramDirectory::drops() const {
  return {no_receive_.load(std::memory_order_relaxed), overrun_.load(std::memory_order_relaxed),
          refused_.load(std::memory_order_relaxed)};
}

}  // namespace nam::fabric::shm
