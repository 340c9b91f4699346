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

/// The verbs-shaped transport that everything above is written for. A process has one Fabric, which stands
/// for a device context and its protection domain:
///
///     Fabric ──Register/Allocate──▶ MemoryRegion (rkey, lkey, rights)
///        ├────CreateCompletionQueue▶ CompletionQueue ◀── completions, in posting order per queue pair
///        ├────Connect──────────────▶ QueuePair ── Post(batch of WorkRequest) ──▶ the peer's regions
///        ├────Listen───────────────▶ Listener ── Accept ─▶ QueuePair (or served passively)
///        └────CreateDatagramQueuePair▶ DatagramQueuePair ── Post ──▶ one peer, or a multicast group
///
/// Guarantees of every provider:
///  - WRITEs on one queue pair are placed in posting order; a READ posted after a READ on the same
///    queue pair sees memory no older. Nothing is promised inside one operation beyond 8 aligned
///    bytes, nor between queue pairs.
///  - An atomic takes effect after the WRITEs posted before it on the same queue pair, and before the READs
///    posted after it. If two clients each change a word and then READ the other's word, at least one sees
///    the change.
///  - A work request that cannot be executed (bounds, rights, key, alignment, lost peer) completes
///    with an error, signaled or not, and changes nothing. The queue pair is then in the error state
///    and every later work request completes with kFlushed.
///  - 64-bit atomics are exact among the fabric's own operations on the same word. A word changed by CAS or
///    FETCH_ADD must be changed in no other way, not even by its owner's CPU.
///
/// Threads: a Fabric, its regions and listeners may be used by any thread. A CompletionQueue and the
/// queue pairs attached to it belong to one thread at a time.
namespace nam::fabric {

enum class Kind : uint8_t { kShm, kTcp, kVerbs, kSim };
std::string_view KindName(Kind kind);
/// Whether fabrics of the kind can encrypt what members move.
bool CanEncrypt(Kind kind);
absl::StatusOr<Kind> ParseKind(std::string_view name);
/// Like ParseKind, but only kinds that real processes can use: `sim` needs a simulated world.
absl::StatusOr<Kind> ParseRealKind(std::string_view name);

/// Rights of remote peers on a region. The owner itself has all rights.
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

/// Names a region to remote peers. 0 names no region. A process never reuses a key after deregistration.
struct RemoteKey {
  uint32_t value = 0;
  bool operator==(const RemoteKey&) const = default;
};
/// Names a registered region to the local side of a work request.
struct LocalKey {
  uint32_t value = 0;
};

/// Bytes in a local registered region. The caller must not touch them until the operation completes.
struct LocalBuffer {
  std::byte* data = nullptr;
  uint32_t bytes = 0;
  LocalKey lkey;
};

/// A place in a peer's region; `offset` counts bytes from the region's start.
struct RemoteAddress {
  RemoteKey rkey;
  uint64_t offset = 0;
};

/// Registered memory. The destructor deregisters first: operations that arrive later complete with
/// kRemoteAccessError at their initiator. Any thread may create and destroy it.
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
  /// Checks that [offset, offset + bytes) lies in the region.
  LocalBuffer Slice(size_t offset, size_t bytes) const;
  /// Invalidates rkey and lkey, as destruction does. True once no peer can change the memory through them,
  /// not even by operations in flight. False while a stalled peer is inside an operation, which happens only
  /// where peers touch the memory themselves: call again. Idempotent, any thread.
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

/// One operation, a value. Its completion carries `id`. The target bytes of a READ or an atomic must not be
/// shared with another request in flight: a provider may write there before the answer arrives.
struct WorkRequest {
  uint64_t id = 0;
  Opcode opcode = Opcode::kRead;
  Signal signal = Signal::kSignaled;
  /// Post copies the payload, so the buffer is free at once. At most QueuePairOptions::inline_bytes_max
  /// bytes, WRITE and SEND only.
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
  /// Places data like a WRITE, then consumes one receive of the peer, whose completion carries `immediate`.
  static WorkRequest WriteWithImmediate(uint64_t id, LocalBuffer from, RemoteAddress to, uint32_t immediate,
                                        Signal s = Signal::kSignaled) {
    return {.id = id,
            .opcode = Opcode::kWriteWithImmediate,
            .signal = s,
            .immediate = immediate,
            .local = from,
            .remote = to};
  }
  /// Sets the 8-byte aligned word at `at` to `swap` if it equals `compare`. `old` (8 bytes) receives the
  /// previous value.
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

/// A buffer for one incoming SEND; a WRITE with immediate uses none of it.
struct ReceiveRequest {
  uint64_t id = 0;
  LocalBuffer into;
};

enum class CompletionStatus : uint8_t {
  kOk,
  kLocalError,            // local buffer outside its region, or unknown lkey
  kRemoteAccessError,     // wrong key, bounds or rights at the peer
  kRemoteInvalidRequest,  // malformed: unaligned atomic, message longer than the receive buffer
  kPeerLost,              // the peer died, closed, or did not answer within the retry time
  kFlushed,               // posted to, or pending on, a queue pair in the error state
  kNoMemory,              // this process cannot map the peer's memory; no peer reports it
};
std::string_view CompletionStatusName(CompletionStatus status);

struct Completion {
  uint64_t id = 0;
  uint64_t queue_pair = 0;  // QueuePair::id()
  CompletionStatus status = CompletionStatus::kOk;
  Opcode opcode = Opcode::kRead;
  bool has_immediate = false;
  uint32_t immediate = 0;
  uint32_t bytes = 0;  // received bytes, for kReceive
  bool ok() const { return status == CompletionStatus::kOk; }
};

/// Collects the completions of its attached queue pairs. Owned and polled by one thread.
class CompletionQueue {
 public:
  virtual ~CompletionQueue() = default;
  /// Takes up to completions.size() completions without waiting; returns their number.
  virtual size_t Poll(std::span<Completion> completions) = 0;
  /// Like Poll, but waits until `deadline` for at least one. Returns 0 on timeout or Wake().
  virtual size_t Wait(std::span<Completion> completions, Deadline deadline) = 0;
  /// Makes the current or the next Wait return. Any thread.
  virtual void Wake() = 0;
};

struct QueuePairOptions {
  uint32_t send_depth = 128;     // work requests in flight
  uint32_t receive_depth = 128;  // receives posted
  uint32_t inline_bytes_max = 128;
  /// The connecting member. Needed to change memory behind a passive listener with MemberKeys.
  MemberCredentials member;
};

enum class QueuePairState : uint8_t { kReady, kError };

/// A reliable connection. Destruction does not flush: wait first for what must complete. Belongs to the
/// thread of its completion queue and must be destroyed before it.
class QueuePair {
 public:
  virtual ~QueuePair() = default;
  /// Unique in this process; completions carry it.
  virtual uint64_t id() const = 0;
  virtual QueuePairState state() const = 0;
  /// Text for messages, such as `memory server 2 at 10.0.0.2:7000`.
  virtual std::string peer() const = 0;
  /// Posts all requests or none. RESOURCE_EXHAUSTED if the send queue lacks room: take completions first.
  /// INVALID_ARGUMENT if no provider accepts a request: inline payload too long, atomic not of 8 bytes,
  /// message above the limit. An unsignaled request keeps its place until a later signaled one completes.
  virtual absl::Status Post(std::span<const WorkRequest> batch) = 0;
  virtual absl::Status PostReceive(std::span<const ReceiveRequest> batch) = 0;
  /// Returns the peer's bytes in place, readable until this queue pair is destroyed. FAILED_PRECONDITION
  /// without Capabilities::in_place; PERMISSION_DENIED and OUT_OF_RANGE correspond to a READ's errors.
  virtual absl::StatusOr<std::span<const std::byte>> View(RemoteAddress from, size_t bytes) = 0;
  /// Ends the connection; pending requests complete with an error. OK: the peer has seen the end, so no
  /// posted request changes its memory any more. UNAVAILABLE: the peer has not confirmed by the deadline, and
  /// requests may still arrive there; call again.
  virtual absl::Status Disconnect(Deadline deadline) = 0;
};

/// The longest payload of a datagram, in every provider; a network may allow less.
inline constexpr uint32_t kMaxDatagramBytes = 4096;
/// Bytes that a datagram receive reserves before the payload; verbs puts the global route header there.
inline constexpr uint32_t kDatagramHeadroomBytes = 40;

struct DatagramOptions {
  uint32_t send_depth = 128;
  uint32_t receive_depth = 512;
};

/// A datagram's destination. Bound to the queue pair that created it, and to its lifetime.
struct DatagramTarget {
  uint32_t handle = 0;
};

struct DatagramRequest {
  uint64_t id = 0;
  Signal signal = Signal::kSignaled;
  LocalBuffer local;
  DatagramTarget to;
};

/// Unreliable datagrams, to one peer or to a multicast group. A sent datagram arrives once, more than once,
/// out of order, or not at all. A received datagram is whole and comes from a member of the cluster.
///
/// A send's completion (kSend) says only that its buffer is free. A receive's completion (kReceive) carries
/// the payload's bytes; the payload begins kDatagramHeadroomBytes into the posted buffer. A datagram is
/// dropped without a completion if no receive is posted or the receive is too short.
///
/// A group has one sender: the queue pair that opened it. Belongs to the thread of its completion queue and
/// must be destroyed before it.
class DatagramQueuePair {
 public:
  virtual ~DatagramQueuePair() = default;
  virtual uint64_t id() const = 0;
  /// The longest payload that arrives: kMaxDatagramBytes, or less if the network's MTU is smaller.
  virtual uint32_t bytes_max() const = 0;
  /// The text that peers pass to Resolve.
  virtual std::string address() const = 0;
  virtual absl::StatusOr<DatagramTarget> Resolve(const std::string& address) = 0;

