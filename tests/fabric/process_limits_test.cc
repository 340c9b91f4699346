#include "base/process_limits.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "fabric/fabric.h"
#include "fabric/shm/shm_fabric.h"
#include "fabric/threads.h"
#include "tests/fabric/take.h"

/// A process that the system gives no more addresses, as under `ulimit -v`.
namespace nam::fabric {
namespace {

constexpr uint64_t kMiB = 1 << 20;

/// While it lives, the process gets hardly more addresses than it has.
class LittleAddressSpace {
 public:
  explicit LittleAddressSpace(uint64_t more_bytes) {
    uint64_t pages = 0;
    std::ifstream("/proc/self/statm") >> pages;
    EXPECT_EQ(getrlimit(RLIMIT_AS, &before_), 0);
    rlimit little = before_;
    little.rlim_cur = pages * static_cast<uint64_t>(sysconf(_SC_PAGESIZE)) + more_bytes;
    EXPECT_EQ(setrlimit(RLIMIT_AS, &little), 0);
  }
  ~LittleAddressSpace() { EXPECT_EQ(setrlimit(RLIMIT_AS, &before_), 0); }

 private:
  rlimit before_{};
};

/// Sanitizers take addresses as they please.
bool Sanitized() {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  return true;
#else
  return false;
#endif
}

void ExpectNamesLimit(const absl::Status& status) {
  EXPECT_TRUE(absl::IsResourceExhausted(status)) << status;
  EXPECT_TRUE(IsProcessLimit(status)) << status;
  EXPECT_NE(status.message().find("`ulimit -v`"), std::string::npos) << status;
}

TEST(ProcessLimits, AThreadThatIsRefusedIsAnError) {
  if (Sanitized()) GTEST_SKIP() << "the sanitizer maps more addresses than the limit leaves";
  constexpr int kThreadsMost = 200;  // parked ones, and those whose stacks are kept, need no addresses
  const std::unique_ptr<Event> may_end = MakeRealEvent();
  std::vector<std::unique_ptr<Thread>> threads;
  absl::Status refused, opened;
  {
    const LittleAddressSpace little(4 * kMiB);
    while (refused.ok() && threads.size() < kThreadsMost) {
      auto started = TryStartRealThread("test", [&] { may_end->Wait(Deadline::Never()); });
      refused = started.status();
      if (started.ok()) threads.push_back(*std::move(started));
    }
    opened = OpenShm({.secret = "secret"}).status();
  }
  ExpectNamesLimit(refused);
  ExpectNamesLimit(opened);
  EXPECT_EQ(refused.message().find("threads"), std::string::npos) << "others are left: " << refused;
  bool ran = false;
  auto started = TryStartRealThread("test", [&] { ran = true; });
  ASSERT_TRUE(started.ok()) << started.status();
  started->reset();
  EXPECT_TRUE(ran);
  may_end->Set();
}

TEST(ProcessLimits, MemoryOfAPeerThatCannotBeMappedIsAnError) {
  if (Sanitized()) GTEST_SKIP() << "the sanitizer maps more addresses than the limit leaves";
  const std::unique_ptr<Fabric> server = Take(OpenShm({.secret = "secret"}));
  const std::unique_ptr<Listener> listener = Take(server->Listen({.address = "@"}));
  const std::unique_ptr<MemoryRegion> large = Take(server->Allocate(64 * kMiB, {.huge_pages = false}));
  const std::unique_ptr<MemoryRegion> small = Take(server->Allocate(4'096, {.huge_pages = false}));
  const std::unique_ptr<Fabric> client = Take(OpenShm({.secret = "secret"}));
  const std::unique_ptr<CompletionQueue> completions = Take(client->CreateCompletionQueue(1024));
  const std::unique_ptr<MemoryRegion> local = Take(client->Allocate(4'096, {.huge_pages = false}));
  const auto read = [&](QueuePair& pair, const MemoryRegion& from) {
    const WorkRequest request{
        .id = 1, .opcode = Opcode::kRead, .local = local->Slice(0, 8), .remote = {from.rkey(), 0}};
    Completion completion{.status = CompletionStatus::kFlushed};
    EXPECT_TRUE(pair.Post({&request, 1}).ok());
    EXPECT_EQ(completions->Wait({&completion, 1}, client->clock().After(60'000'000)), 1u);
    return completion;
  };
  const auto connect = [&] {
    return Take(client->Connect(listener->address(), *completions, {}, client->clock().After(60'000'000)));
  };
  {
    const std::unique_ptr<QueuePair> pair = connect();
    EXPECT_TRUE(read(*pair, *small).ok());
    const LittleAddressSpace little(16 * kMiB);
    const Completion refused = read(*pair, *large);
    EXPECT_EQ(refused.status, CompletionStatus::kNoMemory) << CompletionStatusName(refused.status);
    ExpectNamesLimit(CompletionError(refused, *pair));
  }
  const std::unique_ptr<QueuePair> pair = connect();
  {
    const LittleAddressSpace little(16 * kMiB);
    ExpectNamesLimit(pair->View({large->rkey(), 0}, 8).status());
  }
  EXPECT_TRUE(read(*connect(), *large).ok());
}

}  // namespace
}  // namespace nam::fabric
