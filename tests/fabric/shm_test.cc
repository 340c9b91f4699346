#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "base/unique_fd.h"
#include "fabric/fabric.h"
#include "fabric/immediate.h"
#include "fabric/shm/handshake.h"
#include "fabric/shm/initiators.h"
#include "fabric/shm/memory.h"
#include "fabric/shm/shm_fabric.h"
#include "fabric/shm/socket.h"
#include "tests/fabric/take.h"

/// Guarantees of the shared-memory fabric alone: descriptors, seals, socket files.
namespace nam::fabric {
namespace {

constexpr size_t kShmRegionBytes = 8192;
constexpr int64_t kTimeoutUs = 60'000'000;  // a hang guard

struct Mapped {
  std::byte* data = nullptr;
  size_t bytes = 0;
  std::string rights;
};

/// This process' mappings of memfds named so.
std::vector<Mapped> MappingsOf(const std::string& name) {
  std::vector<Mapped> found;
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);) {
    unsigned long start = 0, end = 0;
    char rights[8] = {};
    if (line.find("/memfd:" + name) == std::string::npos) continue;
    if (std::sscanf(line.c_str(), "%lx-%lx %7s", &start, &end, rights) != 3) continue;
    found.push_back({reinterpret_cast<std::byte*>(start), end - start, rights});
  }
  return found;
}

/// Paths of this process' descriptors of memfds named so.
std::vector<std::string> DescriptorsOf(const std::string& name) {
  std::vector<std::string> found;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
    std::error_code error;
    const std::string target = std::filesystem::read_symlink(entry.path(), error);
    if (target.rfind("/memfd:" + name, 0) == 0) found.push_back(entry.path());
  }
  return found;
}

class ShmFabricTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string directory = "/tmp/nam-shm-test-XXXXXX";
    ASSERT_NE(mkdtemp(directory.data()), nullptr);
    directory_ = directory;
    server_ = Take(OpenShm({.secret = "secret"}));
    client_ = Take(OpenShm({.secret = "secret"}));
    completions_ = Take(client_->CreateCompletionQueue(1024));
    local_ = Take(client_->Allocate(kShmRegionBytes, {.access = Access::kNone}));
    ASSERT_TRUE(server_ && client_ && completions_ && local_);
  }
  void TearDown() override { std::filesystem::remove_all(directory_); }

  Deadline Soon() { return client_->clock().After(kTimeoutUs); }
  std::string Path(const std::string& name) const { return directory_ + "/" + name; }

  CompletionStatus Run(QueuePair& pair, const WorkRequest& request) {
    Completion completion{.status = CompletionStatus::kFlushed};
    EXPECT_TRUE(pair.Post({&request, 1}).ok());
    EXPECT_EQ(completions_->Wait({&completion, 1}, Soon()), 1u);
    return completion.status;
  }

  std::string directory_;
  std::unique_ptr<Fabric> server_;
  std::unique_ptr<Fabric> client_;
  std::unique_ptr<CompletionQueue> completions_;
  std::unique_ptr<MemoryRegion> local_;
};

TEST_F(ShmFabricTest, ReadOnlyRegionsStayReadOnlyHoweverTheyAreMapped) {
  const auto region = Take(server_->Allocate(kShmRegionBytes * 3, {.access = Access::kRead}));
  const auto listener = Take(server_->Listen({.address = "@"}));
  const auto pair = Take(client_->Connect(listener->address(), *completions_, {}, Soon()));
  ASSERT_EQ(Run(*pair, WorkRequest::Read(1, local_->Slice(0, 8), {region->rkey(), 0})),
            CompletionStatus::kOk);

  int peer_mappings = 0;
  for (const Mapped& mapped : MappingsOf("nam-region")) {
    if (mapped.bytes != kShmRegionBytes * 3 || mapped.data == region->data()) continue;
    ++peer_mappings;
    EXPECT_EQ(mapped.rights, "r--s");
    EXPECT_NE(mprotect(mapped.data, mapped.bytes, PROT_READ | PROT_WRITE), 0);
    EXPECT_EQ(errno, EACCES);
  }
  EXPECT_EQ(peer_mappings, 1);
  // Even the owner's own descriptor, opened again, gives no writable mapping.
  int checked = 0;
  for (const std::string& path : DescriptorsOf("nam-region")) {
    const UniqueFd fd(open(path.c_str(), O_RDWR | O_CLOEXEC));
    struct stat status {};
    // The service thread may have closed its copy since.
    if (fstat(fd.get(), &status) != 0 || static_cast<size_t>(status.st_size) != kShmRegionBytes * 3) continue;
    ++checked;
    EXPECT_EQ(mmap(nullptr, kShmRegionBytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd.get(), 0), MAP_FAILED);
    EXPECT_LT(pwrite(fd.get(), "x", 1, 0), 0);
  }
  EXPECT_GE(checked, 1);
  region->data()[0] = std::byte{1};  // the owner still writes
}