  /// Makes this queue pair the sender of group `number`, which is unique in the cluster and comes from the
  /// catalog. Members join by GroupAddress(). FAILED_PRECONDITION says why multicast does not work here, with
  /// a hint.
  virtual absl::StatusOr<DatagramTarget> OpenGroup(uint32_t number) = 0;
  virtual absl::StatusOr<std::string> GroupAddress(DatagramTarget group) const = 0;
  /// Once it returns OK, this queue pair receives the group's datagrams, except its own.
  virtual absl::Status Join(const std::string& group_address) = 0;
  virtual absl::Status Leave(const std::string& group_address) = 0;

  /// Posts all datagrams or none, each of 0 to bytes_max() bytes. RESOURCE_EXHAUSTED if the send queue lacks
  /// room, INVALID_ARGUMENT for more bytes or an unknown target. A datagram from an unregistered buffer
  /// completes with kLocalError and is not sent.
  virtual absl::Status Post(std::span<const DatagramRequest> batch) = 0;
  virtual absl::Status PostReceive(std::span<const ReceiveRequest> batch) = 0;
};

/// Describes a failed completion: operation, status, queue pair state, peer, likely cause.
absl::Status CompletionError(const Completion& completion, const QueuePair& queue_pair);

/// A listen address that lets the provider choose: a free port of `host`, or a socket name. A simulated
/// process has one host.
std::string AnyAddress(Kind kind, const std::string& host);

/// The owner of a passive listener, as the source of its members' keys.
class MemberKeys {
 public:
  virtual ~MemberKeys() = default;
  /// The key of each member at this server; empty if no such member is alive. UNAVAILABLE if unknown for now.
  /// Called on a thread of the fabric, one call at a time; may take long.
  virtual absl::StatusOr<std::vector<std::optional<MemberKey>>> KeysOf(std::span<const MemberId> members) = 0;
};

struct ListenOptions {
  /// tcp: host:port (port 0 picks one). shm: path of the UNIX socket.
  std::string address;
  /// True: the fabric's own threads accept every connection and serve its one-sided operations (a memory
  /// server). False: Accept() hands connections to the application.
  bool passive = true;
  /// For passive listeners; must outlive the listener. With it, a connection belongs to the member that it
  /// proves, and a connection without a member may only READ. Without it, every connection has the rights of
  /// the keys.
  MemberKeys* member_keys = nullptr;
};

class Listener {
 public:
  virtual ~Listener() = default;
  /// The address that peers pass to Connect.
  virtual std::string address() const = 0;
  /// Not for passive listeners. DEADLINE_EXCEEDED if no peer connects in time.
  virtual absl::StatusOr<std::unique_ptr<QueuePair>> Accept(CompletionQueue& completions,
                                                            const QueuePairOptions& options,
                                                            Deadline deadline) = 0;
  /// Ends all connections of the member, including those being made; the owner's KeysOf must no longer know
  /// the member. True once no past or future request of the member changes a byte here. False while a stalled
  /// peer is inside an operation, which happens only where peers touch the memory themselves: call again.
  /// `kill` ends such peers' processes where possible. Idempotent, any thread.
  virtual bool Fence(MemberId member, bool kill) = 0;
  /// The members with connections, ascending. Any thread.
  virtual std::vector<MemberId> Members() = 0;
};

struct Capabilities {
  bool in_place = false;         // QueuePair::View
  bool posts_are_calls = false;  // each Post is a system call, so batch work requests
  bool card_moves = false;       // cards move bytes while processors compute
  bool one_host = false;         // reaches processes of its own host only; addresses have no host
  bool sockets = false;          // its messages are those of sockets, or of their model
  bool simulated = false;        // time, hosts and their network are a model
  int processors = 1;            // of this process's host, for its threads
};

/// Datagrams that never reached an application since the fabric was opened, by cause.
struct DatagramDrops {
  uint64_t no_receive = 0;  // no receive posted, or too short
  uint64_t overrun = 0;     // overwritten in a ring, or lost in a socket's buffer
  uint64_t refused = 0;     // malformed, or from another cluster
};

/// A one-shot flag among threads of this process. Thread-safe.
class Event {
 public:
  virtual ~Event() = default;
  virtual void Set() = 0;
  virtual bool IsSet() const = 0;
  /// False on timeout.
  virtual bool Wait(Deadline deadline) = 0;
};

/// A running thread of the engine. The destructor joins it.
class Thread {
 public:
  virtual ~Thread() = default;
};

struct AllocateOptions {
  Access access = Access::kAll;
  bool huge_pages = true;  // falls back to 4 KiB pages
  bool populate = false;   // touch every page now, in parallel
};

class Fabric {
 public:
  virtual ~Fabric() = default;
  virtual Kind kind() const = 0;
  virtual Capabilities capabilities() const = 0;
  virtual Clock& clock() = 0;

