#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/clock.h"
#include "base/strong_id.h"
#include "fabric/member.h"

/// The verbs-shaped transport that everything above is written for. One Fabric per process stands
/// for a device context and its protection domain:
///
///     Fabric ──Register/Allocate──▶ MemoryRegion (rkey, lkey, rights)
///        ├────CreateCompletionQueue▶ CompletionQueue ◀── completions, in posting order per queue pair
///        ├────Connect──────────────▶ QueuePair ── Post(batch of WorkRequest) ──▶ the peer's regions
///        ├────Listen───────────────▶ Listener ── Accept ─▶ QueuePair (or served passively)
///        └────CreateDatagramQueuePair▶ DatagramQueuePair ── Post ──▶ one peer, or a multicast group
///
/// What the engine may rely on, in every provider:
///  - WRITEs on one queue pair are placed in posting order; a READ posted after a READ on the same
///    queue pair sees memory no older. Nothing is promised inside one operation beyond 8 aligned
///    bytes, nor between queue pairs.
///  - An atomic on a queue pair takes effect after the WRITEs that were posted before it, and before the
///    READs that are posted after it: of two clients that each change a word and then READ the other's, one
///    sees the change.
///  - A work request that cannot be executed (bounds, rights, key, alignment, lost peer) completes
///    with an error, signaled or not, and changes nothing. The queue pair is then in the error state
///    and every later work request completes with kFlushed.
///  - 64-bit atomics are exact among the fabric's own operations on the same word; a word changed by
///    CAS or FETCH_ADD is changed in no other way, not even by its owner's CPU.
///
/// Threads: a Fabric, its regions and listeners may be used by any thread. A CompletionQueue and the
/// queue pairs attached to it belong to one thread at a time.
namespace nam::fabric {

enum class Kind : uint8_t { kShm, kTcp, kVerbs, kSim };
std::string_view KindName(Kind kind);
absl::StatusOr<Kind> ParseKind(std::string_view name);
/// As ParseKind, for a cluster of real processes: `sim` needs a simulated world.
absl::StatusOr<Kind> ParseRealKind(std::string_view name);

/// Rights of remote peers on a region. The owner itself may always do everything.
enum class Access : uint8_t { kNone = 0, kRead = 1, kWrite = 2, kAtomic = 4, kAll = 7 };
constexpr Access operator|(Access a, Access b) {
  return static_cast<Access>(static_cast<uint8_t>(a) | static_cast<uint8_t>(b));
}
constexpr Access operator&(Access a, Access b) {
  return static_cast<Access>(static_cast<uint8_t>(a) & static_cast<uint8_t>(b));
}
constexpr bool Allows(Access rights, Access wanted) {
  return (static_cast<uint8_t>(rights) & static_cast<uint8_t>(wanted)) == static_cast<uint8_t>(wanted);
}

/// Names a region to remote peers. 0 is no region. Never used again by the process once deregistered.
struct RemoteKey {
  uint32_t value = 0;
  bool operator==(const RemoteKey&) const = default;
};
/// Names a registered region to the local side of a work request.
struct LocalKey {
  uint32_t value = 0;
};

/// Bytes in a local registered region. Must stay untouched until the operation's completion.
struct LocalBuffer {
  std::byte* data = nullptr;
  uint32_t bytes = 0;
  LocalKey lkey;
};

/// Where in a peer's region: bytes from the region's start.
struct RemoteAddress {
  RemoteKey rkey;
  uint64_t offset = 0;
};

/// Registered memory. Destruction deregisters first: operations on it that arrive later complete
/// with kRemoteAccessError at their initiator. Created and destroyed by any thread.
class MemoryRegion {
 public:
  virtual ~MemoryRegion() = default;
  MemoryRegion(const MemoryRegion&) = delete;
  MemoryRegion& operator=(const MemoryRegion&) = delete;

