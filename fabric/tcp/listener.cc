#include "fabric/tcp/listener.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/strings/str_format.h"
#include "base/check.h"
#include "base/clock.h"
#include "base/status_macros.h"
#include "fabric/net/authentication.h"
#include "fabric/net/socket.h"
#include "fabric/request_rules.h"
#include "fabric/tcp/completion_queue.h"
#include "fabric/tcp/queue_pair.h"

namespace nam::fabric::tcp {
namespace {

/// A member's connection, on its NIC thread. After Remove the thread does nothing for it, even if half of a
/// WRITE has arrived.
class ServedOnNic final : public ServedEnd {
 public:
  ServedOnNic(NicThread& nic, uint64_t id) : nic_(nic), id_(id) {}
  bool Stop(bool /*kill*/) override {
    nic_.Remove(id_, CompletionStatus::kFlushed);
    return true;
  }

 private:
  NicThread& nic_;
  const uint64_t id_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Listener>> TcpListener::Create(std::shared_ptr<Core> core,
                                                              const ListenOptions& options) {
  std::unique_ptr<Admission> admission;
  if (options.passive && options.member_keys != nullptr) {
    admission = std::make_unique<Admission>(*options.member_keys);
  }
  NAM_ASSIGN_OR_RETURN(
      auto acceptor,
      net::Acceptor::Listen(options.address, {.credentials = core->credentials(),
                                              .peer_timeout_us = core->options().peer_timeout_us,
                                              .admission = admission.get()}));
  return std::unique_ptr<Listener>(
      new TcpListener(std::move(core), options.passive, std::move(admission), std::move(acceptor)));
}

TcpListener::TcpListener(std::shared_ptr<Core> core, bool passive, std::unique_ptr<Admission> admission,
                         std::unique_ptr<net::Acceptor> acceptor)
    : core_(std::move(core)),
      passive_(passive),
      admission_(std::move(admission)),
      acceptor_(std::move(acceptor)) {
  acceptor_->Start(*this);
}

net::ServerVerdict TcpListener::Judge(const net::ClientHello& hello) {
  net::ServerVerdict verdict{.mode = passive_ ? net::ListenMode::kPassive : net::ListenMode::kPaired,
                             .token = hello.token};
  if (hello.role == net::Role::kReverse) {
    if (!unpaired_.contains(hello.token)) verdict.status = net::HandshakeStatus::kUnknownToken;
  } else if (!passive_) {
    if (unpaired_.size() + waiting_.size() >= waiting_.kMax) verdict.status = net::HandshakeStatus::kBusy;
    net::FillRandom({reinterpret_cast<uint8_t*>(&verdict.token), sizeof(verdict.token)});
  }
  return verdict;
}

bool TcpListener::Fence(MemberId member, bool kill) {
  return admission_ == nullptr || admission_->connections().Fence(member, kill);
}

std::vector<MemberId> TcpListener::Members() {
  return admission_ == nullptr ? std::vector<MemberId>() : admission_->connections().Members();
}

void TcpListener::Serve(net::Stream stream, net::Grant grant) {
  NicThread& nic = core_->AssignNic();
  const uint64_t id = core_->NextId();
  if (admission_ == nullptr || grant.rights == Access::kRead) {
    nic.Add(id, std::move(stream), {.rights = grant.rights});
    return;
  }
  const auto place = std::make_shared<MemberConnections::Place>(std::move(grant.place));
  place->Serve(grant.key, std::make_shared<ServedOnNic>(nic, id),
               [&] { nic.Add(id, std::move(stream), {.rights = grant.rights, .held = place}); });
}

void TcpListener::Admit(net::AuthenticatedSocket socket, const net::ClientHello& hello, net::Grant grant,
                        std::span<const std::byte> /*first*/) {
  net::Stream stream(std::move(socket.fd), socket.keys, net::Stream::Side::kServer);
  const int64_t deadline_ns = RealClock().After(core_->options().peer_timeout_us).ns;
  if (passive_) {
    Serve(std::move(stream), std::move(grant));
  } else if (hello.role == net::Role::kForward) {
    unpaired_[socket.token] = {std::move(stream), deadline_ns};
  } else {
    auto pair = unpaired_.extract(socket.token);
    waiting_.Add({std::move(pair.mapped().forward), std::move(stream)}, deadline_ns);
  }
}

int64_t TcpListener::Expire(int64_t now_ns) {
  std::erase_if(unpaired_, [&](const auto& entry) { return entry.second.deadline_ns <= now_ns; });
  int64_t next_ns = waiting_.Expire(now_ns);
  for (const auto& [token, unpaired] : unpaired_) next_ns = std::min(next_ns, unpaired.deadline_ns);
  return next_ns;
}

absl::StatusOr<std::unique_ptr<QueuePair>> TcpListener::Accept(CompletionQueue& completions,
                                                               const QueuePairOptions& options,
                                                               Deadline deadline) {
  if (passive_) {
    return absl::FailedPreconditionError(
        "a passive listener is served by the fabric: there is nothing to accept");
  }
  NAM_RETURN_IF_ERROR(CheckQueuePairOptions(options));
  auto* queue = dynamic_cast<TcpCompletionQueue*>(&completions);
  NAM_CHECK(queue != nullptr, "a completion queue of another fabric");
  NAM_RETURN_IF_ERROR(queue->CheckRoom(PlacesOf(options)));
  std::optional<Waiting> next = waiting_.Take(deadline);
  if (!next) {
    return absl::DeadlineExceededError(absl::StrFormat("no peer connected to %s in time", address()));
  }
  std::string peer = net::PeerName(next->reverse.fd());
  return TcpQueuePair::Create(core_, *queue, options, std::move(next->reverse), std::move(next->forward),
                              std::move(peer));
}

}  // namespace nam::fabric::tcp
