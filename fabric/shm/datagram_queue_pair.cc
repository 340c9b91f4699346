#include "fabric/shm/datagram_queue_pair.h"

#include <algorithm>
#include <array>
#include <utility>

#include "absl/strings/str_format.h"
#include "base/status_macros.h"
#include "fabric/datagram_rules.h"
#include "fabric/shm/doorbell.h"
#include "fabric/shm/region_registry.h"
#include "fabric/shm/service.h"
#include "fabric/shm/socket.h"
#include "fabric/threads.h"

namespace nam::fabric::shm {
namespace {

constexpr size_t kTargetsMax = 4096;
constexpr size_t kMembershipsMax = 256;
// A group's ring holds the datagrams in flight to its members, 4 MiB; a single receiver needs less.
constexpr uint32_t kGroupSlots = 1024;
constexpr uint32_t kSingleSlots = 256;

}  // namespace

ShmDatagramQueuePair::ShmDatagramQueuePair(const Environment& environment, ShmCompletionQueue* completions,
                                           const DatagramOptions& options)
    : id_(NextQueuePairId()),
      environment_(environment),
      completions_(*completions),
      options_(options),
      inbox_id_(RandomBits()),
      inbox_(std::make_shared<DatagramInbox>(&completions->bell(), completions->bell_index())),
      receives_(options.receive_depth) {
  completions_.Attach(this, options_);
  environment_.identity->datagrams->AddInbox(inbox_id_, inbox_);
  environment_.live_objects->fetch_add(1);
}

ShmDatagramQueuePair::~ShmDatagramQueuePair() {
  DatagramDirectory& directory = *environment_.identity->datagrams;
  directory.RemoveInbox(inbox_id_);
  for (const Target& target : targets_) {
    if (target.group != nullptr) directory.RemoveGroup(target.group_id);
    if (target.single.has_value()) Close(*target.single->link);
  }
  for (const Membership& membership : memberships_) Close(*membership.link);
  completions_.Detach(this, options_);
  environment_.live_objects->fetch_sub(1);
}

std::string ShmDatagramQueuePair::address() const {
  return FormatDatagramAddress({environment_.socket, /*is_group=*/false, inbox_id_});
}

absl::StatusOr<ShmDatagramQueuePair::Connection> ShmDatagramQueuePair::TryRequest(
    const DatagramAddress& address, const Message& request, std::span<const int> descriptors) {
  const Deadline deadline = RealClock().After(environment_.peer_timeout_us);
  NAM_ASSIGN_OR_RETURN(UniqueFd socket, ConnectSocket(address.socket, deadline));
  auto link = std::make_shared<Link>(std::move(socket));
  NAM_ASSIGN_OR_RETURN(const pid_t pid, CheckPeerUser(link->socket()));
  NAM_ASSIGN_OR_RETURN(Established established,
                       ConnectHandshake(*environment_.identity, link->socket(), pid, {}, deadline));
  NAM_RETURN_IF_ERROR(SendMessage(link->socket(), request, descriptors));
  NAM_ASSIGN_OR_RETURN(Packet reply, AwaitMessage(link->socket(), deadline));
  if (reply.message.type == MessageType::kRefused) return RefusalStatus(reply.message);
  if (reply.message.type != MessageType::kDatagramReply) {
    return absl::InvalidArgumentError("the peer does not follow the protocol");
  }
  environment_.service->AddLink(link);
  return Connection{std::move(link), std::move(established.peer), std::move(reply)};
}

absl::StatusOr<ShmDatagramQueuePair::Connection> ShmDatagramQueuePair::Request(
    const DatagramAddress& address, const Message& request, std::span<const int> descriptors) {
  auto connection = TryRequest(address, request, descriptors);
  if (connection.ok()) return connection;
  return absl::Status(connection.status().code(),
                      absl::StrFormat("fabric shm: no datagrams with \"%s\": %s",
                                      FormatDatagramAddress(address), connection.status().message()));
}

void ShmDatagramQueuePair::Close(const Link& link) {
  environment_.service->RemoveLink(link);
  const_cast<Link&>(link).Shutdown();
}

absl::StatusOr<DatagramTarget> ShmDatagramQueuePair::Resolve(const std::string& address) {
  const auto parsed = ParseDatagramAddress(address);
  if (!parsed.has_value() || parsed->is_group) return NotAnAddress(address, "datagram queue pair", "shm");
  for (size_t i = 0; i < targets_.size(); ++i) {
    if (targets_[i].address == address) return HandleOf(i);
  }
  NAM_RETURN_IF_ERROR(CheckTargetRoom(targets_.size(), kTargetsMax));
  NAM_ASSIGN_OR_RETURN(DatagramRingWriter ring, DatagramRingWriter::Create(kSingleSlots));
  NAM_ASSIGN_OR_RETURN(const UniqueFd descriptor, ring.Descriptor());
  const int descriptors[] = {descriptor.get()};
  NAM_ASSIGN_OR_RETURN(
      Connection connection,
      Request(*parsed, {.type = MessageType::kDatagramSend, .datagram_id = parsed->id, .slots = ring.slots()},
              descriptors));
  Doorbell* const bell = connection.peer->doorbell(connection.reply.message.bell);
  if (bell == nullptr) {
    Close(*connection.link);
    return absl::InvalidArgumentError("the peer does not follow the protocol");
  }
  targets_.push_back(
      {.address = address,
       .single = Outgoing{std::move(ring), std::move(connection.link), std::move(connection.peer), bell}});
  return HandleOf(targets_.size() - 1);
}

absl::StatusOr<DatagramTarget> ShmDatagramQueuePair::OpenGroup(uint32_t) {
  NAM_RETURN_IF_ERROR(CheckTargetRoom(targets_.size(), kTargetsMax));
  NAM_ASSIGN_OR_RETURN(DatagramRingWriter ring, DatagramRingWriter::Create(kGroupSlots));
  Target target{.group_id = RandomBits(), .group = std::make_shared<DatagramGroup>(std::move(ring))};
  target.address = FormatDatagramAddress({environment_.socket, /*is_group=*/true, target.group_id});
  environment_.identity->datagrams->AddGroup(target.group_id, target.group);
  targets_.push_back(std::move(target));
  return HandleOf(targets_.size() - 1);
}

absl::StatusOr<std::string> ShmDatagramQueuePair::GroupAddress(DatagramTarget group) const {
  const size_t index = size_t{group.handle} - 1;
  if (group.handle == 0 || index >= targets_.size() || targets_[index].group == nullptr) {
    return NotAGroup(group);
  }
  return targets_[index].address;
}

absl::Status ShmDatagramQueuePair::Join(const std::string& group_address) {
  const auto group = ParseDatagramAddress(group_address);
  if (!group.has_value() || !group->is_group) return NotAnAddress(group_address, "multicast group", "shm");
  for (const Target& target : targets_) {
    if (target.address == group_address) return SenderCannotJoin();
  }
  for (const Membership& membership : memberships_) {
    if (membership.address == group_address) return absl::OkStatus();
  }
  NAM_RETURN_IF_ERROR(CheckGroupRoom(memberships_.size(), kMembershipsMax));
  NAM_ASSIGN_OR_RETURN(Connection connection, Request(*group,
                                                      {.type = MessageType::kDatagramJoin,
                                                       .datagram_id = group->id,
                                                       .bell = completions_.bell_index()},
                                                      {}));
  auto reader =
      DatagramRingReader::Map(connection.reply.descriptors[0].get(), connection.reply.message.slots);
  if (!reader.ok()) {
    Close(*connection.link);
    return reader.status();
  }
  reader->SkipToEnd();
  memberships_.push_back({group_address, std::move(connection.link), *std::move(reader)});
  return absl::OkStatus();
}

absl::Status ShmDatagramQueuePair::Leave(const std::string& group_address) {
  const auto found = std::find_if(memberships_.begin(), memberships_.end(),
                                  [&](const Membership& at) { return at.address == group_address; });
  if (found == memberships_.end()) return NotAMember(group_address);
  Close(*found->link);
  memberships_.erase(found);
  return absl::OkStatus();
}

absl::Status ShmDatagramQueuePair::Post(std::span<const DatagramRequest> batch) {
  NAM_RETURN_IF_ERROR(CheckDatagrams(batch, bytes_max(), targets_.size(), sends_used_, options_.send_depth));
  sends_used_ += static_cast<uint32_t>(batch.size());
  for (const DatagramRequest& request : batch) {
    const LocalBuffer& from = request.local;
    const bool registered = from.bytes == 0 || environment_.identity->regions->Contains(from);
    if (registered) Write(targets_[request.to.handle - 1], from);
    Finish(request, registered ? CompletionStatus::kOk : CompletionStatus::kLocalError);
  }
  // Once per batch.
  for (const DatagramRequest& request : batch) RingReaders(targets_[request.to.handle - 1]);
  return absl::OkStatus();
}

void ShmDatagramQueuePair::Write(Target& target, const LocalBuffer& from) {
  if (target.group != nullptr) {
    target.group->Write(from.data, from.bytes);
  } else if (target.single->link->lost()) {
    return;  // a missing ring loses the datagram
  } else {
    target.single->ring.Write(from.data, from.bytes);
  }
  target.written = true;
}

void ShmDatagramQueuePair::RingReaders(Target& target) {
  if (!std::exchange(target.written, false)) return;
  if (target.group != nullptr) {
    target.group->RingMembers();
  } else {
    Ring(*target.single->bell);
  }
}

void ShmDatagramQueuePair::Finish(const DatagramRequest& request, CompletionStatus status) {
  if (status == CompletionStatus::kOk && request.signal == Signal::kUnsignaled) {
    ++unsignaled_;
    return;
  }
  completions_.Push({.id = request.id, .queue_pair = id_, .status = status, .opcode = Opcode::kSend},
                    &sends_used_, unsignaled_ + 1);
  unsignaled_ = 0;
}

absl::Status ShmDatagramQueuePair::PostReceive(std::span<const ReceiveRequest> batch) {
  NAM_RETURN_IF_ERROR(CheckReceiveRoom(batch.size(), receives_used_, options_.receive_depth));
  receives_used_ += static_cast<uint32_t>(batch.size());
  receives_.Push(batch);
  if (waiting_ && !batch.empty()) ReceiveAll();
  return absl::OkStatus();
}

void ShmDatagramQueuePair::Progress() {
  for (auto& ring : inbox_->TakeAdded()) incoming_.push_back(std::move(ring));
  ReceiveAll();
}

void ShmDatagramQueuePair::ReceiveAll() {
  const bool drop = receives_.empty();
  waiting_ = false;
  DatagramDrops drops;
  const size_t all = incoming_.size() + memberships_.size();
  bool any_ended = false;
  for (size_t i = 0; i < all; ++i) {
    const size_t at = (next_reader_ + i) % all;
    if (at >= incoming_.size()) {
      Receive(memberships_[at - incoming_.size()].reader, drop, drops);
      continue;
    }
    // First check whether it has ended, then read the rest.
    if (incoming_[at]->ended.load(std::memory_order_acquire)) any_ended = true;
    Receive(incoming_[at]->reader, drop, drops);
  }
  ++next_reader_;
  if (drops.no_receive + drops.overrun + drops.refused > 0) environment_.identity->datagrams->Count(drops);
  if (!any_ended || waiting_) return;
  const size_t erased = std::erase_if(incoming_, [](const auto& ring) { return ring->ended.load(); });
  inbox_->OnErased(static_cast<uint32_t>(erased));
}

void ShmDatagramQueuePair::Receive(DatagramRingReader& reader, bool drop, DatagramDrops& drops) {
  drops.overrun += reader.Refresh();
  if (drop) {
    drops.no_receive += reader.waiting();
    reader.Drop();
    return;
  }
  while (reader.waiting() > 0) {
    const ReceiveRequest* const receive = UsableReceive();
    if (receive == nullptr) {
      waiting_ = true;
      return;
    }
    const uint32_t headroom = std::min(receive->into.bytes, kDatagramHeadroomBytes);
    uint32_t bytes = 0;
    switch (reader.Read(receive->into.data + headroom, receive->into.bytes - headroom, &bytes)) {
      case DatagramRingReader::Outcome::kRead:
        FinishReceive(CompletionStatus::kOk, bytes);
        break;
      case DatagramRingReader::Outcome::kTooLong:
        ++drops.no_receive;
        break;
      case DatagramRingReader::Outcome::kLost:
        ++drops.overrun;
        break;
      case DatagramRingReader::Outcome::kGarbage:
        ++drops.refused;
        break;
    }
  }
}

const ReceiveRequest* ShmDatagramQueuePair::UsableReceive() {
  while (!receives_.empty()) {
    const ReceiveRequest& oldest = receives_[0];
    if (oldest.into.bytes == 0 || environment_.identity->regions->Contains(oldest.into)) return &oldest;
    FinishReceive(CompletionStatus::kLocalError, 0);
  }
  return nullptr;
}

void ShmDatagramQueuePair::FinishReceive(CompletionStatus status, uint32_t bytes) {
  completions_.Push({.id = receives_[0].id,
                     .queue_pair = id_,
                     .status = status,
                     .opcode = Opcode::kReceive,
                     .bytes = bytes},
                    &receives_used_, 1);
  receives_.Pop();
}

}  // namespace nam::fabric::shm
