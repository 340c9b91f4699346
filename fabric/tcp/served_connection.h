#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "fabric/net/sealed_stream.h"
#include "fabric/tcp/receive_queue.h"
#include "fabric/tcp/regions.h"
#include "fabric/tcp/wire.h"

namespace nam::fabric::tcp {

/// Executes one peer's requests, in order, and sends the replies. Belongs to one NIC thread and never blocks
/// it: Serve() does what is possible now and returns what it waits for.
///
///     kHeader ─▶ READ ───────────────────────────▶ kReadReply ─▶ kHeader
///             ─▶ WRITE ──────────────────────────▶ kPayload ───▶ kHeader
///             ─▶ SEND, WRITE_WITH_IMMEDIATE ─▶ kMatch ─▶ kPayload
///             ─▶ CAS, FETCH_ADD ─▶ kHeader
///     any error ─▶ kFailed: one reply with the status, then input is discarded until the peer closes
///                  (closing first could reset the connection before the peer has read the reply)
///
/// Bounds: one input and one output buffer. While output waits for the peer, or a message for a receive, no
/// input is read, so the peer's own socket fills up.
class ServedConnection {
 public:
  enum class Want { kInput, kOutput, kReceive, kTurn, kClose };

  /// `receives` is null for connections of a passive listener. `rights`: the most that the peer may do.
  ServedConnection(net::Stream stream, const Regions& regions, std::shared_ptr<ReceiveQueue> receives,
                   Access rights);

  /// kTurn: more work remains, but other connections come first.
  Want Serve();
  /// Ends the connection. A receive that is being filled completes with `status`.
  void Abort(CompletionStatus status);
  void NotifyPeerLost();
  /// Lets go of a retired region. True if the connection now has work.
  bool ReleaseRegion(uint32_t key);

  int fd() const { return stream_.fd(); }
  Want want() const { return want_; }
  /// Total bytes moved in both directions.
  uint64_t bytes_moved() const { return bytes_moved_; }

 private:
  static constexpr size_t kInputBytes = 128u << 10;
  // Much larger than a usual READ's reply: the kernel packs segments best when given much at once. Pages that
  // no reply ever used cost nothing.
  static constexpr size_t kOutputBytes = 1024u << 10;

  enum class Step { kHeader, kMatch, kPayload, kReadReply, kFailed };

  size_t Available() const { return in_end_ - in_begin_; }
  size_t OutputRoom() const { return kOutputBytes - out_end_; }

  // Each returns what to wait for, or nothing if done and the next step can follow.
  std::optional<Want> Advance();
  std::optional<Want> FlushThenFill();
  std::optional<Want> Flush();
  std::optional<Want> Fill();
  std::optional<Want> BeginRequest();
  std::optional<Want> Match();
  std::optional<Want> PlacePayload();
  std::optional<Want> CopyReadReply();

  void BeginTransfer();
  /// Regions::Resolve limited to the connection's rights.
  CompletionStatus Resolve(uint32_t bytes, Access wanted);
  void ExecuteAtomic(std::byte* word);
  void FinishPayload();
  void Reply(CompletionStatus status, uint64_t value);
  void Fail(CompletionStatus status);

  net::Stream stream_;
  const Regions& regions_;
  const std::shared_ptr<ReceiveQueue> receives_;
  const Access rights_;
  Want want_ = Want::kInput;

  Step step_ = Step::kHeader;
  RequestHeader request_;
  uint32_t sequence_ = 0;
  std::byte* at_ = nullptr;                     // kPayload: next byte to place; kReadReply: next byte to send
  size_t left_ = 0;                             // bytes from at_
  std::optional<ReceiveQueue::Entry> receive_;  // being filled
  std::vector<std::byte> snapshot_;             // rest of a READ whose region was retired

  const std::unique_ptr<std::byte[]> input_;
  size_t in_begin_ = 0;
  size_t in_end_ = 0;
  bool drained_ = false;  // the last read returned less than asked for
  const std::unique_ptr<std::byte[]> output_;
  size_t out_begin_ = 0;
  size_t out_end_ = 0;
  uint64_t bytes_moved_ = 0;
  uint64_t turn_ends_at_ = 0;
};

}  // namespace nam::fabric::tcp
