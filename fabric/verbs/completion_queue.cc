#include "fabric/verbs/completion_queue.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <utility>

#include "absl/strings/str_format.h"
#include "base/check.h"
#include "base/clock.h"
#include "base/status_macros.h"

namespace nam::fabric::verbs {
namespace {

constexpr size_t kBatch = 32;
/// About the cost of an interrupt and a wake-up.
constexpr int64_t kPollNs = 20'000;
constexpr uint32_t kFirstRoom = 256;
/// A failed request that was split completes twice; so does a completion taken from the NIC but not yet from
/// its place.
constexpr uint32_t kEntriesPerRequest = 2;

}  // namespace

absl::StatusOr<std::unique_ptr<VerbsCompletionQueue>> VerbsCompletionQueue::Create(std::shared_ptr<Core> core,
                                                                                   uint32_t depth) {
  const Device& device = core->device();
  if (depth == 0) return absl::InvalidArgumentError("a completion queue of depth 0");
  std::unique_ptr<VerbsCompletionQueue> queue(new VerbsCompletionQueue(std::move(core), depth));
  queue->channel_.reset(ibv_create_comp_channel(device.context()));
  if (queue->channel_ == nullptr || !queue->wake_.valid()) {
    return absl::ResourceExhaustedError("no file descriptors left for a completion queue: raise `ulimit -n`");
  }
  const int fd = queue->channel_->fd;
  NAM_CHECK(fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK) == 0);
  queue->room_ = std::min(depth, kFirstRoom);
  const auto entries = static_cast<int>(queue->room_ * kEntriesPerRequest);
  queue->handle_.reset(ibv_create_cq(device.context(), entries, nullptr, queue->channel_.get(), 0));
  if (queue->handle_ == nullptr) {
    return VerbsError(
        device, absl::StrFormat("cannot make a completion queue of %d entries", entries), errno,
        "other processes may have used up the device's, or pinned memory is limited (`ulimit -l`)");
  }
  return queue;
}

VerbsCompletionQueue::VerbsCompletionQueue(std::shared_ptr<Core> core, uint32_t depth)
    : core_(std::move(core)), places_(depth), wake_(eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)) {}

VerbsCompletionQueue::~VerbsCompletionQueue() {
  NAM_CHECK(sources_.empty(), "queue pairs go before their queue");
}

absl::Status VerbsCompletionQueue::Attach(uint32_t id, CompletionSource& source, uint64_t places) {
  NAM_RETURN_IF_ERROR(CheckRoom(places));
  const uint64_t reserved = places_.reserved() + places;
  if (reserved > room_) NAM_RETURN_IF_ERROR(Grow(reserved));
  places_.Reserve(places);
  sources_[id] = &source;
  return absl::OkStatus();
}

absl::Status VerbsCompletionQueue::Grow(uint64_t requests) {
  const Device& device = core_->device();
  const auto most = static_cast<uint64_t>(device.attributes().max_cqe) / kEntriesPerRequest;
  if (requests > most) {
    return absl::ResourceExhaustedError(absl::StrFormat(
        "a completion queue of %s has room for %d work requests, not for %d: share it among fewer "
        "queue pairs, or make them shallower",
        device.name(), most, requests));
  }
  const uint64_t room = std::min<uint64_t>({std::max(requests, 2 * room_), most, places_.depth()});
  const int error = ibv_resize_cq(handle_.get(), static_cast<int>(room * kEntriesPerRequest));
  if (error != 0) {
    return VerbsError(
        device, absl::StrFormat("cannot grow a completion queue to %d entries", room * kEntriesPerRequest),
        error, "pinned memory is limited (`ulimit -l`)");
  }
  room_ = room;
  return absl::OkStatus();
}

void VerbsCompletionQueue::Detach(uint32_t id, uint64_t places) {
  if (sources_.erase(id) == 0) return;
  places_.Release(places);
  std::erase_if(kept_, [id](const Completion& completion) { return completion.queue_pair == id; });
  // Its leftover completions would take the next queue pair's room.
  while (PollNic(kBatch, [this](const Completion& completion) { kept_.push_back(completion); }) > 0) {
  }
}

template <typename Sink>
size_t VerbsCompletionQueue::PollNic(size_t limit, Sink&& sink) {
  std::array<ibv_wc, kBatch> batch;
  const int count = ibv_poll_cq(handle_.get(), static_cast<int>(std::min(limit, kBatch)), batch.data());
  NAM_CHECK(count >= 0, "the NIC's completion queue cannot be read");
  for (int i = 0; i < count; ++i) {
    const auto source = sources_.find(WorkId::Owner(batch[i].wr_id));
    if (source == sources_.end()) continue;
    if (const auto completion = source->second->Translate(batch[i])) sink(*completion);
  }
  return static_cast<size_t>(count);
}

size_t VerbsCompletionQueue::Poll(std::span<Completion> completions) {
  size_t taken = 0;
  for (; taken < completions.size() && !kept_.empty(); kept_.pop_front())
    completions[taken++] = kept_.front();
  while (taken < completions.size()) {
    const size_t limit = completions.size() - taken;
    const size_t before = taken;
    const size_t polled =
        PollNic(limit, [&](const Completion& completion) { completions[taken++] = completion; });
    if (polled == 0 || (taken > before && polled < std::min(limit, kBatch))) break;
  }
  return taken;
}

size_t VerbsCompletionQueue::Wait(std::span<Completion> completions, Deadline deadline) {
  int64_t poll_until_ns = 0;
  bool armed = false;
  while (true) {
    if (const size_t taken = Poll(completions); taken > 0) return taken;
    if (woken_.exchange(false) || completions.empty()) return 0;
    const int64_t now_ns = RealClock().NowNs();
    if (now_ns >= deadline.ns) return 0;
    if (poll_until_ns == 0) poll_until_ns = now_ns + kPollNs;
    if (now_ns < poll_until_ns) continue;
    if (armed) {
      Sleep(deadline);
      armed = false;
      continue;
    }
    // Later arrivals end the sleep; one more poll sees earlier ones.
    NAM_CHECK(ibv_req_notify_cq(handle_.get(), 0) == 0, "the NIC's completion queue cannot be armed");
    armed = true;
  }
}

void VerbsCompletionQueue::Sleep(Deadline deadline) {
  std::array<pollfd, 2> fds = {pollfd{channel_->fd, POLLIN, 0}, pollfd{wake_.get(), POLLIN, 0}};
  // At most an hour, because some kernels refuse timespecs in the far future.
  const int64_t left_ns = std::clamp<int64_t>(deadline.ns - RealClock().NowNs(), 0, 3'600'000'000'000);
  const timespec timeout{left_ns / 1'000'000'000, left_ns % 1'000'000'000};
  const int count = ppoll(fds.data(), fds.size(), &timeout, nullptr);
  NAM_CHECK(count >= 0 || errno == EINTR);
  ibv_cq* queue = nullptr;
  void* context = nullptr;
  while (ibv_get_cq_event(channel_.get(), &queue, &context) == 0) ibv_ack_cq_events(queue, 1);
  uint64_t rung;
  [[maybe_unused]] const ssize_t got = read(wake_.get(), &rung, sizeof(rung));
}

void VerbsCompletionQueue::Wake() {
  woken_ = true;
  const uint64_t one = 1;
  // Fails only when the counter is full, and then the owner wakes anyway.
  [[maybe_unused]] const ssize_t written = write(wake_.get(), &one, sizeof(one));
}

}  // namespace nam::fabric::verbs
