#include "bench/calibration.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "bench/bench_server.h"
#include "bench/fabric_lane.h"
#include "bench/report.h"
#include "storage/channel.h"

namespace nam::bench {
namespace {

using catalog::FabricConstants;

constexpr uint32_t kSmallBytes = 2 << 10, kLargeBytes = 64 << 10;
/// Larger than most caches; less on memory servers with less memory.
constexpr uint64_t kMostSlabBytes = uint64_t{32} << 20, kLeastSlabBytes = uint64_t{256} << 10;
constexpr uint32_t kInFlight = 16;
constexpr uint64_t kMovedBytes = uint64_t{64} << 20;  // per round
constexpr int64_t kMessagesNs = 30'000'000;
constexpr int kCalls = 20;
constexpr uint64_t kCopiedBytes = uint64_t{32} << 20;
constexpr uint64_t kAccesses = uint64_t{1} << 21;
constexpr uint64_t kLargestSetBytes = uint64_t{256} << 20;
constexpr double kPsPerNs = 1e3;

/// A memory server's scratch memory, held until destruction.
class Slab {
 public:
  static absl::StatusOr<std::unique_ptr<Slab>> Open(catalog::Attachment& attachment) {
    NAM_ASSIGN_OR_RETURN(const std::vector<proto::Member> servers, attachment.Members(proto::ROLE_MEMORY));
    if (servers.empty()) return absl::UnavailableError("the cluster has no memory server");
    const MemoryServerId server(static_cast<uint16_t>(servers.front().id()));
    NAM_ASSIGN_OR_RETURN(const AllocationId allocation,
                         attachment.catalog().BeginLoad(
                             attachment.member(), absl::StrCat("nam_calibrate_", attachment.member().value()),
                             /*replace=*/false));
    std::unique_ptr<Slab> slab(new Slab(attachment, server, allocation));
    absl::StatusOr<catalog::GrantedExtent> extent = absl::InternalError("no size was tried");
    for (uint64_t bytes = kMostSlabBytes; !extent.ok() && bytes >= kLeastSlabBytes; bytes /= 2)
      extent = slab->Allocate(bytes);
    NAM_ASSIGN_OR_RETURN(slab->extent_, std::move(extent));
    NAM_ASSIGN_OR_RETURN(slab->channel_, storage::Channel::Open(attachment.fabric(), attachment, {}));
    return slab;
  }
  ~Slab() {
    channel_.reset();
    attachment_.CloseScratch(allocation_, kAttempt);
    attachment_.ReleaseScratch(server_, allocation_, kAttempt).IgnoreError();
    attachment_.catalog().AbortLoad(allocation_).IgnoreError();
  }

  /// Allocates another extent, which is freed with the first.
  absl::StatusOr<catalog::GrantedExtent> Allocate(uint64_t bytes) {
    const std::atomic<bool> never = false;
    return attachment_.AllocateScratch(server_, allocation_, kAttempt, bytes, never);
  }

  /// Picoseconds per byte of operations of `bytes` bytes, with kInFlight in flight.
  absl::StatusOr<double> BytePs(fabric::Opcode opcode, uint32_t bytes) {
    Clock& clock = attachment_.fabric().clock();
    const uint64_t operations = kMovedBytes / bytes;
    const int64_t begun_ns = clock.NowNs();
    NAM_RETURN_IF_ERROR(Move(opcode, bytes, operations));
    return static_cast<double>(clock.NowNs() - begun_ns) * kPsPerNs / static_cast<double>(operations * bytes);
  }

 private:
  static constexpr uint64_t kAttempt = 1;

  Slab(catalog::Attachment& attachment, MemoryServerId server, AllocationId allocation)
      : attachment_(attachment), server_(server), allocation_(allocation) {}
  storage::RemotePtr<void> begin() const { return {server_, extent_.offset}; }

  absl::Status Move(fabric::Opcode opcode, uint32_t bytes, uint64_t operations) {
    std::array<fabric::Completion, kInFlight> done;
    size_t free = kInFlight, in_flight = 0;
    for (size_t slot = 0; slot < free; ++slot) done[slot].id = slot;
    for (uint64_t next = 0;;) {
      for (size_t i = 0; i < free && next < operations; ++i, ++next) {
        NAM_RETURN_IF_ERROR(Post(opcode, bytes, done[i].id, next));
        ++in_flight;
      }
      if (in_flight == 0) return absl::OkStatus();
      NAM_ASSIGN_OR_RETURN(free, channel_->WaitSome(done));
      for (const fabric::Completion& completion : std::span(done).first(free)) {
        if (!completion.ok()) return channel_->Error(completion);
      }
      in_flight -= free;
    }
  }

