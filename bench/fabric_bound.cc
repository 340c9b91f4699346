#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <numeric>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "base/status_macros.h"
#include "base/unique_fd.h"
#include "bench/command.h"
#include "bench/fabric_lane.h"
#include "fabric/tcp/wire.h"

namespace nam::bench {
namespace {

constexpr size_t kReceiveBytesMax = 1u << 20;  // per call
constexpr size_t kPartsMax = 64;

/// Prevents the compiler from moving or removing memory accesses.
void Clobber() {
  asm volatile("" ::: "memory");
}

void Once(const FabricCase& wanted, std::byte* local, std::byte* remote) {
  std::atomic_ref<uint64_t> word(*reinterpret_cast<uint64_t*>(remote));
  uint64_t old = 0;
  switch (wanted.operation) {
    case Operation::kRead:
      std::memcpy(local, remote, wanted.bytes);
      break;
    case Operation::kWrite:
      std::memcpy(remote, local, wanted.bytes);
      break;
    case Operation::kCompareAndSwap:
      word.compare_exchange_strong(old, 0);
      std::memcpy(local, &old, sizeof(old));
      break;
    default:
      old = word.fetch_add(1);
      std::memcpy(local, &old, sizeof(old));
      break;
  }
  Clobber();
}

/// Performs as many operations between two clock reads as a lane does, over as many slots.
absl::StatusOr<double> MemoryRate(Clock& clock, Lane& lane, const FabricCase& wanted, int64_t duration_ns) {
  NAM_ASSIGN_OR_RETURN(std::byte* const remote, lane.View());
  std::byte* const local = lane.buffer().data();
  Scatter scatter(lane.region_bytes(), wanted.bytes, lane.seed());
  const uint64_t per_look = std::clamp<uint64_t>((1u << 20) / wanted.bytes, 1, 256);
  const int64_t start_ns = clock.NowNs();
  int64_t now_ns = start_ns;
  uint64_t operations = 0;
  uint32_t slot = 0;
  while (now_ns - start_ns < duration_ns) {
    for (uint64_t i = 0; i < per_look; ++i) {
      Once(wanted, local + uint64_t{slot} * wanted.bytes, remote + scatter.Next());
      slot = slot + 1 == wanted.in_flight ? 0 : slot + 1;
    }
    operations += per_look;
    now_ns = clock.NowNs();
  }
  return static_cast<double>(operations) * 1e9 / static_cast<double>(now_ns - start_ns);
}

absl::Status SocketError(const char* doing) {
  const int error = errno;
  return absl::UnavailableError(absl::StrCat("plain socket: ", doing, ": ", std::strerror(error)));
}

struct Ends {
  UniqueFd near, far;
};

/// Both ends of a TCP connection of this host with itself.
absl::StatusOr<Ends> Connect() {
  const UniqueFd listener(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  Ends ends{UniqueFd(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)), {}};
  sockaddr_in at{.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
  auto* const address = reinterpret_cast<sockaddr*>(&at);
  socklen_t length = sizeof(at);
  if (bind(listener.get(), address, length) != 0 || listen(listener.get(), 1) != 0 ||
      getsockname(listener.get(), address, &length) != 0 || connect(ends.near.get(), address, length) != 0) {
    return SocketError("connect");
  }
  ends.far.reset(accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC));
  if (!ends.far.valid()) return SocketError("accept");
  const int on = 1;
  for (const UniqueFd* end : {&ends.near, &ends.far})
    setsockopt(end->get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
  return ends;
}

/// A blocking send of everything; false if the peer is gone.
bool SendParts(int socket, std::span<iovec> parts) {
  msghdr message{};
  while (!parts.empty()) {
    message.msg_iov = parts.data();
    message.msg_iovlen = parts.size();
    const ssize_t sent = sendmsg(socket, &message, MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    if (sent <= 0) return false;
    for (auto left = static_cast<size_t>(sent); left > 0;) {
      iovec& part = parts.front();
      const size_t taken = std::min(left, part.iov_len);
      part.iov_base = static_cast<std::byte*>(part.iov_base) + taken;
      part.iov_len -= taken;
      left -= taken;
      if (part.iov_len == 0) parts = parts.subspan(1);
    }
  }
  return true;
}

/// One connection, whose ends move the same number of bytes per operation as the tcp fabric, and do nothing
/// else: each is one thread that blocks in the kernel, takes all input at once and answers it with one call.
///
///     Run ── request ──▶ Serve,  Serve ── reply ──▶ Run        pipelined, contents unused
class PlainConnection {
 public:
  /// `near` and `far` are sources and targets of either end; they hold several requests and replies.
  static absl::StatusOr<std::unique_ptr<PlainConnection>> Open(fabric::Fabric& fabric, uint64_t request_bytes,
                                                               uint64_t reply_bytes,
                                                               std::span<std::byte> near,
                                                               std::span<std::byte> far) {
    NAM_ASSIGN_OR_RETURN(Ends ends, Connect());
    std::unique_ptr<PlainConnection> open(
        new PlainConnection(std::move(ends), request_bytes, reply_bytes, near, far));
    open->server_ = fabric.StartThread("plain-socket", [open = open.get()] { open->Serve(); });
    return open;
  }
  ~PlainConnection() { shutdown(ends_.near.get(), SHUT_RDWR); }  // ends Serve

  /// Operations per second, over about `duration_ns`.
  absl::StatusOr<double> Run(Clock& clock, uint32_t in_flight, int64_t duration_ns) {
    const size_t window = std::min<size_t>(near_.size(), reply_bytes_ * in_flight);
    const int64_t start_ns = clock.NowNs();
    int64_t now_ns = start_ns;
    uint64_t asked = in_flight, answered = 0, received = 0;
    size_t at = 0;
    if (!Ask(in_flight)) return SocketError("send");
    while (answered < asked) {
      if (at == window) at = 0;
      const ssize_t got = recv(ends_.near.get(), near_.data() + at, window - at, 0);
      if (got <= 0) return SocketError("recv");
      at += static_cast<size_t>(got);
      received += static_cast<uint64_t>(got);
      const uint64_t more = received / reply_bytes_ - answered;
      answered += more;
      if (more == 0) continue;
      now_ns = clock.NowNs();
      if (now_ns - start_ns >= duration_ns) continue;
      asked += more;
      if (!Ask(more)) return SocketError("send");
    }
    return static_cast<double>(answered) * 1e9 / static_cast<double>(std::max<int64_t>(now_ns - start_ns, 1));
  }

 private:
  PlainConnection(Ends ends, uint64_t request_bytes, uint64_t reply_bytes, std::span<std::byte> near,
                  std::span<std::byte> far)
      : ends_(std::move(ends)),
        request_bytes_(request_bytes),
        reply_bytes_(reply_bytes),
        near_(near),
        far_(far) {}

  bool Ask(uint64_t requests) {
    while (requests > 0) {
      std::array<iovec, kPartsMax> parts;
      size_t count = 0;
      for (; count < parts.size() && requests > 0; --requests) {
        if (send_at_ + request_bytes_ > near_.size()) send_at_ = 0;
        parts[count++] = {near_.data() + send_at_, request_bytes_};
        send_at_ += request_bytes_;
      }
      if (!SendParts(ends_.near.get(), std::span(parts).first(count))) return false;
    }
    return true;
  }

  void Serve() {
    Scatter reply_at(far_.size(), reply_bytes_);
    const size_t receive_bytes = std::min(kReceiveBytesMax, far_.size());
    uint64_t received = 0;  // bytes of unanswered requests
    size_t at = 0;
    std::array<iovec, kPartsMax> parts;
    while (true) {
      // Uses the next megabyte of the memory, as payloads of requests would land in a region.
      if (at + receive_bytes > far_.size()) at = 0;
      const ssize_t got = recv(ends_.far.get(), far_.data() + at, receive_bytes, 0);
      if (got <= 0) return;
      at += static_cast<size_t>(got);
      received += static_cast<uint64_t>(got);
      while (received >= request_bytes_) {
        size_t count = 0;
        for (; count < parts.size() && received >= request_bytes_; received -= request_bytes_)
          parts[count++] = {far_.data() + reply_at.Next(), reply_bytes_};
        if (!SendParts(ends_.far.get(), std::span(parts).first(count))) return;
      }
    }
  }

  const Ends ends_;
  const uint64_t request_bytes_, reply_bytes_;
  const std::span<std::byte> near_, far_;
  size_t send_at_ = 0;
  std::unique_ptr<fabric::Thread> server_;  // joined first
};

/// The connections of all lanes, made anew for each operation and size.
class PlainConnections {
 public:
  PlainConnections(fabric::Fabric& fabric, const Lanes& lanes) : fabric_(fabric), lanes_(lanes) {}
  absl::StatusOr<double> Rate(const FabricCase& wanted, int64_t duration_ns) {
    if (!connected_for_ || connected_for_->operation != wanted.operation ||
        connected_for_->bytes != wanted.bytes || connections_.size() < wanted.threads) {
      NAM_RETURN_IF_ERROR(Open(wanted));
    }
    return SumOverLanes(fabric_, lanes_, wanted.threads, [&](Lane&, size_t i) {
      return connections_[i]->Run(fabric_.clock(), wanted.in_flight, duration_ns);
    });
  }

 private:
  absl::Status Open(const FabricCase& wanted) {
    connections_.clear();
    far_.resize(lanes_.front()->region_bytes(), std::byte{1});
    const bool sends = wanted.operation == Operation::kWrite || wanted.operation == Operation::kSend;
    const uint64_t out = sizeof(fabric::tcp::RequestHeader) + (sends ? wanted.bytes : 0);
    const uint64_t in =
        sizeof(fabric::tcp::ReplyHeader) + (wanted.operation == Operation::kRead ? wanted.bytes : 0);
    for (uint32_t i = 0; i < wanted.threads; ++i) {
      fabric::MemoryRegion& near = lanes_[i]->buffer();
      NAM_ASSIGN_OR_RETURN(connections_.emplace_back(),
                           PlainConnection::Open(fabric_, out, in, {near.data(), near.bytes()}, far_));
    }
    connected_for_ = wanted;
    return absl::OkStatus();
  }

  fabric::Fabric& fabric_;
  const Lanes& lanes_;
  std::vector<std::byte> far_;  // of all connections
  std::optional<FabricCase> connected_for_;
  std::vector<std::unique_ptr<PlainConnection>> connections_;
};

}  // namespace

absl::StatusOr<double> SumOverLanes(fabric::Fabric& fabric, const Lanes& lanes, uint32_t threads,
                                    const std::function<absl::StatusOr<double>(Lane&, size_t)>& body) {
  NAM_CHECK(threads <= lanes.size());
  std::vector<double> results(threads);
  NAM_RETURN_IF_ERROR(RunAtOnce(std::vector(threads, &fabric), [&](size_t i) -> absl::Status {
    NAM_ASSIGN_OR_RETURN(results[i], body(*lanes[i], i));
    return absl::OkStatus();
  }));
  return std::accumulate(results.begin(), results.end(), 0.0);
}

FabricBound MemoryBound(fabric::Fabric& fabric, const Lanes& lanes) {
  return {.name = "memcpy and bare atomics on the same memory",
          .covers = [](Operation operation) { return operation != Operation::kSend; },
          .rate =
              [&](const FabricCase& wanted, int64_t duration_ns) {
                return SumOverLanes(fabric, lanes, wanted.threads, [&](Lane& lane, size_t) {
                  return MemoryRate(fabric.clock(), lane, wanted, duration_ns);
                });
              }};
}

FabricBound LineRateBound(double bytes_per_second, double messages_per_second) {
  return {.name = "the model's line and message rate",
          .covers = [](Operation) { return true; },
          .rate = [=](const FabricCase& wanted, int64_t) -> absl::StatusOr<double> {
            return std::min(messages_per_second, bytes_per_second / wanted.bytes);
          }};
}

FabricBound SocketBound(fabric::Fabric& fabric, const Lanes& lanes) {
  return {.name = "a plain socket pair moving the same bytes",
          .covers = [](Operation) { return true; },
          .rate = [plain = std::make_shared<PlainConnections>(fabric, lanes)](
                      const FabricCase& wanted,
                      int64_t duration_ns) { return plain->Rate(wanted, duration_ns); }};
}

}  // namespace nam::bench