  std::byte* data() const { return data_; }
  size_t bytes() const { return bytes_; }
  Access access() const { return access_; }
  RemoteKey rkey() const { return rkey_; }
  LocalKey lkey() const { return lkey_; }
  /// Checked: [offset, offset + bytes) must lie in the region.
  LocalBuffer Slice(size_t offset, size_t bytes) const;
  /// Takes rkey and lkey back, as destruction does. True once no peer can change the memory through them
  /// any more, also not by what it posted before; false while a peer that stands still is in the middle
  /// of an operation (only where peers touch the memory themselves): ask again. Idempotent, any thread.
  virtual bool Revoke() = 0;

 protected:
  MemoryRegion() = default;
  std::byte* data_ = nullptr;
  size_t bytes_ = 0;
  Access access_ = Access::kNone;
  RemoteKey rkey_;
  LocalKey lkey_;
};

enum class Opcode : uint8_t {
  kRead,
  kWrite,
  kWriteWithImmediate,
  kCompareAndSwap,
  kFetchAdd,
  kSend,
  kReceive
};
std::string_view OpcodeName(Opcode opcode);

enum class Signal : uint8_t { kUnsignaled, kSignaled };

/// One operation, a value. `id` comes back in its completion. What a READ or an atomic brings goes to bytes
/// that no other request in flight uses: a provider may write there before the answer comes.
struct WorkRequest {
  uint64_t id = 0;
  Opcode opcode = Opcode::kRead;
  Signal signal = Signal::kSignaled;
  /// The payload is copied at Post, so the buffer is free at once; at most
  /// QueuePairOptions::inline_bytes_max, WRITE and SEND only.
  bool inlined = false;
  uint32_t immediate = 0;
  LocalBuffer local;
  RemoteAddress remote;
  uint64_t compare = 0;
  uint64_t swap_or_add = 0;

