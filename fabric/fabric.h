#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/clock.h"

/// The verbs-shaped transport that everything above is written for. One Fabric per process stands
/// for a device context and its protection domain:
///
///     Fabric ──Register/Allocate──▶ MemoryRegion (rkey, lkey, rights)
///        ├────CreateCompletionQueue▶ CompletionQueue ◀── completions, in posting order per queue pair
///        ├────Connect──────────────▶ QueuePair ── Post(batch of WorkRequest) ──▶ the peer's regions
///        └────Listen───────────────▶ Listener ── Accept ─▶ QueuePair (or served passively)
///
/// What the engine may rely on, in every provider:
///  - WRITEs on one queue pair are placed in posting order; a READ posted after a READ on the same
///    queue pair sees memory no older. Nothing is promised inside one operation beyond 8 aligned
///    bytes, nor between queue pairs.
///  - A work request that cannot be executed (bounds, rights, key, alignment, lost peer) completes
///    with an error, signaled or not, and changes nothing. The queue pair is then in the error state
///    and every later work request completes with kFlushed.
///  - 64-bit atomics are exact among the fabric's own operations on the same word; a word changed by
///    CAS or FETCH_ADD is changed in no other way, not even by its owner's CPU.
///
/// Threads: a Fabric, its regions and listeners may be used by any thread. A CompletionQueue and the
/// queue pairs attached to it belong to one thread at a time.
namespace nam::fabric {

enum class Kind : uint8_t { kShm, kTcp };
std::string_view KindName(Kind kind);
absl::StatusOr<Kind> ParseKind(std::string_view name);

/// Rights of remote peers on a region. The owner itself may always do everything.
enum class Access : uint8_t { kNone = 0, kRead = 1, kWrite = 2, kAtomic = 4, kAll = 7 };
constexpr Access operator|(Access a, Access b) {
  return static_cast<Access>(static_cast<uint8_t>(a) | static_cast<uint8_t>(b));
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

/// One operation, a value. `id` comes back in its completion.
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
};

/// The text of a failed completion: operation, status, queue pair state, peer, likely cause.
absl::Status CompletionError(const Completion& completion, const QueuePair& queue_pair);

struct ListenOptions {
  /// tcp: host:port (port 0 picks one). shm: path of the UNIX socket.
  std::string address;
  /// True: every connection is accepted and served by the fabric's own threads for one-sided
  /// operations (a memory server). False: Accept() hands connections to the application.
  bool passive = true;
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
};

struct Capabilities {
  bool in_place = false;
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
  /// `depth` bounds the sum of send and receive depths of the queue pairs attached.
  virtual absl::StatusOr<std::unique_ptr<CompletionQueue>> CreateCompletionQueue(uint32_t depth) = 0;
  virtual absl::StatusOr<std::unique_ptr<Listener>> Listen(const ListenOptions& options) = 0;
  /// UNAVAILABLE: nobody there. UNAUTHENTICATED: the secrets differ. DEADLINE_EXCEEDED: no answer.
  virtual absl::StatusOr<std::unique_ptr<QueuePair>> Connect(const std::string& address,
                                                             CompletionQueue& completions,
                                                             const QueuePairOptions& options,
                                                             Deadline deadline) = 0;

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
};

absl::StatusOr<std::unique_ptr<Fabric>> Open(const FabricOptions& options);

}  // namespace nam::fabric