  absl::Status Post(fabric::Opcode opcode, uint32_t bytes, uint64_t slot, uint64_t number) {
    const storage::RemotePtr<void> place(server_,
                                         extent_.offset + number % (extent_.bytes / bytes) * uint64_t{bytes});
    NAM_ASSIGN_OR_RETURN(const storage::Channel::Target target, channel_->Resolve(place, bytes));
    const fabric::LocalBuffer local = channel_->buffer().Slice(slot * bytes, bytes);
    const fabric::WorkRequest request = opcode == fabric::Opcode::kWrite
                                            ? fabric::WorkRequest::Write(slot, local, target.address)
                                            : fabric::WorkRequest::Read(slot, local, target.address);
    const absl::Status posted = target.queue_pair->Post({&request, 1});
    if (!posted.ok()) channel_->Break();
    return posted;
  }

  catalog::Attachment& attachment_;
  const MemoryServerId server_;
  const AllocationId allocation_;
  catalog::GrantedExtent extent_;
  std::unique_ptr<storage::Channel> channel_;
};

class Calibration {
 public:
  Calibration(catalog::Attachment& attachment, const FabricConstants& before,
              const CalibrationOptions& options)
      : attachment_(attachment), clock_(attachment.fabric().clock()), options_(options), constants_(before) {}

  absl::StatusOr<FabricConstants> Run() {
    NAM_RETURN_IF_ERROR(MeasureCalls());
    NAM_RETURN_IF_ERROR(MeasureVerbs());
    NAM_RETURN_IF_ERROR(MeasureMessages());
    NAM_RETURN_IF_ERROR(MeasureMemory());
    // Also rejects times that no clock could measure, or of a stalled host.
    return catalog::FromProto(catalog::ToProto("", constants_));
  }

 private:
  /// Stores the median of several rounds.
  absl::Status Measure(const char* doing, double FabricConstants::*constant,
                       const std::function<absl::StatusOr<double>()>& measure) {
    if (!options_.proceed(doing)) return absl::CancelledError("interrupted");
    std::vector<double> values;
    for (int round = 0; round < std::max(1, options_.rounds); ++round) {
      NAM_ASSIGN_OR_RETURN(values.emplace_back(), measure());
    }
    // Virtual time may stand still during computation.
    if (const double median = Median(values); median > 0) constants_.*constant = median;
    return absl::OkStatus();
  }
  double SincePs(int64_t begun_ns) const { return static_cast<double>(clock_.NowNs() - begun_ns) * kPsPerNs; }

  absl::Status MeasureCalls() {
    return Measure("calls", &FabricConstants::call_ps, [&]() -> absl::StatusOr<double> {
      const int64_t begun_ns = clock_.NowNs();
      for (int i = 0; i < kCalls; ++i) NAM_RETURN_IF_ERROR(attachment_.catalog().GetCluster().status());
      return SincePs(begun_ns) / kCalls;
    });
  }

  absl::Status MeasureVerbs() {
    NAM_ASSIGN_OR_RETURN(const std::unique_ptr<Slab> slab, Slab::Open(attachment_));
    NAM_RETURN_IF_ERROR(slab->BytePs(fabric::Opcode::kWrite, kLargeBytes).status());  // faults in its pages
    const auto verb = [&](fabric::Opcode opcode, uint32_t bytes) {
      return [&slab, opcode, bytes] { return slab->BytePs(opcode, bytes); };
    };
    NAM_RETURN_IF_ERROR(
        Measure("READs", &FabricConstants::read_byte_ps, verb(fabric::Opcode::kRead, kLargeBytes)));
    NAM_RETURN_IF_ERROR(Measure("WRITEs of 2 KiB", &FabricConstants::write_2k_byte_ps,
                                verb(fabric::Opcode::kWrite, kSmallBytes)));
    NAM_RETURN_IF_ERROR(Measure("WRITEs of 64 KiB", &FabricConstants::write_64k_byte_ps,
                                verb(fabric::Opcode::kWrite, kLargeBytes)));
    return Measure("slabs", &FabricConstants::slab_ps, [&]() -> absl::StatusOr<double> {
      const int64_t begun_ns = clock_.NowNs();
      NAM_RETURN_IF_ERROR(slab->Allocate(kLeastSlabBytes).status());
      return SincePs(begun_ns);
    });
  }

  absl::Status MeasureMessages() {
    fabric::Fabric& fabric = attachment_.fabric();
    NAM_RETURN_IF_ERROR(MeasureSends("messages", &FabricConstants::send_byte_ps, fabric));
    if (fabric.kind() == fabric::Kind::kSim) return absl::OkStatus();
    // Exchanges over sockets use a fabric of their own, as this does.
    NAM_ASSIGN_OR_RETURN(
        const auto sockets,
        fabric::Open({.kind = fabric::Kind::kTcp, .secret = "calibration", .host = "127.0.0.1"}));
    return MeasureSends("sockets", &FabricConstants::socket_byte_ps, *sockets);
  }