TEST_F(ShmFabricTest, SizesAreSealed) {
  const auto region = Take(server_->Allocate(kShmRegionBytes, {}));
  const auto listener = Take(server_->Listen({.address = "@"}));
  const auto pair = Take(client_->Connect(listener->address(), *completions_, {}, Soon()));
  const std::vector<std::string> paths = DescriptorsOf("nam-");
  EXPECT_GE(paths.size(), 6u) << "two tables, two pages of doorbells, two regions";
  for (const std::string& path : paths) {
    const UniqueFd fd(open(path.c_str(), O_RDWR | O_CLOEXEC));
    if (!fd.valid()) continue;  // a copy that the service thread has closed since
    EXPECT_NE(ftruncate(fd.get(), 0), 0) << path;
    EXPECT_NE(ftruncate(fd.get(), 1 << 30), 0) << path;
    EXPECT_NE(fcntl(fd.get(), F_ADD_SEALS, F_SEAL_WRITE), 0) << path;
  }
}

/// Without available huge pages, every allocation that asks for them first fails to get them.
TEST_F(ShmFabricTest, MemoryThatCannotBeHadInHugePagesCostsNobodyElsesMapping) {
  constexpr size_t kShmRegionBytes = size_t{4} << 20, kOthersBytes = size_t{5} << 19;
  std::atomic<bool> done{false};
  std::atomic<int> lost{0};
  std::vector<std::thread> others;
  for (int i = 0; i < 3; ++i) {
    others.emplace_back([&] {
      unsigned char present = 0;
      while (!done) {
        void* const data =
            mmap(nullptr, kOthersBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        ASSERT_NE(data, MAP_FAILED);
        std::this_thread::yield();
        // ENOMEM: nothing is mapped there any more.
        lost += mincore(static_cast<std::byte*>(data) + kOthersBytes / 2, 4096, &present) != 0;
        munmap(data, kOthersBytes);
      }
    });
  }
  for (int i = 0; i < 1'500; ++i) {
    const auto memory = shm::CreateShared("in-vain", kShmRegionBytes, shm::PeerAccess::kReadWrite, true);
    EXPECT_TRUE(memory.ok()) << memory.status();
  }
  done = true;
  for (std::thread& other : others) other.join();
  EXPECT_EQ(lost, 0);
}

TEST_F(ShmFabricTest, DeregisteredMemoryIsGivenBackByPeersThatWorkOn) {
  const auto listener = Take(server_->Listen({.address = "@"}));
  const auto stays = Take(server_->Allocate(kShmRegionBytes, {}));
  const auto pair = Take(client_->Connect(listener->address(), *completions_, {}, Soon()));
  for (int i = 0; i < 20; ++i) {
    const auto region = Take(server_->Allocate(kShmRegionBytes * 5, {}));
    ASSERT_EQ(Run(*pair, WorkRequest::Read(1, local_->Slice(0, 8), {region->rkey(), 0})),
              CompletionStatus::kOk);
  }
  ASSERT_EQ(Run(*pair, WorkRequest::Read(1, local_->Slice(0, 8), {stays->rkey(), 0})), CompletionStatus::kOk);
  for (const Mapped& mapped : MappingsOf("nam-region")) EXPECT_NE(mapped.bytes, kShmRegionBytes * 5);
}

class ShmImmediateTest : public ShmFabricTest {
 protected:
  void SetUp() override {
    ShmFabricTest::SetUp();
    region_ = Take(server_->Allocate(kShmRegionBytes, {.access = Access::kAll}));
    read_only_ = Take(server_->Allocate(kShmRegionBytes, {.access = Access::kRead}));
    listener_ = Take(server_->Listen({.address = "@"}));
  }
  std::unique_ptr<QueuePair> Connect() {
    return Take(client_->Connect(listener_->address(), *completions_, {}, Soon()));
  }
  static ImmediateOperations& Now(QueuePair& pair) { return dynamic_cast<ImmediateOperations&>(pair); }

  std::unique_ptr<MemoryRegion> region_, read_only_;
  std::unique_ptr<Listener> listener_;
};

TEST_F(ShmImmediateTest, OperationsAreLikePostedOnes) {
  const auto pair = Connect();
  ImmediateOperations& now = Now(*pair);
  const RemoteAddress at{region_->rkey(), 64};
  const uint64_t words[] = {1, 2, 3};
  std::memcpy(local_->data(), words, sizeof(words));
  const WorkRequest posted = WorkRequest::Write(1, local_->Slice(0, sizeof(words)), at, Signal::kUnsignaled);
  ASSERT_TRUE(pair->Post({&posted, 1}).ok());
  uint64_t old = 0;
  EXPECT_EQ(now.CompareAndSwapNow(at, 1, 10, &old), CompletionStatus::kOk) << "behind what was posted";
  EXPECT_EQ(old, 1u);
  EXPECT_EQ(now.CompareAndSwapNow(at, 1, 20, &old), CompletionStatus::kOk);
  EXPECT_EQ(old, 10u) << "and the word stays";
  EXPECT_EQ(now.FetchAddNow(at, 5, &old), CompletionStatus::kOk);
  EXPECT_EQ(old, 10u);
  const uint64_t second = 22;
  EXPECT_EQ(now.WriteNow(reinterpret_cast<const std::byte*>(&second), 8, {at.rkey, 72}),
            CompletionStatus::kOk);
  uint64_t read[3] = {};
  EXPECT_EQ(now.ReadNow(at, reinterpret_cast<std::byte*>(read), sizeof(read)), CompletionStatus::kOk);
  EXPECT_EQ(read[0], 15u);
  EXPECT_EQ(read[1], 22u);
  EXPECT_EQ(read[2], 3u);
  EXPECT_EQ(std::memcmp(region_->data() + 64, read, sizeof(read)), 0);
  const std::byte* const view = now.ViewNow(at, sizeof(read));
  ASSERT_NE(view, nullptr);
  EXPECT_EQ(std::memcmp(view, read, sizeof(read)), 0);
  // They have no completions, and take no place of those that have.
  EXPECT_EQ(Run(*pair, WorkRequest::Read(9, local_->Slice(0, 8), at)), CompletionStatus::kOk);
}

TEST_F(ShmImmediateTest, ErrorsFailTheQueuePair) {
  uint64_t word = 0;
  auto* const bytes = reinterpret_cast<std::byte*>(&word);
  const auto rkey = region_->rkey();
  using Operation = std::function<CompletionStatus(ImmediateOperations&)>;
  const std::pair<Operation, CompletionStatus> cases[] = {
      {[&](auto& now) {
         return now.ReadNow({{rkey.value + 1'000'000}, 0}, bytes, 8);
       },
       CompletionStatus::kRemoteAccessError},
      {[&](auto& now) {
         return now.ReadNow({rkey, kShmRegionBytes - 4}, bytes, 8);
       },
       CompletionStatus::kRemoteAccessError},
      {[&](auto& now) {
         return now.WriteNow(bytes, 8, {read_only_->rkey(), 0});
       },
       CompletionStatus::kRemoteAccessError},
      {[&](auto& now) {
         return now.FetchAddNow({read_only_->rkey(), 0}, 1, &word);
       },
       CompletionStatus::kRemoteAccessError},
      {[&](auto& now) {
         return now.CompareAndSwapNow({rkey, 4}, 0, 1, &word);
       },
       CompletionStatus::kRemoteInvalidRequest},
      {[&](auto& now) {
         return now.FetchAddNow({rkey, kShmRegionBytes + 4}, 1, &word);
       },
       CompletionStatus::kRemoteAccessError},
  };
  for (size_t i = 0; i < std::size(cases); ++i) {
    SCOPED_TRACE(i);
    const auto pair = Connect();
    ImmediateOperations& now = Now(*pair);
    EXPECT_EQ(now.ViewNow({rkey, kShmRegionBytes - 4}, 8), nullptr);
    EXPECT_EQ(now.FetchAddNow({rkey, 0}, 0, &word), CompletionStatus::kOk) << "a view fails nothing";
    EXPECT_EQ(cases[i].first(now), cases[i].second);
    EXPECT_EQ(pair->state(), QueuePairState::kError);
    EXPECT_EQ(now.FetchAddNow({rkey, 0}, 1, &word), CompletionStatus::kFlushed);
    EXPECT_EQ(now.ViewNow({rkey, 0}, 8), nullptr);
    EXPECT_EQ(Run(*pair, WorkRequest::Read(1, local_->Slice(0, 8), {rkey, 0})), CompletionStatus::kFlushed);
  }
  std::memcpy(&word, region_->data(), sizeof(word));
  EXPECT_EQ(word, 0u) << "what failed has changed nothing";
}

TEST_F(ShmImmediateTest, RegionsThatAreTakenBackAreNotReached) {
  const auto pair = Connect();
  uint64_t old = 0;
  const RemoteAddress at{region_->rkey(), 0};
  ASSERT_EQ(Now(*pair).FetchAddNow(at, 1, &old), CompletionStatus::kOk);
  region_.reset();
  EXPECT_EQ(Now(*pair).ViewNow(at, 8), nullptr);
  EXPECT_EQ(Now(*pair).FetchAddNow(at, 1, &old), CompletionStatus::kRemoteAccessError);
}

TEST_F(ShmFabricTest, StaleSocketFilesAreReplacedAndNothingElseIs) {
  const std::string path = Path("socket");
  {
    // A server that was killed: the file exists, without a listener.
    const UniqueFd dead(socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
    sockaddr_un address{.sun_family = AF_UNIX};
    std::memcpy(address.sun_path, path.data(), path.size());
    ASSERT_EQ(bind(dead.get(), reinterpret_cast<sockaddr*>(&address), sizeof(address)), 0);
  }
  ASSERT_TRUE(std::filesystem::exists(path));
  auto listener = Take(server_->Listen({.address = path}));
  ASSERT_NE(listener, nullptr);
  EXPECT_EQ(listener->address(), path);
  EXPECT_EQ(std::filesystem::status(path).permissions(),
            std::filesystem::perms::owner_read | std::filesystem::perms::owner_write);
  EXPECT_TRUE(absl::IsAlreadyExists(client_->Listen({.address = path}).status())) << "a listener answers";
  EXPECT_NE(Take(client_->Connect(path, *completions_, {}, Soon())), nullptr);
  listener.reset();
  EXPECT_FALSE(std::filesystem::exists(path));

  std::ofstream(path) << "precious";
  EXPECT_TRUE(absl::IsAlreadyExists(server_->Listen({.address = path}).status()));
  EXPECT_TRUE(std::filesystem::is_regular_file(path));
}

TEST_F(ShmFabricTest, AListenerRemovesOnlyItsOwnSocketFile) {
  const std::string path = Path("socket");
  auto first = Take(server_->Listen({.address = path}));
  std::filesystem::remove(path);
  const auto second = Take(client_->Listen({.address = path}));
  first.reset();
  EXPECT_TRUE(std::filesystem::is_socket(path));
}

TEST_F(ShmFabricTest, AddressesThatDoNotFitAreRefused) {
  const std::string longest = Path(std::string(107 - directory_.size() - 1, 'x'));
  EXPECT_NE(Take(server_->Listen({.address = longest})), nullptr);
  for (const std::string& address : {longest + "x", "@" + std::string(107, 'x')}) {
    const absl::Status refused = server_->Listen({.address = address}).status();
    EXPECT_TRUE(absl::IsInvalidArgument(refused)) << refused.ToString();
    EXPECT_TRUE(absl::IsInvalidArgument(client_->Connect(address, *completions_, {}, Soon()).status()));
  }
  EXPECT_TRUE(absl::IsNotFound(server_->Listen({.address = Path("no/such/directory")}).status()));
  const auto picked = Take(server_->Listen({.address = "@"}));
  EXPECT_GT(picked->address().size(), 10u);
}

TEST_F(ShmFabricTest, SilentConnectionsAreClosed) {
  const auto impatient = Take(OpenShm({.secret = "secret", .peer_timeout_us = 200'000}));
  const auto listener = Take(impatient->Listen({.address = Path("socket")}));
  const UniqueFd silent(socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
  sockaddr_un address{.sun_family = AF_UNIX};
  std::memcpy(address.sun_path, Path("socket").data(), Path("socket").size());
  ASSERT_EQ(connect(silent.get(), reinterpret_cast<sockaddr*>(&address), sizeof(address)), 0);
  pollfd waiting{silent.get(), POLLIN, 0};
  ASSERT_EQ(poll(&waiting, 1, kTimeoutUs / 1'000), 1) << "the server's handshake timeout is 0.2 s";
  EXPECT_NE(waiting.revents & POLLHUP, 0);
}

/// A peer that authenticates and then sends arbitrary data over its socket.
class AuthenticatedShmPeer {
 public:
  AuthenticatedShmPeer(const std::string& address, Deadline deadline)
      : regions_(Take(shm::RegionRegistry::Create())),
        doorbells_(
            Take(shm::CreateShared("bells", sizeof(shm::DoorbellPage), shm::PeerAccess::kReadWrite, false))),
        socket_(Take(shm::ConnectSocket(address, deadline))) {
    const shm::Identity identity{.secret = "secret",
                                 .process = shm::RandomProcessId(),
                                 .regions = regions_.get(),
                                 .doorbells = &doorbells_,
                                 .peers = &peers_,
                                 .initiators = &initiators_};
    const pid_t server = Take(shm::CheckPeerUser(socket_.get()));
    const auto established = shm::ConnectHandshake(identity, socket_.get(), server, {}, deadline);
    EXPECT_TRUE(established.ok()) << established.status();
  }
  void Send(const std::string& packet) {
    EXPECT_EQ(send(socket_.get(), packet.data(), packet.size(), MSG_NOSIGNAL),
              static_cast<ssize_t>(packet.size()));
  }
  void Send(const shm::Message& message) { EXPECT_TRUE(shm::SendMessage(socket_.get(), message).ok()); }
  absl::StatusOr<shm::Packet> Answer(Deadline deadline) { return shm::AwaitMessage(socket_.get(), deadline); }

 private:
  std::unique_ptr<shm::RegionRegistry> regions_;
  shm::SharedMemory doorbells_;
  shm::PeerDirectory peers_;
  shm::Initiators initiators_;
  UniqueFd socket_;
};

TEST_F(ShmFabricTest, NonsenseAfterTheHandshakeEndsThatConnectionOnly) {
  const auto listener = Take(server_->Listen({.address = "@"}));
  const auto region = Take(server_->Allocate(kShmRegionBytes, {}));
  const auto honest = Take(client_->Connect(listener->address(), *completions_, {}, Soon()));
  ASSERT_TRUE(listener && region && honest);
  AuthenticatedShmPeer text(listener->address(), Soon());
  text.Send("GET / HTTP/1.1\r\n\r\n");
  EXPECT_TRUE(absl::IsUnavailable(text.Answer(Soon()).status()));
  AuthenticatedShmPeer again(listener->address(), Soon());
  again.Send({.type = shm::MessageType::kHello});
  EXPECT_TRUE(absl::IsUnavailable(again.Answer(Soon()).status()));
  // A key that was never assigned gets an answer and is no offence.
  AuthenticatedShmPeer guesses(listener->address(), Soon());
  guesses.Send({.type = shm::MessageType::kRegionRequest, .rkey = 0xdead});
  const auto answer = guesses.Answer(Soon());
  ASSERT_TRUE(answer.ok()) << answer.status();
  EXPECT_NE(answer->message.code, 0u);
  EXPECT_FALSE(answer->descriptors[0].valid());
  // A peer that never reads its answers, and keeps asking, must not block the service thread.
  AuthenticatedShmPeer deaf(listener->address(), Soon());
  for (int i = 0; i < 8; ++i) {
    deaf.Send({.type = shm::MessageType::kRegionRequest, .rkey = region->rkey().value});
  }
  EXPECT_EQ(Run(*honest, WorkRequest::Read(1, local_->Slice(0, 8), {region->rkey(), 0})),
            CompletionStatus::kOk);
}

/// One thread can drive both ends: neither Connect nor SEND waits for the peer's thread.
class ShmMessagesTest : public ShmFabricTest {
 protected:
  void SetUp() override {
    ShmFabricTest::SetUp();
    listener_ = Take(server_->Listen({.address = "@", .passive = false}));
    server_completions_ = Take(server_->CreateCompletionQueue(1024));
    server_local_ = Take(server_->Allocate(kShmRegionBytes, {.access = Access::kNone}));
    client_pair_ = Take(client_->Connect(listener_->address(), *completions_, {}, Soon()));
    server_pair_ = Take(listener_->Accept(*server_completions_, {}, Soon()));
    ASSERT_TRUE(client_pair_ && server_pair_ && server_local_);
  }
  void PostReceive(size_t bytes) {
    const ReceiveRequest receive{.id = 1, .into = server_local_->Slice(0, bytes)};
    ASSERT_TRUE(server_pair_->PostReceive({&receive, 1}).ok());
  }

  std::unique_ptr<Listener> listener_;
  std::unique_ptr<CompletionQueue> server_completions_;
  std::unique_ptr<MemoryRegion> server_local_;
  std::unique_ptr<QueuePair> client_pair_;
  std::unique_ptr<QueuePair> server_pair_;
};

TEST_F(ShmMessagesTest, SendsCompleteThoughTheReceiversThreadIsBusy) {
  PostReceive(64);
  EXPECT_EQ(Run(*client_pair_, WorkRequest::Send(1, local_->Slice(0, 64))), CompletionStatus::kOk);
  PostReceive(64);
  EXPECT_EQ(Run(*client_pair_, WorkRequest::Send(2, local_->Slice(0, 65))),
            CompletionStatus::kRemoteInvalidRequest);
  Completion received[2];
  EXPECT_EQ(server_completions_->Wait({&received[0], 1}, Soon()), 1u);
  EXPECT_TRUE(received[0].ok()) << "what was sent before the error arrives";
  EXPECT_EQ(server_completions_->Wait({&received[1], 1}, Soon()), 1u);
  EXPECT_EQ(received[1].status, CompletionStatus::kRemoteInvalidRequest);
}

TEST_F(ShmMessagesTest, AScribbledChannelFailsTheConnectionOnly) {
  const std::vector<Mapped> channels = MappingsOf("nam-channel");
  ASSERT_EQ(channels.size(), 2u);
  const WorkRequest send = WorkRequest::Send(1, local_->Slice(0, 64));
  ASSERT_TRUE(client_pair_->Post({&send, 1}).ok());
  std::memset(channels[0].data, 0x5a, channels[0].bytes);
  PostReceive(64);
  Completion completion;
  ASSERT_EQ(server_completions_->Wait({&completion, 1}, Soon()), 1u);
  EXPECT_FALSE(completion.ok());
  ASSERT_EQ(completions_->Wait({&completion, 1}, Soon()), 1u);
  EXPECT_EQ(completion.id, 1u);
  client_pair_ = Take(client_->Connect(listener_->address(), *completions_, {}, Soon()));
  EXPECT_NE(Take(listener_->Accept(*server_completions_, {}, Soon())), nullptr);
}

}  // namespace
}  // namespace nam::fabric
