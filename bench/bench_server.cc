#include "bench/bench_server.h"

#include <array>
#include <utility>

#include "base/status_macros.h"

namespace nam::bench {
namespace {

constexpr uint32_t kReceiveDepth = 128;  // per sender
constexpr size_t kSendersMax = 64;
constexpr int64_t kStopCheckUs = 50'000;

}  // namespace

absl::StatusOr<std::unique_ptr<BenchServer>> BenchServer::Start(fabric::Fabric& fabric, uint64_t region_bytes,
                                                                const std::string& host) {
  std::unique_ptr<BenchServer> server(new BenchServer(fabric));
  NAM_ASSIGN_OR_RETURN(server->region_, fabric.Allocate(region_bytes, {.populate = true}));
  const std::string any = fabric::AnyAddress(fabric.kind(), host);
  NAM_ASSIGN_OR_RETURN(server->one_sided_, fabric.Listen({.address = any}));
  NAM_ASSIGN_OR_RETURN(server->messages_, fabric.Listen({.address = any, .passive = false}));
  server->address_ = {.one_sided = server->one_sided_->address(),
                      .messages = server->messages_->address(),
                      .rkey = server->region_->rkey(),
                      .region_bytes = region_bytes};
  server->accept_thread_ =
      fabric.StartThread("bench-accept", [server = server.get()] { server->AcceptSenders(); });
  return server;
}

BenchServer::~BenchServer() {
  stopping_ = true;
}

/// Accepts senders, and serves each on its own thread.
void BenchServer::AcceptSenders() {
  struct Sender {
    std::unique_ptr<fabric::MemoryRegion> buffer;
    std::unique_ptr<fabric::CompletionQueue> completions;
    std::unique_ptr<fabric::QueuePair> queue_pair;
    std::unique_ptr<fabric::Thread> thread;
  };
  std::vector<Sender> senders;
  while (!stopping_ && senders.size() < kSendersMax) {
    Sender sender;
    auto buffer = fabric_.Allocate(size_t{kReceiveDepth} * fabric::kMaxSendBytes, {.huge_pages = false});
    auto completions = fabric_.CreateCompletionQueue(kReceiveDepth + 1);
    if (!buffer.ok() || !completions.ok()) return;
    sender.buffer = *std::move(buffer);
    sender.completions = *std::move(completions);
    while (!stopping_ && sender.queue_pair == nullptr) {
      auto accepted =
          messages_->Accept(*sender.completions, {.send_depth = 1, .receive_depth = kReceiveDepth},
                            fabric_.clock().After(kStopCheckUs));
      if (accepted.ok()) sender.queue_pair = *std::move(accepted);
    }
    if (sender.queue_pair == nullptr) break;
    sender.thread = fabric_.StartThread(
        "bench-receive", [this, completions = sender.completions.get(), pair = sender.queue_pair.get(),
                          region = sender.buffer.get()] { TakeMessages(*completions, *pair, *region); });
    senders.push_back(std::move(sender));
  }
  for (Sender& sender : senders) sender.thread.reset();
}

/// Reposts each receive as soon as it is used, until the sender is gone.
void BenchServer::TakeMessages(fabric::CompletionQueue& completions, fabric::QueuePair& queue_pair,
                               fabric::MemoryRegion& buffer) {
  std::vector<fabric::ReceiveRequest> batch;
  for (uint64_t i = 0; i < kReceiveDepth; ++i)
    batch.push_back({i, buffer.Slice(i * fabric::kMaxSendBytes, fabric::kMaxSendBytes)});
  std::array<fabric::Completion, kReceiveDepth> done;
  while (!stopping_) {
    if (!batch.empty() && !queue_pair.PostReceive(batch).ok()) return;
    batch.clear();
    const size_t taken = completions.Wait(done, fabric_.clock().After(kStopCheckUs));
    for (size_t i = 0; i < taken; ++i) {
      if (!done[i].ok()) return;
      batch.push_back({done[i].id, buffer.Slice(done[i].id * fabric::kMaxSendBytes, fabric::kMaxSendBytes)});
    }
  }
}

absl::StatusOr<std::vector<storage::MulticastAddress>> BenchServer::StartMulticast(
    const std::vector<storage::MulticastTable>& tables, uint32_t members, uint32_t first_group) {
  const auto memory = [region = region_.get()](storage::RemotePtr<void> block,
                                               uint64_t bytes) -> const std::byte* {
    const bool inside = block.offset() <= region->bytes() && bytes <= region->bytes() - block.offset();
    return inside ? region->data() + block.offset() : nullptr;
  };
  std::vector<storage::MulticastAddress> addresses;
  for (uint32_t group = first_group; group < first_group + tables.size(); ++group) {
    NAM_ASSIGN_OR_RETURN(const auto blocks,
                         storage::MulticastBlocks::Number({tables[group - first_group]}, {kBenchServer}));
    auto& sender = senders_.emplace_back(std::make_unique<Sender>());
    NAM_ASSIGN_OR_RETURN(sender->stream, storage::MulticastSender::Open(
                                             fabric_, memory, blocks.ExtentsOf(0),
                                             {.server = kBenchServer, .group = group, .members = members}));
    addresses.push_back(sender->stream->address());
  }
  for (const auto& sender : senders_) {
    sender->thread = fabric_.StartThread("bench-multicast", [this, sender = sender.get()] {
      sender->outcome = sender->stream->Run(stopping_);
    });
  }
  return addresses;
}

absl::Status BenchServer::FinishMulticast() {
  absl::Status outcome;
  for (const auto& sender : senders_) {
    sender->thread.reset();
    outcome.Update(sender->outcome);
  }
  senders_.clear();
  return outcome;
}

}  // namespace nam::bench
