#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "fabric/fabric.h"

namespace nam::bench {

/// What begins every message of an exchange; columns of codes follow (shuffle_plan.h).
struct ShuffleHeader {
  enum Kind : uint16_t { kBuild, kProbe, kCredit };
  uint16_t kind = kBuild;
  uint16_t channel = 0;
  uint32_t rows = 0;  // credits: messages that may follow
  uint32_t last = 0;  // 1: the sender sends no more of this kind on the channel
  uint32_t reserved = 0;
};
static_assert(sizeof(ShuffleHeader) == 16);

struct ExchangeOptions {
  uint32_t channels = 1;
  uint32_t batch_bytes = 16 << 10;  // of a message, at most fabric::kMaxSendBytes
  uint32_t credits = 4;             // messages of a channel that one peer may have sent ahead; even
  int64_t timeout_us = 10'000'000;  // without any completion
};

/// One thread's share of an all-to-all exchange between compute servers: thread t of every server talks to
/// the threads t of the others, over a reliable queue pair each, by SEND and RECEIVE.
///
///     rows ─▶ buffer of (channel, peer) ─full─▶ SEND ══▶ RECEIVE ─▶ inbox ─▶ handled in place ─▶ posted
///     again
///             two, in turn                       ▲                                  │
///                                                └──── credit, two messages at once ─┘
///
/// Rows are written where they are sent from and read where they are received: nothing is copied in between.
/// A channel is one leg of a query's way through its joins. Each has credits of its own, so that a leg that
/// is held up does not hold up those behind it. The thread's own rows have a buffer too, which is never sent.
/// One thread; after an error it is of no use.
class Exchange {
 public:
  static absl::StatusOr<std::unique_ptr<Exchange>> Open(fabric::Fabric& fabric, uint32_t self, uint32_t peers,
                                                        const ExchangeOptions& options);
  ~Exchange();

  /// Connects the exchanges of one thread of two servers; by the thread that owns both.
  static absl::Status Connect(Exchange& from, Exchange& to);

  uint32_t self() const { return self_; }
  uint32_t peers() const { return static_cast<uint32_t>(peers_.size()); }
  const ExchangeOptions& options() const { return options_; }

  /// Rows on their way to a peer.
  struct Outgoing {
    std::byte* data = nullptr;  // of the message, with room for the header
    uint32_t rows = 0;
  };
  /// To be written to only while Free.
  Outgoing& outgoing(uint32_t channel, uint32_t peer) { return ChannelOf(channel, peer).outgoing; }
  /// The buffer is not under way any more.
  bool Free(uint32_t channel, uint32_t peer) const {
    const Channel& at = ChannelOf(channel, peer);
    return !at.under_way[at.filling];
  }
  /// The peer has room for one more message.
  bool MaySend(uint32_t channel, uint32_t peer) const { return ChannelOf(channel, peer).credits > 0; }
  /// Sends the buffer's first `bytes` with this header, and turns to the other buffer.
  absl::Status Send(uint32_t peer, const ShuffleHeader& header, uint32_t bytes);

  struct Message {
    uint32_t peer = 0;
    uint32_t buffer = 0;
    std::byte* data = nullptr;
    ShuffleHeader header;
  };
  /// Takes completions; waits for one if asked to. CANCELLED once `cancel` is set.
  absl::Status Poll(bool wait, const std::atomic<bool>& cancel);
  /// The next message of the kind on the highest channel that has one, not below `least`.
  std::optional<Message> Take(uint16_t kind, uint32_t least);
  /// The message has been worked on: its buffer is received into again.
  absl::Status Done(const Message& message);

  uint64_t sent_bytes() const { return sent_bytes_; }
  uint64_t sent_messages() const { return sent_messages_; }

 private:
  struct Channel {
    Outgoing outgoing;
    uint32_t filling = 0;
    std::array<bool, 2> under_way = {false, false};
    uint32_t credits = 0;
    uint32_t owed = 0;  // messages of the peer that were handled and not told
  };
  struct Peer {
    std::unique_ptr<fabric::QueuePair> queue_pair;
    std::vector<Channel> channels;
  };
  Exchange(fabric::Fabric& fabric, uint32_t self, uint32_t peers, const ExchangeOptions& options);
  const Channel& ChannelOf(uint32_t channel, uint32_t peer) const { return peers_[peer].channels[channel]; }
  Channel& ChannelOf(uint32_t channel, uint32_t peer) { return peers_[peer].channels[channel]; }
  /// Credits of a peer come two buffers' worth at a time; each message that brings them needs a receive too.
  uint32_t returned_at_once() const { return options_.credits / 2; }
  uint32_t receives() const { return options_.channels * (options_.credits + 2); }
  uint32_t buffers() const { return receives() + 2 * options_.channels; }
  fabric::QueuePairOptions PairOptions() const;
  fabric::LocalBuffer BufferOf(uint32_t peer, uint32_t buffer, uint32_t bytes) const;
  absl::Status Adopt(uint32_t peer, std::unique_ptr<fabric::QueuePair> queue_pair);
  absl::Status PostReceive(uint32_t peer, uint32_t buffer);
  absl::Status Received(const fabric::Completion& completion);
  absl::Status ReturnCredits(uint32_t peer, uint32_t channel);

  fabric::Fabric& fabric_;
  const uint32_t self_;
  const ExchangeOptions options_;
  // Destroyed in reverse: queue pairs, their completion queue, the memory.
  std::unique_ptr<fabric::MemoryRegion> region_;
  std::unique_ptr<fabric::CompletionQueue> completions_;
  std::unique_ptr<fabric::Listener> listener_;
  std::vector<Peer> peers_;
  std::array<std::vector<std::deque<Message>>, 2> inbox_;  // by kind, then channel
  std::array<fabric::Completion, 32> done_;
  uint64_t sent_bytes_ = 0;
  uint64_t sent_messages_ = 0;
};

}  // namespace nam::bench