  static WorkRequest Read(uint64_t id, LocalBuffer into, RemoteAddress from, Signal s = Signal::kSignaled) {
    return {.id = id, .opcode = Opcode::kRead, .signal = s, .local = into, .remote = from};
  }
  static WorkRequest Write(uint64_t id, LocalBuffer from, RemoteAddress to, Signal s = Signal::kSignaled) {
    return {.id = id, .opcode = Opcode::kWrite, .signal = s, .local = from, .remote = to};
  }
  /// Placed like a WRITE, then consumes one receive of the peer, whose completion carries `immediate`.
  static WorkRequest WriteWithImmediate(uint64_t id, LocalBuffer from, RemoteAddress to, uint32_t immediate,
                                        Signal s = Signal::kSignaled) {
    return {.id = id,
            .opcode = Opcode::kWriteWithImmediate,
            .signal = s,
            .immediate = immediate,
            .local = from,
            .remote = to};
  }
  /// The word at `at` (8-byte aligned) becomes `swap` if it was `compare`; `old` (8 bytes) receives what it
  /// was.
  static WorkRequest CompareAndSwap(uint64_t id, LocalBuffer old, RemoteAddress at, uint64_t compare,
                                    uint64_t swap, Signal s = Signal::kSignaled) {
    return {.id = id,
            .opcode = Opcode::kCompareAndSwap,
            .signal = s,
            .local = old,
            .remote = at,
            .compare = compare,
            .swap_or_add = swap};
  }
  static WorkRequest FetchAdd(uint64_t id, LocalBuffer old, RemoteAddress at, uint64_t add,
                              Signal s = Signal::kSignaled) {
    return {
        .id = id, .opcode = Opcode::kFetchAdd, .signal = s, .local = old, .remote = at, .swap_or_add = add};
  }
  static WorkRequest Send(uint64_t id, LocalBuffer from, Signal s = Signal::kSignaled) {
    return {.id = id, .opcode = Opcode::kSend, .signal = s, .local = from};
  }
};

/// A buffer for one incoming SEND (or none for a WRITE with immediate).
struct ReceiveRequest {
  uint64_t id = 0;
  LocalBuffer into;
};

enum class CompletionStatus : uint8_t {
  kOk,
  kLocalError,            // local buffer outside its region, or its key is unknown
  kRemoteAccessError,     // key, bounds or rights at the peer
  kRemoteInvalidRequest,  // malformed: unaligned atomic, message longer than the receive buffer
  kPeerLost,              // the peer died, closed, or did not answer within the retry time
  kFlushed,               // posted on, or pending at, a queue pair in the error state
};
std::string_view CompletionStatusName(CompletionStatus status);

struct Completion {
  uint64_t id = 0;
  uint64_t queue_pair = 0;  // QueuePair::id()
  CompletionStatus status = CompletionStatus::kOk;
  Opcode opcode = Opcode::kRead;
  bool has_immediate = false;
  uint32_t immediate = 0;
  uint32_t bytes = 0;  // received, for kReceive
  bool ok() const { return status == CompletionStatus::kOk; }
};

/// Completions of the queue pairs attached to it. Owned and polled by one thread.
class CompletionQueue {
 public:
  virtual ~CompletionQueue() = default;
  /// Takes up to completions.size() without waiting; the number taken.
  virtual size_t Poll(std::span<Completion> completions) = 0;
  /// Like Poll, but waits for at least one until `deadline`. 0 when it passed or Wake() was called.
  virtual size_t Wait(std::span<Completion> completions, Deadline deadline) = 0;
  /// Makes the current or the next Wait return; any thread.
  virtual void Wake() = 0;
};

struct QueuePairOptions {
  uint32_t send_depth = 128;     // work requests in flight
  uint32_t receive_depth = 128;  // receives posted
  uint32_t inline_bytes_max = 128;
  /// Of Connect to a passive listener that has MemberKeys: whose connection it is.
  MemberCredentials member;
};

enum class QueuePairState : uint8_t { kReady, kError };

/// A reliable connection. Destruction flushes nothing: wait for what must be complete.
/// Belongs to the thread of its completion queue; is destroyed before it.
class QueuePair {
 public:
  virtual ~QueuePair() = default;
  /// Unique in this process, in completions.
  virtual uint64_t id() const = 0;
  virtual QueuePairState state() const = 0;
  /// `memory server 2 at 10.0.0.2:7000`-like text for messages.
  virtual std::string peer() const = 0;
  /// Posts all or none. RESOURCE_EXHAUSTED when the send queue lacks room (take completions first),
  /// INVALID_ARGUMENT for what no provider would take (inline too long, atomic not of 8 bytes,
  /// message above the limit). An unsignaled request keeps its place until a later signaled one completes.
  virtual absl::Status Post(std::span<const WorkRequest> batch) = 0;
  virtual absl::Status PostReceive(std::span<const ReceiveRequest> batch) = 0;
  /// Only with Capabilities::in_place: the peer's bytes themselves, readable until this queue pair is
  /// destroyed. FAILED_PRECONDITION elsewhere, PERMISSION_DENIED / OUT_OF_RANGE like a READ's errors.
  virtual absl::StatusOr<std::span<const std::byte>> View(RemoteAddress from, size_t bytes) = 0;
  /// Ends the connection; what is pending completes with an error. OK: the peer has seen the end, so nothing
  /// that was posted changes its memory any more. UNAVAILABLE: by the deadline it has not said so, and
  /// something may still arrive there; ask again.
  virtual absl::Status Disconnect(Deadline deadline) = 0;
};

/// The longest payload of a datagram, in every provider; a network may allow less.
inline constexpr uint32_t kMaxDatagramBytes = 4096;
/// What a receive of a datagram needs before the payload (verbs puts the global route header there).
inline constexpr uint32_t kDatagramHeadroomBytes = 40;

struct DatagramOptions {
  uint32_t send_depth = 128;
  uint32_t receive_depth = 512;
};

/// Whom a datagram goes to; of the queue pair that made it, and valid as long as that lives.
struct DatagramTarget {
  uint32_t handle = 0;
};

struct DatagramRequest {
  uint64_t id = 0;
  Signal signal = Signal::kSignaled;
  LocalBuffer local;
  DatagramTarget to;
};

/// Unreliable datagrams, to one peer or to a multicast group. What is sent arrives once, more than once,
/// in another order, or not at all; what arrives is whole and comes from a member of the cluster.
/// Completion of a send (kSend) says only that its buffer is free; completion of a receive (kReceive)
/// carries the payload's bytes, which begin kDatagramHeadroomBytes into the posted buffer. A datagram that
/// finds no receive posted, or is longer than it, is dropped without a completion.
/// A group has one sender: the queue pair that opened it. Belongs to the thread of its completion queue; is
/// destroyed before it.
class DatagramQueuePair {
 public:
  virtual ~DatagramQueuePair() = default;
  virtual uint64_t id() const = 0;
  /// The longest payload that reaches others: kMaxDatagramBytes or what the network's MTU leaves.
  virtual uint32_t bytes_max() const = 0;
  /// What peers pass to Resolve.
  virtual std::string address() const = 0;
  virtual absl::StatusOr<DatagramTarget> Resolve(const std::string& address) = 0;

