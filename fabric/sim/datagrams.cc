#include "fabric/sim/datagrams.h"

#include <xxhash.h>

#include <algorithm>
#include <charconv>
#include <cstring>
#include <string_view>
#include <utility>

#include "absl/strings/str_format.h"
#include "base/status_macros.h"
#include "fabric/datagram_rules.h"

namespace nam::fabric::sim {
namespace {

constexpr std::string_view kPairInfix = ":datagrams-";
constexpr std::string_view kGroupPrefix = "multicast-";

bool IsNumber(std::string_view text, int base) {
  uint64_t number = 0;
  const auto parsed = std::from_chars(text.data(), text.data() + text.size(), number, base);
  return !text.empty() && parsed.ec == std::errc() && parsed.ptr == text.data() + text.size();
}

/// Matches HOST:datagrams-ID.
bool IsPairAddress(std::string_view address) {
  const size_t infix = address.find(kPairInfix);
  return infix != std::string_view::npos && infix > 0 &&
         IsNumber(address.substr(infix + kPairInfix.size()), 10);
}

/// Returns multicast-CLUSTER:NUMBER. The secret's hash stands for the cluster, so that two clusters of one
/// world stay apart.
std::string GroupAddressOf(const std::string& secret, uint32_t number) {
  return absl::StrFormat("%s%016x:%d", kGroupPrefix, XXH3_64bits(secret.data(), secret.size()), number);
}
bool IsGroupAddress(std::string_view address) {
  constexpr size_t kClusterDigits = 16;
  const size_t colon = kGroupPrefix.size() + kClusterDigits;
  return address.size() > colon && address.substr(0, kGroupPrefix.size()) == kGroupPrefix &&
         IsNumber(address.substr(kGroupPrefix.size(), kClusterDigits), 16) && address[colon] == ':' &&
         IsNumber(address.substr(colon + 1), 10);
}

}  // namespace

DatagramEndpoint::DatagramEndpoint(Network& network, Process& process, SimCompletionQueue& completions,
                                   const DatagramOptions& options)
    : network_(network),
      process_(process),
      completions_(completions),
      options_(options),
      id_(network.NextId()),
      address_(absl::StrFormat("%s%s%d", process.host.name, kPairInfix, id_)),
      receives_(options.receive_depth) {
  completions_.Attach(PlacesOf(options));
  process_.datagrams.emplace(id_, this);
  if (process_.alive) network_.datagram_addresses().emplace(address_, this);
}

DatagramEndpoint::~DatagramEndpoint() {
  *alive_ = false;
  EndProcess();
  completions_.Detach(id_, PlacesOf(options_));
  process_.datagrams.erase(id_);
}

void DatagramEndpoint::EndProcess() {
  network_.datagram_addresses().erase(address_);
  for (auto& [address, group] : network_.groups()) {
    group.members.erase(id_);
    if (group.sender == this) group.sender = nullptr;
  }
  std::erase_if(network_.groups(), [](const auto& entry) {
    return entry.second.sender == nullptr && entry.second.members.empty();
  });
  for (; !receives_.empty(); receives_.Pop()) {
    completions_.Push({.id = receives_[0].id,
                       .queue_pair = id_,
                       .status = CompletionStatus::kFlushed,
                       .opcode = Opcode::kReceive},
                      &receives_used_, 1);
  }
}

uint32_t DatagramEndpoint::bytes_max() const {
  return std::min(kMaxDatagramBytes, network_.model().mtu_bytes);
}

absl::StatusOr<DatagramTarget> DatagramEndpoint::Resolve(const std::string& address) {
  if (!IsPairAddress(address)) {
    return absl::InvalidArgumentError(
        absl::StrFormat("\"%s\" is no address of a simulated datagram queue pair", address.substr(0, 100)));
  }
  targets_.push_back({false, address});
  return DatagramTarget{static_cast<uint32_t>(targets_.size())};
}

absl::StatusOr<DatagramTarget> DatagramEndpoint::OpenGroup(uint32_t number) {
  if (!process_.alive) return absl::UnavailableError("this process was killed: " + process_.end);
  const std::string address = GroupAddressOf(process_.options.secret, number);
  Network::Group& group = network_.groups()[address];
  if (group.sender != nullptr) {
    return absl::FailedPreconditionError(absl::StrFormat(
        "multicast group %d has a sender: a group's number is used once in the cluster", number));
  }
  group.sender = this;
  targets_.push_back({true, address});
  return DatagramTarget{static_cast<uint32_t>(targets_.size())};
}

absl::StatusOr<std::string> DatagramEndpoint::GroupAddress(DatagramTarget group) const {
  if (group.handle == 0 || group.handle > targets_.size() || !targets_[group.handle - 1].group) {
    return NotAGroup(group);
  }
  return targets_[group.handle - 1].address;
}

absl::Status DatagramEndpoint::Join(const std::string& group) {
  if (!process_.alive) return absl::UnavailableError("this process was killed: " + process_.end);
  if (!IsGroupAddress(group)) {
    return absl::InvalidArgumentError(
        absl::StrFormat("\"%s\" is no address of a simulated multicast group", group.substr(0, 100)));
  }
  network_.groups()[group].members[id_] = this;
  return absl::OkStatus();
}

absl::Status DatagramEndpoint::Leave(const std::string& group) {
  const auto found = network_.groups().find(group);
  if (found == network_.groups().end() || found->second.members.erase(id_) == 0) {
    return NotAMember(group);
  }
  return absl::OkStatus();
}

absl::Status DatagramEndpoint::Post(std::span<const DatagramRequest> batch) {
  NAM_RETURN_IF_ERROR(CheckDatagrams(batch, bytes_max(), targets_.size(), sends_used_, options_.send_depth));
  Scheduler& scheduler = network_.scheduler();
  const NicModel& model = network_.model();
  int64_t due_ns = scheduler.NowNs();
  scheduler.Charge(model.doorbell_ns + model.post_ns * static_cast<int64_t>(batch.size()));
  for (const DatagramRequest& request : batch) {
    ++sends_used_;
    queue_free_ns_ = std::max(queue_free_ns_, due_ns);
    Schedule(queue_free_ns_, [this, request] { Send(request); });
    queue_free_ns_ += model.datagram_ns;
    due_ns += model.post_ns;
  }
  return absl::OkStatus();
}

void DatagramEndpoint::Send(const DatagramRequest& request) {
  if (!process_.alive) return CompleteSend(request, CompletionStatus::kFlushed);
  if (!process_.regions.Contains(request.local)) return CompleteSend(request, CompletionStatus::kLocalError);
  const NicModel& model = network_.model();
  const auto payload = std::make_shared<const std::vector<std::byte>>(
      request.local.data, request.local.data + request.local.bytes);
  const int64_t leaves_ps = process_.host.nic.Send(
      network_.scheduler().NowNs() * kPsPerNs, int64_t{request.local.bytes} + model.datagram_overhead_bytes);
  const int64_t leaves_ns = CeilNs(leaves_ps);
  for (DatagramEndpoint* to : ReceiversOf(targets_[request.to.handle - 1])) Forward(leaves_ns, *to, payload);
  Schedule(leaves_ns + network_.WayNs(), [this, request] { CompleteSend(request, CompletionStatus::kOk); });
}

void DatagramEndpoint::CompleteSend(const DatagramRequest& request, CompletionStatus status) {
  ++unsignaled_;
  if (request.signal == Signal::kUnsignaled && status == CompletionStatus::kOk) return;
  completions_.Push({.id = request.id, .queue_pair = id_, .status = status, .opcode = Opcode::kSend},
                    &sends_used_, std::exchange(unsignaled_, 0));
}

std::vector<DatagramEndpoint*> DatagramEndpoint::ReceiversOf(const Target& target) const {
  std::vector<DatagramEndpoint*> receivers;
  if (target.group) {
    const auto group = network_.groups().find(target.address);
    if (group == network_.groups().end()) return receivers;
    for (const auto& [id, member] : group->second.members) {
      if (member != this) receivers.push_back(member);
    }
  } else if (const auto found = network_.datagram_addresses().find(target.address);
             found != network_.datagram_addresses().end()) {
    receivers.push_back(found->second);
  }
  return receivers;
}

void DatagramEndpoint::Forward(int64_t leaves_ns, DatagramEndpoint& to, const Payload& payload) {
  const FaultPlan& faults = network_.faults();
  RandomStream& random = network_.random();
  if (random.Happens(faults.datagram_loss) || !network_.Passes(process_.host, to.process_.host)) {
    network_.Record(Trace::Kind::kFault, static_cast<uint64_t>(Fault::kDatagramLost), id_, to.id_);
    return;
  }
  int copies = 1;
  if (random.Happens(faults.datagram_duplicate)) {
    network_.Record(Trace::Kind::kFault, static_cast<uint64_t>(Fault::kDatagramDoubled), id_, to.id_);
    copies = 2;
  }
  for (int i = 0; i < copies; ++i) {
    int64_t late_ns = network_.ExtraDelayNs();
    if (random.Happens(faults.datagram_reorder)) late_ns += random.UpTo(faults.datagram_reorder_ns_max);
    to.Schedule(leaves_ns + network_.WayNs() + late_ns,
                [&to, &sender = process_, payload] { to.Arrive(sender, payload); });
  }
}

void DatagramEndpoint::Arrive(const Process& sender, const Payload& payload) {
  const NicModel& model = network_.model();
  const auto overhead = int64_t{model.datagram_overhead_bytes};
  const int64_t end_ps =
      process_.host.nic.Receive(network_.scheduler().NowNs() * kPsPerNs,
                                static_cast<int64_t>(payload->size()) + overhead, 8 + overhead);
  Schedule(CeilNs(end_ps) + model.write_ns - network_.WayNs() - model.poll_ns,
           [this, &sender, payload] { Deliver(sender, payload); });
}

void DatagramEndpoint::Deliver(const Process& sender, const Payload& payload) {
  if (!process_.alive || !sender.alive || !network_.Passes(sender.host, process_.host)) return;
  network_.Record(Trace::Kind::kDatagram, id_, payload->size(), receives_.size());
  if (sender.options.secret != process_.options.secret) {
    ++process_.drops.refused;
    return;
  }
  const auto bytes = static_cast<uint32_t>(payload->size());
  if (receives_.empty()) {
    ++process_.drops.no_receive;
    return;
  }
  const ReceiveRequest& receive = receives_[0];
  if (uint64_t{receive.into.bytes} < uint64_t{kDatagramHeadroomBytes} + bytes) {
    ++process_.drops.no_receive;
    return;
  }
  const bool registered = process_.regions.Contains(receive.into);
  if (registered && bytes > 0)
    std::memcpy(receive.into.data + kDatagramHeadroomBytes, payload->data(), bytes);
  completions_.Push({.id = receive.id,
                     .queue_pair = id_,
                     .status = registered ? CompletionStatus::kOk : CompletionStatus::kLocalError,
                     .opcode = Opcode::kReceive,
                     .bytes = registered ? bytes : 0},
                    &receives_used_, 1);
  receives_.Pop();
}

absl::Status DatagramEndpoint::PostReceive(std::span<const ReceiveRequest> batch) {
  NAM_RETURN_IF_ERROR(CheckReceiveRoom(batch.size(), receives_used_, options_.receive_depth));
  network_.scheduler().Charge(network_.model().post_ns * static_cast<int64_t>(batch.size()));
  receives_used_ += static_cast<uint32_t>(batch.size());
  receives_.Push(batch);
  if (!process_.alive) EndProcess();
  return absl::OkStatus();
}

void DatagramEndpoint::Schedule(int64_t at_ns, std::function<void()> step) {
  network_.scheduler().At(at_ns, [alive = alive_, step = std::move(step)] {
    if (*alive) step();
  });
}

}  // namespace nam::fabric::sim
