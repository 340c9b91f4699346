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

/// The protocol of a multicast block stream: one sender, a memory server, to a group of compute servers.
///
///     sender                                             member m (all members alike)
///     ──────                                             ────────
///     opens group and board                              joins, posts receives
///        board.credit[m] ◀──────────── WRITE ─────────── absolute credit: total datagrams it can take
///     waits until every member gave credit
///     datagram 0, 1, 2 … ═══ group ════════════════════▶ bitmap of blocks; loss by gap or by silence
///        never beyond the least credit                   credit again, every so often
///        board.progress ─────────────── READ ──────────▶ in silence only: datagrams sent so far
///     progress: ended                                    READs missing blocks from their home
///
/// A member that gives no credit while all others wait for it is left behind and repairs by READ.
namespace nam::storage {

/// A datagram: this header, then `bytes` of a block's bytes. A block that exceeds one datagram is cut into
/// fragments of equal length, except that the last may be shorter. Little-endian.
struct FragmentHeader {
  static constexpr uint32_t kMagic = 0x464d414e;  // "NAMF"
  uint32_t magic;
  uint32_t datagram;     // its number in the stream, counted by credit
  uint64_t stream;       // tells the stream from the group's earlier ones
  uint32_t block;        // index into the sender's list
  uint32_t block_bytes;  // of all the block's runs, concatenated
  uint32_t offset;       // of this fragment within them
  uint32_t bytes;        // of this fragment
  uint32_t fragment;     // index in the block
  uint32_t fragments;    // of the block
};
static_assert(sizeof(FragmentHeader) == 40 && offsetof(FragmentHeader, stream) == 8 &&
              offsetof(FragmentHeader, fragment) == 32);

struct Fragment {
  FragmentHeader header;
  std::span<const std::byte> payload;
};

/// Nothing if the bytes are not a consistent fragment.
std::optional<Fragment> DecodeFragment(std::span<const std::byte> datagram);
/// Writes the header into the datagram's first bytes.
void EncodeFragmentHeader(const FragmentHeader& header, std::byte* datagram);

constexpr uint32_t FragmentsOf(uint32_t block_bytes, uint32_t fragment_bytes) {
  return (block_bytes + fragment_bytes - 1) / fragment_bytes;
}

inline constexpr uint32_t kMulticastMembersMax = 64;
/// Limits of one stream.
inline constexpr uint32_t kMulticastBlocksMax = 1u << 20;
inline constexpr uint32_t kMulticastDatagramsMax = 1u << 30;

/// One registered region per stream at the sender. Only the sender writes `progress`; only member m WRITEs
/// credit[m], a count from the stream's start that never decreases.
struct MulticastBoard {
  uint64_t progress;  // datagrams sent; kEnded is set when no more follow
  uint64_t unused[7];
  uint64_t credit[kMulticastMembersMax];  // 0: not joined yet
};
inline constexpr uint64_t kMulticastEnded = uint64_t{1} << 63;
/// The credit of a member that takes no more datagrams and delays no other.
inline constexpr uint64_t kMulticastLeft = UINT64_MAX;
static_assert(sizeof(MulticastBoard) == 64 + 8 * kMulticastMembersMax &&
              offsetof(MulticastBoard, credit) == 64);

/// Virtual time of the work on datagrams: about what a current core takes for the copy.
constexpr int64_t MulticastCpuNs(uint64_t datagrams, uint64_t bytes) {
  return static_cast<int64_t>(30 * datagrams + bytes / 12);
}

/// The plain contents of a stream: blocks in number order, and the byte ranges that are sent.
struct MulticastExtent {
  std::vector<ByteRange> runs;  // per block, ascending
  std::vector<RemotePtr<void>> blocks;
};

/// A receiver's description of a stream, from its sender.
struct MulticastAddress {
  MemoryServerId server;  // the sender
  uint64_t stream = 0;
  std::string group;            // DatagramQueuePair::GroupAddress
  fabric::RemoteKey board;      // MulticastBoard at offset 0
  uint32_t fragment_bytes = 0;  // of every fragment but a block's last
};

}  // namespace nam::storage