  /// Makes this queue pair the sender of group `number` (unique in the cluster, from the catalog). Members
  /// join by GroupAddress(). FAILED_PRECONDITION names why multicast does not work here, and a hint.
  virtual absl::StatusOr<DatagramTarget> OpenGroup(uint32_t number) = 0;
  virtual absl::StatusOr<std::string> GroupAddress(DatagramTarget group) const = 0;
  /// From when it returns OK on, datagrams of the group reach this queue pair; never its own.
  virtual absl::Status Join(const std::string& group_address) = 0;
  virtual absl::Status Leave(const std::string& group_address) = 0;

  /// Posts all or none, of 0 to bytes_max() bytes each. RESOURCE_EXHAUSTED when the send queue lacks room,
  /// INVALID_ARGUMENT for more bytes or an unknown target. A buffer that is not registered completes with
  /// kLocalError and is not sent.
  virtual absl::Status Post(std::span<const DatagramRequest> batch) = 0;
  virtual absl::Status PostReceive(std::span<const ReceiveRequest> batch) = 0;
};

/// The text of a failed completion: operation, status, queue pair state, peer, likely cause.
absl::Status CompletionError(const Completion& completion, const QueuePair& queue_pair);

/// A listen address that leaves the choice to the provider: a free port of `host`, or a socket name.
std::string AnyAddress(Kind kind, const std::string& host);

/// What the owner of a passive listener knows of members.
class MemberKeys {
 public:
  virtual ~MemberKeys() = default;
  /// For each of them the key by which it proves itself here; nothing if no such member lives. UNAVAILABLE:
  /// not known now. One call at a time, on a thread of the fabric; may take long.
  virtual absl::StatusOr<std::vector<std::optional<MemberKey>>> KeysOf(std::span<const MemberId> members) = 0;
};

struct ListenOptions {
  /// tcp: host:port (port 0 picks one). shm: path of the UNIX socket.
  std::string address;
  /// True: every connection is accepted and served by the fabric's own threads for one-sided
  /// operations (a memory server). False: Accept() hands connections to the application.
  bool passive = true;
  /// Of passive ones; outlives the listener. With them a connection belongs to the member that it proves, and
  /// one that names no member may only READ. Without them every connection may do what keys allow.
  MemberKeys* member_keys = nullptr;
};

class Listener {
 public:
  virtual ~Listener() = default;
  /// What peers pass to Connect.
  virtual std::string address() const = 0;
  /// Not for passive listeners. DEADLINE_EXCEEDED when nobody came.
  virtual absl::StatusOr<std::unique_ptr<QueuePair>> Accept(CompletionQueue& completions,
                                                            const QueuePairOptions& options,
                                                            Deadline deadline) = 0;
  /// Ends all connections of the member, also those that are being made; the owner's KeysOf does not know the
  /// member any more. True once nothing that the member has posted here, or posts, changes a byte; false
  /// while a peer that stands still is in the middle of an operation (only where peers touch the memory
  /// themselves): ask again. `kill` ends the processes of such peers, as far as that is possible. Idempotent,
  /// any thread.
  virtual bool Fence(MemberId member, bool kill) = 0;
  /// Those with connections, ascending. Any thread.
  virtual std::vector<MemberId> Members() = 0;
};

struct Capabilities {
  bool in_place = false;         // QueuePair::View
  bool posts_are_calls = false;  // each Post is a system call, so work requests had better share one
};

/// What became of datagrams that never reached an application, since the fabric was opened.
struct DatagramDrops {
  uint64_t no_receive = 0;  // posted, or it was too short
  uint64_t overrun = 0;     // overwritten in a ring, or lost in a socket's buffer
  uint64_t refused = 0;     // malformed, or not of this cluster
};

/// A one-shot flag among threads of this process. Thread-safe.
class Event {
 public:
  virtual ~Event() = default;
  virtual void Set() = 0;
  virtual bool IsSet() const = 0;
  /// False when the deadline passed first.
  virtual bool Wait(Deadline deadline) = 0;
};

/// A running thread of the engine; joined by its destructor.
class Thread {
 public:
  virtual ~Thread() = default;
};

struct AllocateOptions {
  Access access = Access::kAll;
  bool huge_pages = true;  // asked for; falls back to 4 KiB pages
  bool populate = false;   // touch every page now, in parallel
};

class Fabric {
 public:
  virtual ~Fabric() = default;
  virtual Kind kind() const = 0;
  virtual Capabilities capabilities() const = 0;
  virtual Clock& clock() = 0;

