#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "absl/status/statusor.h"
#include "base/unique_fd.h"
#include "fabric/fabric.h"
#include "fabric/tcp/regions.h"
#include "fabric/verbs/completion_queue.h"
#include "fabric/verbs/connection.h"
#include "fabric/verbs/control.h"
#include "fabric/verbs/core.h"
#include "fabric/verbs/local_regions.h"

namespace nam::fabric::verbs {

/// A reliable queue pair of the NIC, and its control channel.
///
/// Work requests live in rings of places from Post until a completion at or after them is taken:
///
///     taken ≤ posted          posted - taken ≤ send_depth, and the same for receives
///
/// Everything goes through the NIC, so that completions come in posting order: what the contract lets fail
/// before the NIC sees it (a local buffer that is not registered, a key that the peer does not know, an
/// unaligned atomic) is posted as a WRITE of nothing, and its place says what it completes with. What follows
/// it is posted so too, flushed in advance.
///
///     kReady ──a request fails, a receive fails, the peer is gone, or its end failed──▶ kError
///
/// Soft-RoCE that loses packets completes READs and atomics whose answers have not come. So their last word
/// is set to one that nobody else knows when they are posted, and a completion that finds it there is an
/// error.
///
/// In kError the NIC flushes everything; the place of the failure is what the application saw last.
class VerbsQueuePair final : public QueuePair, private CompletionSource {
 public:
  /// Not connected yet.
  static absl::StatusOr<std::unique_ptr<VerbsQueuePair>> Create(std::shared_ptr<Core> core,
                                                                VerbsCompletionQueue& queue,
                                                                const QueuePairOptions& options,
                                                                std::string peer);
  ~VerbsQueuePair() override;

  const Offer& offer() const { return nic_.offer; }
  absl::Status BringUp(const Offer& peer);
  /// From here on `socket` is the control channel. A passive peer takes no messages.
  absl::Status Start(UniqueFd socket, bool peer_is_passive);

  uint64_t id() const override { return id_; }
  QueuePairState state() const override { return state_; }
  /// With the device, and what the NIC said when it failed a request.
  std::string peer() const override;
  absl::Status Post(std::span<const WorkRequest> batch) override;
  absl::Status PostReceive(std::span<const ReceiveRequest> batch) override;
  absl::StatusOr<std::span<const std::byte>> View(RemoteAddress from, size_t bytes) override;
  /// Over the control channel, which reaches the peer's process where packets of the NIC do not.
  absl::Status Disconnect(Deadline deadline) override;

 private:
  struct SendPlace {
    uint64_t id = 0;
    Opcode opcode = Opcode::kRead;
    Signal signal = Signal::kSignaled;
    CompletionStatus status =
        CompletionStatus::kOk;  // not kOk: what it completes with, whatever the NIC says
    std::byte* answer =
        nullptr;          // a word that is no_answer_ until what was asked for has come; null: unknown
    uint64_t before = 0;  // what was there
  };
  struct ReceivePlace {
    uint64_t id = 0;
    bool local_error = false;
  };
  /// A work request as the NIC addresses it.
  struct Resolved {
    uint32_t nic_lkey = 0;
    uint32_t nic_rkey = 0;
    uint64_t remote_address = 0;
    bool inside = false;  // the region, as it was when its key was asked for
  };

  VerbsQueuePair(std::shared_ptr<Core> core, VerbsCompletionQueue& queue, const QueuePairOptions& options,
                 std::string peer);
  absl::Status PrepareInlineCopies();

  void Enqueue(const WorkRequest& request);
  CompletionStatus Resolve(const WorkRequest& request, Resolved& resolved);
  CompletionStatus ResolveRemote(const WorkRequest& request, Resolved& resolved);
  void Append(const WorkRequest& request, const Resolved& resolved);
  void AppendNothing(uint64_t position);
  void ExpectAnswer(const WorkRequest& request, SendPlace& place);
  void AppendAtomic(const WorkRequest& request, const Resolved& resolved);
  ibv_send_wr& AppendOne(uint64_t position, std::byte* data, uint32_t bytes, uint32_t lkey);

  std::optional<Completion> Translate(const ibv_wc& completion) override;
  std::optional<Completion> TranslateSend(const ibv_wc& completion);
  std::optional<Completion> TranslateReceive(const ibv_wc& completion);
  CompletionStatus SendStatus(const ibv_wc& completion, const SendPlace& place, uint64_t position);
  bool AnswersCame(uint64_t position) const;
  bool AnswerCame(const SendPlace& place) const;
  CompletionStatus ReceiveStatus(const ibv_wc& completion, const ReceivePlace& place);
  CompletionStatus WhyUnanswered(Opcode opcode);
  /// `told`: what the peer's oldest unfinished request is to be told.
  void Fail(CompletionStatus status, CompletionStatus told);
  absl::Status PostError(const char* what, int error);

  const std::shared_ptr<Core> core_;
  VerbsCompletionQueue& queue_;
  const QueuePairOptions options_;
  const uint32_t id_;
  const std::string peer_;
  NewQueuePair nic_;
  std::shared_ptr<ControlChannel> channel_;
  uint32_t path_mtu_bytes_ = 0;
  bool peer_is_passive_ = false;
  bool attached_ = false;

  QueuePairState state_ = QueuePairState::kReady;
  const char* nic_error_ = nullptr;  // kError: of the request that failed, if the NIC failed it
  bool lost_ = false;                // kError: because the peer is
  uint64_t posted_at_error_ = 0;     // kError: what was pending then
  CompletionStatus oldest_pending_ = CompletionStatus::kFlushed;  // kError: what the peer said of it
  bool blocked_ = false;  // a request that must fail is posted: nothing after it may take place

  const uint64_t no_answer_;  // a word that nobody else knows
  std::vector<SendPlace> sends_;
  uint64_t sends_taken_ = 0;
  uint64_t sends_posted_ = 0;
  std::vector<ReceivePlace> receives_;
  uint64_t receives_taken_ = 0;
  uint64_t receives_posted_ = 0;

  LocalRegions local_regions_;
  std::unordered_map<uint32_t, ControlChannel::RemoteRegion> remote_regions_;
  // Where the NIC takes fewer inline bytes than the options promise: a copy of them per place.
  std::unique_ptr<tcp::Mapping> inline_copies_;  // pages of its own, see memory.h
  MemoryRegionHandle inline_region_;

  // Of the batch being posted; never grow beyond what the constructor reserved.
  std::vector<ibv_send_wr> batch_;
  std::vector<ibv_sge> batch_parts_;
  std::vector<ibv_recv_wr> receive_batch_;
  std::vector<ibv_sge> receive_parts_;
};

}  // namespace nam::fabric::verbs
