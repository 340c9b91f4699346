#include "tests/fabric/fixture.h"

#include <cstdlib>
#include <utility>

#include "tests/fabric/child.h"

namespace nam::fabric::conformance {

bool LossyNetwork() {
  return std::getenv("NAM_TEST_LOSSY") != nullptr;
}

int64_t TimeoutFactor() {
  const char* text = std::getenv("NAM_TEST_TIMEOUT_FACTOR");
  const int64_t factor = text != nullptr ? std::atoll(text) : 1;
  return factor > 0 ? factor : 1;
}

void Conformance::SetUp() {
  auto server = provider_.Open("secret");
  ASSERT_OK(server.status());
  server_ = *std::move(server);
  client_ = Take(provider_.Open("secret"));
  ASSERT_NE(client_, nullptr);
  region_ = Allocate(*server_, kRegionBytes);
  local_ = Allocate(*client_, kRegionBytes, Access::kNone);
  listener_ = Take(server_->Listen({.address = provider_.ListenAddress(), .passive = true}));
  completions_ = NewQueue(4096);
  ASSERT_TRUE(region_ && local_ && listener_ && completions_);
  queue_pair_ = NewQueuePair();
  ASSERT_NE(queue_pair_, nullptr);
}

Completion Conformance::Next(CompletionQueue& completions) {
  Completion completion;
  if (completions.Wait({&completion, 1}, Soon()) != 1) ADD_FAILURE() << "no completion in time";
  return completion;
}

Completion Conformance::Run(CompletionQueue& completions, QueuePair& queue_pair, const WorkRequest& request) {
  const absl::Status posted = queue_pair.Post({&request, 1});
  EXPECT_TRUE(posted.ok()) << posted.ToString();
  if (!posted.ok()) return {};
  const Completion completion = Next(completions);
  EXPECT_EQ(completion.id, request.id);
  EXPECT_EQ(completion.opcode, request.opcode);
  EXPECT_EQ(completion.queue_pair, queue_pair.id());
  return completion;
}

void MessageConformance::SetUp() {
  Conformance::SetUp();
  if (IsSkipped() || HasFatalFailure()) return;
  active_ = Take(server_->Listen({.address = provider_.ListenAddress(), .passive = false}));
  server_completions_ = Take(server_->CreateCompletionQueue(4096));
  server_local_ = Allocate(*server_, kRegionBytes, Access::kNone);
  ASSERT_TRUE(active_ && server_completions_ && server_local_);
  Pair(*completions_, {}, &client_pair_, &server_pair_);
  ASSERT_TRUE(client_pair_ && server_pair_);
}

void MessageConformance::Pair(CompletionQueue& client_queue, const QueuePairOptions& client_options,
                              std::unique_ptr<QueuePair>* client, std::unique_ptr<QueuePair>* server) {
  // Whether Connect returns before Accept does is the provider's choice.
  const auto thread = server_->StartThread("accept", [&] {
    *server = Take(active_->Accept(*server_completions_, {}, server_->clock().After(kTimeoutUs)));
  });
  *client = ConnectTo(active_->address(), client_queue, client_options);
}

void MessageConformance::PostReceives(QueuePair& queue_pair, MemoryRegion& region, size_t count,
                                      uint32_t bytes) {
  for (size_t i = 0; i < count; ++i) {
    const ReceiveRequest receive{.id = i, .into = region.Slice(i * bytes, bytes)};
    ASSERT_OK(queue_pair.PostReceive({&receive, 1}));
  }
}

void FillPattern(std::byte* data, size_t bytes, uint32_t seed) {
  for (size_t i = 0; i < bytes; ++i) data[i] = static_cast<std::byte>((i * 31 + (i >> 8) + seed) & 0xff);
}

bool HasPattern(const std::byte* data, size_t bytes, uint32_t seed) {
  for (size_t i = 0; i < bytes; ++i) {
    if (data[i] != static_cast<std::byte>((i * 31 + (i >> 8) + seed) & 0xff)) return false;
  }
  return true;
}

}  // namespace nam::fabric::conformance

int main(int argc, char** argv) {
  if (const auto child = nam::fabric::conformance::RunAsChild(argc, argv)) return *child;
  testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
