#include "bench/fabric_lane.h"

#include <algorithm>
#include <array>
#include <numeric>

#include "absl/strings/str_format.h"
#include "base/check.h"
#include "base/status_macros.h"

namespace nam::bench {
namespace {

constexpr int64_t kConnectTimeoutUs = 5'000'000;
constexpr int64_t kCompletionTimeoutUs = 10'000'000;
/// Operations and payload bytes between two clock reads.
constexpr uint64_t kOperationsPerLook = 256;
constexpr uint64_t kBytesPerLook = 1u << 20;

}  // namespace

absl::StatusOr<std::unique_ptr<Lane>> Lane::Open(fabric::Fabric& fabric, const ServerAddress& server,
                                                 uint64_t buffer_bytes, uint64_t seed) {
  std::unique_ptr<Lane> lane(new Lane(fabric, server, seed));
  // Private memory; in huge pages if available, like the server's region.
  NAM_ASSIGN_OR_RETURN(lane->buffer_,
                       fabric.Allocate(buffer_bytes, {.access = fabric::Access::kNone, .populate = true}));
  NAM_ASSIGN_OR_RETURN(lane->completions_, fabric.CreateCompletionQueue(4 * (kInFlightMax + 1)));
  const fabric::QueuePairOptions options{.send_depth = kInFlightMax, .receive_depth = 1};
  const Deadline deadline = fabric.clock().After(kConnectTimeoutUs);
  NAM_ASSIGN_OR_RETURN(lane->one_sided_,
                       fabric.Connect(server.one_sided, *lane->completions_, options, deadline));
  NAM_ASSIGN_OR_RETURN(lane->messages_,
                       fabric.Connect(server.messages, *lane->completions_, options, deadline));
  return lane;
}

absl::StatusOr<std::byte*> Lane::View() {
  NAM_ASSIGN_OR_RETURN(const auto view, one_sided_->View({server_.rkey, 0}, server_.region_bytes));
  // The mapping is writable, because peers may write to the region.
  return const_cast<std::byte*>(view.data());
}

absl::Status Lane::Touch() {
  const uint32_t bytes =
      static_cast<uint32_t>(std::min<uint64_t>({kBytesMax, buffer_->bytes(), server_.region_bytes}));
  for (uint64_t at = 0; at + bytes <= server_.region_bytes; at += bytes) {
    const auto read = fabric::WorkRequest::Read(0, buffer_->Slice(0, bytes), {server_.rkey, at});
    NAM_RETURN_IF_ERROR(one_sided_->Post({&read, 1}));
    fabric::Completion done;
    if (completions_->Wait({&done, 1}, fabric_.clock().After(kCompletionTimeoutUs)) == 0)
      return absl::UnavailableError("the benchmark's server does not answer");
    if (!done.ok()) return CompletionFailed(done);
  }
  return absl::OkStatus();
}

absl::Status Lane::CompletionFailed(const fabric::Completion& completion) const {
  return fabric::CompletionError(completion,
                                 completion.queue_pair == messages_->id() ? *messages_ : *one_sided_);
}

void Lane::Prepare(const FabricCase& wanted) {
  using fabric::WorkRequest;
  requests_.clear();
  for (uint64_t slot = 0; slot < wanted.in_flight; ++slot) {
    const fabric::LocalBuffer local = buffer_->Slice(slot * wanted.bytes, wanted.bytes);
    const fabric::RemoteAddress remote{server_.rkey, 0};
    switch (wanted.operation) {
      case Operation::kRead:
        requests_.push_back(WorkRequest::Read(slot, local, remote));
        break;
      case Operation::kWrite:
        requests_.push_back(WorkRequest::Write(slot, local, remote));
        break;
      case Operation::kCompareAndSwap:
        requests_.push_back(WorkRequest::CompareAndSwap(slot, local, remote, 0, 0));
        break;
      case Operation::kFetchAdd:
        requests_.push_back(WorkRequest::FetchAdd(slot, local, remote, 1));
        break;
      case Operation::kSend:
        requests_.push_back(WorkRequest::Send(slot, local));
        break;
    }
  }
}

absl::Status Lane::Post(const FabricCase& wanted, std::span<const uint32_t> slots, Scatter& scatter) {
  fabric::QueuePair& queue_pair = wanted.operation == Operation::kSend ? *messages_ : *one_sided_;
  while (!slots.empty()) {
    const uint32_t first = slots.front();
    size_t run = 0;
    for (; run < slots.size() && slots[run] == first + run; ++run)
      requests_[first + run].remote.offset = scatter.Next();
    NAM_RETURN_IF_ERROR(queue_pair.Post(std::span(requests_).subspan(first, run)));
    slots = slots.subspan(run);
  }
  return absl::OkStatus();
}

absl::StatusOr<Lane::Outcome> Lane::Run(const FabricCase& wanted, int64_t duration_ns,
                                        std::vector<int64_t>* latencies_ns) {
  NAM_CHECK(wanted.in_flight <= kInFlightMax &&
            uint64_t{wanted.bytes} * wanted.in_flight <= buffer_->bytes());
  Clock& clock = fabric_.clock();
  Scatter scatter(server_.region_bytes, wanted.bytes, seed_);
  std::array<int64_t, kInFlightMax> posted_at_ns;
  std::array<fabric::Completion, kInFlightMax> done;
  std::vector<uint32_t> slots(wanted.in_flight);
  std::iota(slots.begin(), slots.end(), 0);
  const uint64_t operations_per_look =
      std::clamp<uint64_t>(kBytesPerLook / wanted.bytes, 1, kOperationsPerLook);
  Prepare(wanted);
  const int64_t start_ns = clock.NowNs();
  int64_t now_ns = start_ns;
  posted_at_ns.fill(start_ns);
  uint64_t completed = 0, look_at = operations_per_look;
  uint32_t in_flight = wanted.in_flight;
  NAM_RETURN_IF_ERROR(Post(wanted, slots, scatter));
  while (in_flight > 0) {
    size_t taken = completions_->Poll(done);
    if (taken == 0) taken = completions_->Wait(done, clock.After(kCompletionTimeoutUs));
    if (taken == 0) return absl::UnavailableError("the benchmark's server does not answer");
    completed += taken;
    if (latencies_ns != nullptr || completed >= look_at) {
      now_ns = clock.NowNs();
      look_at = completed + operations_per_look;
    }
    slots.clear();
    for (size_t i = 0; i < taken; ++i) {
      if (!done[i].ok()) return CompletionFailed(done[i]);
      const auto slot = static_cast<uint32_t>(done[i].id);
      slots.push_back(slot);
      if (latencies_ns == nullptr) continue;
      if (latencies_ns->size() < latencies_ns->capacity())
        latencies_ns->push_back(now_ns - posted_at_ns[slot]);
      posted_at_ns[slot] = now_ns;
    }
    if (now_ns - start_ns < duration_ns) {
      NAM_RETURN_IF_ERROR(Post(wanted, slots, scatter));
    } else {
      in_flight -= static_cast<uint32_t>(taken);
    }
  }
  return Outcome{.operations = completed, .elapsed_ns = std::max<int64_t>(clock.NowNs() - start_ns, 1)};
}

}  // namespace nam::bench