  /// Memory of the fabric's own, zeroed, page aligned, reachable by peers with `access`.
  /// RESOURCE_EXHAUSTED names what is short (shared memory, memlock) and how to raise it.
  virtual absl::StatusOr<std::unique_ptr<MemoryRegion>> Allocate(size_t bytes,
                                                                 const AllocateOptions& options) = 0;
  virtual absl::StatusOr<std::unique_ptr<CompletionQueue>> CreateCompletionQueue(uint32_t depth) = 0;
  virtual absl::StatusOr<std::unique_ptr<Listener>> Listen(const ListenOptions& options) = 0;
  /// UNAVAILABLE: nobody there, or it cannot find out now whether the member lives. UNAUTHENTICATED: the
  /// secrets differ. PERMISSION_DENIED: no member with this id and key lives. DEADLINE_EXCEEDED: no answer.
  virtual absl::StatusOr<std::unique_ptr<QueuePair>> Connect(const std::string& address,
                                                             CompletionQueue& completions,
                                                             const QueuePairOptions& options,
                                                             Deadline deadline) = 0;
  virtual absl::StatusOr<std::unique_ptr<DatagramQueuePair>> CreateDatagramQueuePair(
      CompletionQueue& completions, const DatagramOptions& options) = 0;
  virtual DatagramDrops datagram_drops() const = 0;

  /// 64 random bits: the operating system's, or in `sim` drawn from the seed.
  virtual uint64_t Random() = 0;
  virtual std::unique_ptr<Event> CreateEvent() = 0;
  /// Every engine thread is started here, so that `sim` can schedule it. `name` is at most 15 characters.
  virtual std::unique_ptr<Thread> StartThread(const std::string& name, std::function<void()> body) = 0;
};

/// The longest message of one operation, in every provider.
inline constexpr uint32_t kMaxMessageBytes = 16u << 20;
/// The longest SEND.
inline constexpr uint32_t kMaxSendBytes = 64u << 10;

struct FabricOptions {
  Kind kind = Kind::kShm;
  /// The cluster's secret; peers with another are refused before any operation.
  std::string secret;
  /// Threads of the software NIC that serve peers' one-sided operations (tcp).
  int nic_threads = 1;
  /// A peer that does not answer for so long is lost.
  int64_t peer_timeout_us = 3'000'000;
  /// verbs: DEVICE[:PORT][,gid=N]. Empty: the device whose GID (RoCE v2) matches `host`, else the first
  /// with an active port.
  std::string rdma;
  /// The name or address of this host that the process listens on; picks verbs' device and tcp's
  /// interface for multicast.
  std::string host;
  /// tcp: the name or address of the interface that multicast uses. Empty: that of `host`.
  std::string multicast_interface;
  /// tcp: how many routers a multicast datagram may pass, plus one.
  int multicast_ttl = 1;
  /// tcp: what crosses the network is encrypted; all processes of a cluster do so, or none.
  bool encrypt = false;
};

absl::StatusOr<std::unique_ptr<Fabric>> Open(const FabricOptions& options);

}  // namespace nam::fabric