  /// Allocates zeroed, page-aligned memory that peers reach with `access`. RESOURCE_EXHAUSTED says what is
  /// short (shared memory, memlock) and how to raise it.
  virtual absl::StatusOr<std::unique_ptr<MemoryRegion>> Allocate(size_t bytes,
                                                                 const AllocateOptions& options) = 0;
  /// `depth`: the most work requests (send_depth + receive_depth) of all queue pairs attached at one time.
  /// INVALID_ARGUMENT if it is out of range. RESOURCE_EXHAUSTED if the provider has no more queues.
  virtual absl::StatusOr<std::unique_ptr<CompletionQueue>> CreateCompletionQueue(uint32_t depth) = 0;
  virtual absl::StatusOr<std::unique_ptr<Listener>> Listen(const ListenOptions& options) = 0;
  /// UNAVAILABLE: no listener there, or it cannot check the member now. UNAUTHENTICATED: the secrets differ.
  /// PERMISSION_DENIED: no live member has this id and key. DEADLINE_EXCEEDED: no answer.
  virtual absl::StatusOr<std::unique_ptr<QueuePair>> Connect(const std::string& address,
                                                             CompletionQueue& completions,
                                                             const QueuePairOptions& options,
                                                             Deadline deadline) = 0;
  virtual absl::StatusOr<std::unique_ptr<DatagramQueuePair>> CreateDatagramQueuePair(
      CompletionQueue& completions, const DatagramOptions& options) = 0;
  virtual DatagramDrops datagram_drops() const = 0;

