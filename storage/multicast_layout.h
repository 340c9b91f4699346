#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/strong_id.h"
#include "fabric/fabric.h"
#include "storage/block_runs.h"
#include "storage/remote_ptr.h"

/// What travels in a multicast block stream: one sender, a memory server, to a group of compute servers.
///
///     sender                                             member m (all members alike)
///     ──────                                             ────────
///     opens group and board                              joins, posts receives
///        board.credit[m] ◀──────────── WRITE ─────────── absolute credit: datagrams it can take in all
///     waits until every member gave credit
///     datagram 0, 1, 2 … ═══ group ════════════════════▶ bitmap of blocks; loss by gap or by silence
///        never beyond the least credit                   credit again, every so often
///        board.progress ─────────────── READ ──────────▶ in silence only: what was sent by now
///     progress: ended                                    READs what it misses from the block's home
///
/// A member that gives no credit while all others wait for it is left behind: it repairs by READ.
namespace nam::storage {

/// A datagram: this header, then `bytes` of a block's bytes. A block longer than one datagram carries is cut
/// into fragments of one length, the last one shorter. Little-endian.
struct FragmentHeader {
  static constexpr uint32_t kMagic = 0x464d414e;  // "NAMF"
  uint32_t magic;
  uint32_t datagram;     // its number in the stream; credit counts these
  uint64_t stream;       // tells the group's stream from those before it
  uint32_t block;        // index into the sender's list
  uint32_t block_bytes;  // of all the block's runs, one after the other
  uint32_t offset;       // of this fragment in them
  uint32_t bytes;        // of this fragment
  uint32_t fragment;     // its number in the block
  uint32_t fragments;    // that the block has
};
static_assert(sizeof(FragmentHeader) == 40 && offsetof(FragmentHeader, stream) == 8 &&
              offsetof(FragmentHeader, fragment) == 32);

struct Fragment {
  FragmentHeader header;
  std::span<const std::byte> payload;
};

/// Nothing for bytes that are no fragment, or contradict themselves.
std::optional<Fragment> DecodeFragment(std::span<const std::byte> datagram);
/// The header alone into the datagram's first bytes.
void EncodeFragmentHeader(const FragmentHeader& header, std::byte* datagram);

constexpr uint32_t FragmentsOf(uint32_t block_bytes, uint32_t fragment_bytes) {
  return (block_bytes + fragment_bytes - 1) / fragment_bytes;
}

inline constexpr uint32_t kMulticastMembersMax = 64;
/// Blocks of one stream, and its datagrams.
inline constexpr uint32_t kMulticastBlocksMax = 1u << 20;
inline constexpr uint32_t kMulticastDatagramsMax = 1u << 30;

/// One registered region of the sender for each stream. The sender alone writes `progress`; member m alone
/// WRITEs credit[m], a count from the stream's start that never falls.
struct MulticastBoard {
  uint64_t progress;  // datagrams sent; kEnded is set when no more will be
  uint64_t unused[7];
  uint64_t credit[kMulticastMembersMax];  // 0: has not joined yet
};
inline constexpr uint64_t kMulticastEnded = uint64_t{1} << 63;
/// The credit of a member that takes no more datagrams and holds nobody up.
inline constexpr uint64_t kMulticastLeft = UINT64_MAX;
static_assert(sizeof(MulticastBoard) == 64 + 8 * kMulticastMembersMax &&
              offsetof(MulticastBoard, credit) == 64);

/// What the work on datagrams is in virtual time: about what one core of today takes for the copy.
constexpr int64_t MulticastCpuNs(uint64_t datagrams, uint64_t bytes) {
  return static_cast<int64_t>(30 * datagrams + bytes / 12);
}

/// What a stream consists of, without any meaning: blocks, in the order of their numbers, and which of
/// their bytes are sent.
struct MulticastExtent {
  std::vector<ByteRange> runs;  // of each of its blocks, ascending
  std::vector<RemotePtr<void>> blocks;
};

/// What a receiver must know of a stream; from its sender.
struct MulticastAddress {
  MemoryServerId server;  // the sender
  uint64_t stream = 0;
  std::string group;            // DatagramQueuePair::GroupAddress
  fabric::RemoteKey board;      // MulticastBoard at offset 0
  uint32_t fragment_bytes = 0;  // of every fragment of a block but the last
};

}  // namespace nam::storage
