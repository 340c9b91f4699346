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
#include "fabric/anonymous_mapping.h"
#include "fabric/fabric.h"
#include "fabric/verbs/completion_queue.h"
#include "fabric/verbs/connection.h"
#include "fabric/verbs/control.h"
#include "fabric/verbs/core.h"
#include "fabric/verbs/local_regions.h"

namespace nam::fabric::verbs {

/// A reliable queue pair of the NIC with its control channel.
///
/// Work requests live in rings of places from Post until a completion at or after them is taken:
///
///     taken ≤ posted          posted - taken ≤ send_depth, and the same for receives
///
/// All requests go through the NIC, so that completions come in posting order. A request that fails before
/// the NIC sees it (unregistered local buffer, unknown remote key, unaligned atomic) is posted as an empty
/// WRITE, and its place holds the status to report. Later requests are posted the same way, marked as
/// flushed.
///
///     kReady ──a request fails, a receive fails, the peer is gone, or its end failed──▶ kError
///
/// When it loses packets, Soft-RoCE completes READs and atomics whose answers have not come. So their last
/// word is set to a secret value when they are posted, and a completion that finds it unchanged is an error.
///
/// In kError the NIC flushes everything; the application sees the failed request's completion last.
class VerbsQueuePair final : public QueuePair, private CompletionSource {
 public:
  /// Creates an unconnected queue pair.
  static absl::StatusOr<std::unique_ptr<VerbsQueuePair>> Create(std::shared_ptr<Core> core,
                                                                VerbsCompletionQueue& queue,
                                                                const QueuePairOptions& options,
                                                                std::string peer);
  ~VerbsQueuePair() override;

  const Offer& offer() const { return nic_.offer; }
  absl::Status BringUp(const Offer& peer);
  /// Makes `socket` the control channel. A passive peer takes no messages.
  absl::Status Start(UniqueFd socket, bool peer_is_passive);

  uint64_t id() const override { return id_; }
  QueuePairState state() const override { return state_; }
  /// Includes the device, and the NIC's error if a request failed.
  std::string peer() const override;
  absl::Status Post(std::span<const WorkRequest> batch) override;
  absl::Status PostReceive(std::span<const ReceiveRequest> batch) override;
  absl::StatusOr<std::span<const std::byte>> View(RemoteAddress from, size_t bytes) override;
  /// Runs over the control channel, which reaches the peer's process even if the NIC's packets do not.
  absl::Status Disconnect(Deadline deadline) override;

 private:
  struct SendPlace {
    uint64_t id = 0;
    Opcode opcode = Opcode::kRead;
    Signal signal = Signal::kSignaled;
    CompletionStatus status = CompletionStatus::kOk;  // not kOk: the status to report, whatever the NIC says
    std::byte* answer = nullptr;  // a word that holds no_answer_ until the answer has come; null: unchecked
    uint64_t before = 0;          // its previous value
  };
  struct ReceivePlace {
    uint64_t id = 0;
    bool local_error = false;
  };
  /// A work request in the NIC's terms.
  struct Resolved {
    uint32_t nic_lkey = 0;
    uint32_t nic_rkey = 0;
    uint64_t remote_address = 0;
    bool inside = false;  // the address range fits the region as it was when its key was resolved
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
  /// `told`: the status for the peer's oldest unfinished request.
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
  const char* nic_error_ = nullptr;  // kError: the NIC's error, if the NIC failed a request
  bool lost_ = false;                // kError: the peer is lost
  uint64_t posted_at_error_ = 0;     // kError: sends_posted_ when the error occurred
  CompletionStatus oldest_pending_ = CompletionStatus::kFlushed;  // kError: as the peer reported it
  bool blocked_ = false;  // a request that must fail is posted: nothing after it may take effect

  const uint64_t no_answer_;  // a secret word
  std::vector<SendPlace> sends_;
  uint64_t sends_taken_ = 0;
  uint64_t sends_posted_ = 0;
  std::vector<ReceivePlace> receives_;
  uint64_t receives_taken_ = 0;
  uint64_t receives_posted_ = 0;

  LocalRegions local_regions_;
  std::unordered_map<uint32_t, ControlChannel::RemoteRegion> remote_regions_;
  // Copies of inline payloads, per place, if the NIC supports fewer inline bytes than the options promise.
  std::unique_ptr<AnonymousMapping> inline_copies_;  // on pages of its own, see memory.h
  MemoryRegionHandle inline_region_;

  // The batch being posted; never grows beyond what the constructor reserved.
  std::vector<ibv_send_wr> batch_;
  std::vector<ibv_sge> batch_parts_;
  std::vector<ibv_recv_wr> receive_batch_;
  std::vector<ibv_sge> receive_parts_;
};

}  // namespace nam::fabric::verbs