  /// 64 random bits: from the operating system, or in `sim` from the seed.
  virtual uint64_t Random() = 0;
  virtual std::unique_ptr<Event> CreateEvent() = 0;
  /// Starts a thread. All engine threads start here, so that `sim` can schedule them. `name`: at most 15
  /// characters.
  virtual std::unique_ptr<Thread> StartThread(const std::string& name, std::function<void()> body) = 0;
  /// The same, for callers that can do without: RESOURCE_EXHAUSTED names the limit if the system refuses a
  /// thread, where StartThread ends the process. The body is then destroyed and has not run.
  virtual absl::StatusOr<std::unique_ptr<Thread>> TryStartThread(const std::string& name,
                                                                 std::function<void()> body) {
    return StartThread(name, std::move(body));
  }
};

/// The longest message of one operation, in every provider.
inline constexpr uint32_t kMaxMessageBytes = 16u << 20;
/// The longest SEND.
inline constexpr uint32_t kMaxSendBytes = 64u << 10;

struct FabricOptions {
  Kind kind = Kind::kShm;
  /// The cluster's secret. Peers with a different secret are refused before any operation.
  std::string secret;
  /// tcp: threads of the software NIC, which serve peers' one-sided operations.
  int nic_threads = 1;
  /// A peer counts as lost after this long without an answer.
  int64_t peer_timeout_us = 3'000'000;
  /// verbs: DEVICE[:PORT][,gid=N]. Empty: the device whose GID (RoCE v2) matches `host`, else the first
  /// with an active port.
  std::string rdma;
  /// The name or address of this host that the process listens on. Picks the verbs device and tcp's multicast
  /// interface.
  std::string host;
  /// tcp: the name or address of the multicast interface. Empty: that of `host`.
  std::string multicast_interface;
  /// tcp: the number of routers that a multicast datagram may pass, plus one.
  int multicast_ttl = 1;
  /// tcp: encrypts network traffic. All processes of a cluster must agree.
  bool encrypt = false;
};

/// Opens the fabric of options.kind. INVALID_ARGUMENT for kSim, whose fabrics a World opens; other errors as
/// in OpenShm, OpenTcp and OpenVerbs.
absl::StatusOr<std::unique_ptr<Fabric>> Open(const FabricOptions& options);

}  // namespace nam::fabric
