#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/unique_fd.h"
#include "fabric/admission.h"
#include "fabric/fabric.h"
#include "fabric/net/acceptor.h"
#include "fabric/net/waiting_room.h"
#include "fabric/tcp/core.h"

namespace nam::fabric::tcp {

/// Receives the connections that the acceptor has authenticated:
///
///     acceptor_ ─┬─ passive ─────────────▶ NIC thread
///                ├─ paired, forward ─▶ unpaired_ ─┐
///                └─ paired, reverse ──────────────┴─▶ waiting_ ─▶ Accept
///
/// Each stage is bounded, in number and in time: a connection that no Accept takes within the peer timeout is
/// closed.
class TcpListener final : public Listener, private net::Door {
 public:
  static absl::StatusOr<std::unique_ptr<Listener>> Create(std::shared_ptr<Core> core,
                                                          const ListenOptions& options);

  std::string address() const override { return acceptor_->address(); }
  absl::StatusOr<std::unique_ptr<QueuePair>> Accept(CompletionQueue& completions,
                                                    const QueuePairOptions& options,
                                                    Deadline deadline) override;
  bool Fence(MemberId member, bool kill) override;
  std::vector<MemberId> Members() override;

 private:
  struct Unpaired {
    net::Stream forward;
    int64_t deadline_ns = 0;
  };
  struct Waiting {
    net::Stream forward;  // the peer's requests
    net::Stream reverse;  // this side's requests
  };

  TcpListener(std::shared_ptr<Core> core, bool passive, std::unique_ptr<Admission> admission,
              std::unique_ptr<net::Acceptor> acceptor);
  net::ServerVerdict Judge(const net::ClientHello& hello) override;
  void Admit(net::AuthenticatedSocket socket, const net::ClientHello& hello, net::Grant grant,
             std::span<const std::byte> first) override;
  void Serve(net::Stream stream, net::Grant grant);
  int64_t Expire(int64_t now_ns) override;

  const std::shared_ptr<Core> core_;
  const bool passive_;
  std::map<uint64_t, Unpaired> unpaired_;  // by token; acceptor thread only
  net::WaitingRoom<Waiting> waiting_;
  const std::unique_ptr<Admission> admission_;     // null: passive_ without MemberKeys, or not passive
  const std::unique_ptr<net::Acceptor> acceptor_;  // last: its thread uses everything above
};

}  // namespace nam::fabric::tcp
