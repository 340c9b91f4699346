#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/unique_fd.h"
#include "fabric/admission.h"
#include "fabric/fabric.h"
#include "fabric/net/acceptor.h"
#include "fabric/net/waiting_room.h"
#include "fabric/verbs/core.h"
#include "fabric/verbs/wire.h"

namespace nam::fabric::verbs {

/// Receives the connections that the acceptor has authenticated and that have sent their offer:
///
///     acceptor_ ─┬─ passive ─▶ queue pair, control thread
///                └─ else ────▶ waiting_ ─▶ Accept
class VerbsListener final : public Listener, private net::Door {
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
  struct Waiting {
    UniqueFd socket;
    Offer offer;
    std::string peer;
  };

  VerbsListener(std::shared_ptr<Core> core, bool passive, std::unique_ptr<Admission> admission,
                std::unique_ptr<net::Acceptor> acceptor);
  net::ServerVerdict Judge(const net::ClientHello& hello) override;
  void Admit(net::AuthenticatedSocket socket, const net::ClientHello& hello, net::Grant grant,
             std::span<const std::byte> first) override;
  int64_t Expire(int64_t now_ns) override { return waiting_.Expire(now_ns); }
  /// Creates the queue pair and hands it to the control thread.
  absl::Status Serve(UniqueFd socket, const Offer& offer, net::Grant grant, const std::string& peer);

  const std::shared_ptr<Core> core_;
  const bool passive_;
  net::WaitingRoom<Waiting> waiting_;
  const std::unique_ptr<Admission> admission_;     // null: passive_ without MemberKeys, or not passive
  const std::unique_ptr<net::Acceptor> acceptor_;  // last: its thread uses everything above
};

}  // namespace nam::fabric::verbs
