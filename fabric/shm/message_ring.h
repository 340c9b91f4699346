#pragma once

#include <cstdint>

#include "fabric/shm/layout.h"
#include "fabric/shm/peer_process.h"

/// The two ends of a Channel in one process, for the thread of the queue pair.
namespace nam::fabric::shm {

/// Messages to the peer.
class Outbox {
 public:
  Outbox(ChannelSide* mine, ChannelSide* theirs, PeerProcess* peer)
      : mine_(*mine), theirs_(*theirs), peer_(*peer) {}

  bool HasRoom(uint32_t payload_bytes) const;
  /// Requires room. Returns the message's number and wakes the peer.
  uint64_t Place(const MessageHeader& header, const std::byte* payload);

  enum class Fate { kWaiting, kReceived, kTooLong };
  /// kReceived once the peer has posted the matching receive.
  Fate Check(uint64_t message, const MessageHeader& header) const;

  /// While set, the peer rings when it posts receives or frees room.
  void SetStarved(bool starved);

 private:
  ChannelSide& mine_;
  ChannelSide& theirs_;
  PeerProcess& peer_;
  uint64_t written_bytes_ = 0;
  uint64_t messages_ = 0;
};

/// Messages from the peer.
class Inbox {
 public:
  Inbox(ChannelSide* mine, ChannelSide* theirs, PeerProcess* peer)
      : mine_(*mine), theirs_(*theirs), peer_(*peer) {}

  /// Announces the capacity of the next receive; Publish() makes all announcements visible.
  void Post(uint32_t capacity_bytes);
  void Publish();

  enum class Next { kNone, kMessage, kGarbage };
  /// Copies the header of the next message.
  Next Peek(MessageHeader& header) const;
  /// Copies the message out and frees its room; `into` must have room for it.
  void Consume(const MessageHeader& header, std::byte* into);
  /// Called after Consume: rings if the peer waits for room.
  void RingIfStarved();

 private:
  ChannelSide& mine_;
  ChannelSide& theirs_;
  PeerProcess& peer_;
  uint64_t taken_bytes_ = 0;
  uint64_t taken_messages_ = 0;
  uint64_t receives_ = 0;
};

}  // namespace nam::fabric::shm