  absl::Status MeasureSends(const char* doing, double FabricConstants::*constant, fabric::Fabric& fabric) {
    NAM_ASSIGN_OR_RETURN(const std::unique_ptr<BenchServer> server,
                         BenchServer::Start(fabric, kLeastSlabBytes, "127.0.0.1"));
    NAM_ASSIGN_OR_RETURN(const std::unique_ptr<Lane> lane,
                         Lane::Open(fabric, server->address(), kInFlight * kLargeBytes + 4096, 1));
    const FabricCase send{.operation = Operation::kSend,
                          .bytes = std::min(kLargeBytes, BytesMax(Operation::kSend)),
                          .in_flight = kInFlight};
    return Measure(doing, constant, [&]() -> absl::StatusOr<double> {
      NAM_ASSIGN_OR_RETURN(const Lane::Outcome outcome, lane->Run(send, kMessagesNs, nullptr));
      return outcome.operations == 0 ? 0
                                     : static_cast<double>(outcome.elapsed_ns) * kPsPerNs /
                                           static_cast<double>(outcome.operations * send.bytes);
    });
  }

  absl::Status MeasureMemory() {
    const auto cache = [](int name, double otherwise) {
      const long bytes = sysconf(name);  // NOLINT(google-runtime-int): its type
      return bytes > 0 ? static_cast<double>(bytes) : otherwise;
    };
    constants_.l2_bytes = cache(_SC_LEVEL2_CACHE_SIZE, constants_.l2_bytes);
    constants_.l3_bytes = std::max(cache(_SC_LEVEL3_CACHE_SIZE, constants_.l3_bytes), constants_.l2_bytes);
    std::vector<std::byte> from(kCopiedBytes, std::byte{1}), to(kCopiedBytes);
    NAM_RETURN_IF_ERROR(Measure("memory", &FabricConstants::memory_byte_ps, [&]() -> absl::StatusOr<double> {
      const int64_t begun_ns = clock_.NowNs();
      std::memcpy(to.data(), from.data(), kCopiedBytes);
      from[0] = to[kCopiedBytes - 1];
      return SincePs(begun_ns) / (2.0 * kCopiedBytes);  // each byte is read and written
    }));
    const double l2 = constants_.l2_bytes, l3 = constants_.l3_bytes;
    NAM_RETURN_IF_ERROR(MeasureAccesses(l2 / 2, &FabricConstants::l2_access_ps));
    NAM_RETURN_IF_ERROR(MeasureAccesses(std::max(l2, l3 / 2), &FabricConstants::l3_access_ps));
    NAM_RETURN_IF_ERROR(MeasureAccesses(4 * l3, &FabricConstants::memory_access_ps));
    // On a busy host a level may appear faster than the previous one.
    constants_.l3_access_ps = std::max(constants_.l3_access_ps, constants_.l2_access_ps);
    constants_.memory_access_ps = std::max(constants_.memory_access_ps, constants_.l3_access_ps);
    return absl::OkStatus();
  }

  /// Words at independent places, which a processor can fetch concurrently, as in batched probes.
  absl::Status MeasureAccesses(double set_bytes, double FabricConstants::*constant) {
    const auto bytes = std::min(kLargestSetBytes, static_cast<uint64_t>(set_bytes));
    const uint64_t words = std::max<uint64_t>(1, bytes / sizeof(uint64_t));
    std::vector<uint64_t> set(words, 1);
    uint64_t sum = 0;
    return Measure("caches", constant, [&]() -> absl::StatusOr<double> {
      const int64_t begun_ns = clock_.NowNs();
      for (uint64_t i = 0; i < kAccesses; ++i) {
        const uint64_t hash = i * 0x9E3779B97F4A7C15;
        sum += set[static_cast<uint64_t>((static_cast<unsigned __int128>(hash) * words) >> 64)];
      }
      return sum == 0 ? 0 : SincePs(begun_ns) / static_cast<double>(kAccesses);
    });
  }

  catalog::Attachment& attachment_;
  Clock& clock_;
  const CalibrationOptions& options_;
  FabricConstants constants_;
};

}  // namespace

absl::StatusOr<FabricConstants> MeasureFabricConstants(catalog::Attachment& attachment,
                                                       const FabricConstants& before,
                                                       const CalibrationOptions& options) {
  return Calibration(attachment, before, options).Run();
}

}  // namespace nam::bench
