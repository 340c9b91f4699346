#include <fcntl.h>
#include <gtest/gtest.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>
#include <fstream>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "base/unique_fd.h"
#include "fabric/fabric.h"
#include "fabric/immediate.h"
#include "fabric/shm/shm_fabric.h"
#include "tests/fabric/take.h"

/// Where peers touch the memory themselves, one may stall between its check of the key and the end of its
/// copy. Revoke must detect that, and so must a fence.
namespace nam::fabric {
namespace {

constexpr size_t kPage = 4096, kRevokedBytes = 16 * kPage;
constexpr int kRevokeTimeoutMs = 60'000, kRevokeRounds = 100;

struct Pipe {
  Pipe() {
    std::array<int, 2> ends;
    if (pipe2(ends.data(), O_CLOEXEC) != 0) std::abort();
    out.reset(ends[0]);
    in.reset(ends[1]);
  }
  void Put() const { (void)!write(in.get(), "x", 1); }
  bool Take() const {
    char byte;
    pollfd waiting{out.get(), POLLIN, 0};
    return poll(&waiting, 1, kRevokeTimeoutMs) == 1 && read(out.get(), &byte, 1) == 1;
  }
  UniqueFd out, in;
};

/// A page that stops every thread that touches it until released. One at a time.
class Trap {
 public:
  Trap() = default;
  /// Arms the trap.
  void Set(std::byte* page) {
    current_ = this;
    page_ = page;
    struct sigaction action {};
    action.sa_sigaction = &Stand;
    action.sa_flags = SA_SIGINFO;
    sigaction(SIGSEGV, &action, &former_);
    mprotect(page_, kPage, PROT_NONE);
  }
  ~Trap() {
    if (current_ == this) sigaction(SIGSEGV, &former_, nullptr);
  }
  bool AwaitCaught() const { return caught_.Take(); }
  void LetGo() const { let_go_.Put(); }

 private:
  static void Stand(int, siginfo_t* info, void*) {
    const auto* at = static_cast<std::byte*>(info->si_addr);
    if (at < current_->page_ || at >= current_->page_ + kPage) _exit(3);
    current_->caught_.Put();
    char byte;
    (void)!read(current_->let_go_.out.get(), &byte, 1);
    mprotect(current_->page_, kPage, PROT_READ | PROT_WRITE);
  }

  static inline Trap* current_ = nullptr;
  std::byte* page_ = nullptr;
  struct sigaction former_ {};
  Pipe caught_, let_go_;
};

constexpr MemberId kMember(1), kOtherMember(2);

/// Every member lives, or none. All have the same key.
class EveryoneOrNobody final : public MemberKeys {
 public:
  absl::StatusOr<std::vector<std::optional<MemberKey>>> KeysOf(std::span<const MemberId> members) override {
    return std::vector<std::optional<MemberKey>>(members.size(),
                                                 live ? std::optional(MemberKey{}) : std::nullopt);
  }
  std::atomic<bool> live{true};
};

struct GatedServer {
  std::unique_ptr<MemoryRegion> NewRegion(size_t bytes) const {
    return Take(fabric->Allocate(bytes, {.huge_pages = false}));
  }
  EveryoneOrNobody everybody;
  std::unique_ptr<Fabric> fabric = Take(OpenShm({.secret = "secret"}));
  std::unique_ptr<Listener> listener = Take(fabric->Listen({.address = "@"}));
  /// For members only.
  std::unique_ptr<Listener> gate = Take(fabric->Listen({.address = "@", .member_keys = &everybody}));
};

struct Client {
  explicit Client(const std::string& address, MemberId member = MemberId())
      : pair(Connect(address, member)) {}
  std::unique_ptr<QueuePair> Connect(const std::string& address, MemberId member = MemberId()) {
    return Take(fabric->Connect(address, *completions, {.member = {member, {}}}, Deadline::Never()));
  }
  CompletionStatus Run(QueuePair& on, const WorkRequest& request) {
    Completion completion{.status = CompletionStatus::kFlushed};
    EXPECT_TRUE(on.Post({&request, 1}).ok());
    EXPECT_EQ(completions->Wait({&completion, 1}, fabric->clock().After(kRevokeTimeoutMs * 1000LL)), 1u);
    return completion.status;
  }
  CompletionStatus Write(RemoteKey rkey, uint32_t bytes) {
    return Run(*pair, WorkRequest::Write(1, local->Slice(0, bytes), {rkey, 0}));
  }

  std::unique_ptr<Fabric> fabric = Take(OpenShm({.secret = "secret"}));
  std::unique_ptr<MemoryRegion> local =
      Take(fabric->Allocate(kRevokedBytes, {.access = Access::kNone, .huge_pages = false}));
  std::unique_ptr<CompletionQueue> completions = Take(fabric->CreateCompletionQueue(1024));
  std::unique_ptr<QueuePair> pair;
};

TEST(ShmRevokeTest, SaysNoWhileAPeerStandsStillInTheMiddleOfAWrite) {
  GatedServer server;
  Client client(server.listener->address());
  const auto part = server.NewRegion(8 * kPage);
  const auto other = server.NewRegion(8 * kPage);
  std::fill_n(client.local->data(), kRevokedBytes, std::byte{7});
  Trap trap;
  trap.Set(client.local->data() + 2 * kPage);
  CompletionStatus status = CompletionStatus::kFlushed;
  std::thread writer([&] { status = client.Write(part->rkey(), 8 * kPage); });
  ASSERT_TRUE(trap.AwaitCaught());
  EXPECT_FALSE(part->Revoke());
  EXPECT_FALSE(part->Revoke());
  EXPECT_TRUE(other->Revoke()) << "no peer writes under this one";
  {
    Client late(server.listener->address());
    EXPECT_EQ(late.Write(part->rkey(), 8), CompletionStatus::kRemoteAccessError) << "the key is gone at once";
  }
  EXPECT_EQ(part->data()[2 * kPage], std::byte{0});
  trap.LetGo();
  writer.join();
  EXPECT_EQ(status, CompletionStatus::kOk);
  EXPECT_EQ(part->data()[2 * kPage], std::byte{7}) << "which is why the answer was no";
  EXPECT_TRUE(part->Revoke());
  EXPECT_EQ(client.Write(part->rkey(), 8), CompletionStatus::kRemoteAccessError);
}

TEST(ShmRevokeTest, AFenceIsNotDoneWhileAPeerStandsStillInTheMiddleOfAWrite) {
  GatedServer server;
  Client client(server.gate->address(), kMember), another(server.gate->address(), kOtherMember);
  const auto part = server.NewRegion(8 * kPage);
  std::fill_n(client.local->data(), kRevokedBytes, std::byte{7});
  Trap trap;
  trap.Set(client.local->data() + 2 * kPage);
  CompletionStatus status = CompletionStatus::kFlushed;
  std::thread writer([&] { status = client.Write(part->rkey(), 8 * kPage); });
  ASSERT_TRUE(trap.AwaitCaught());
  EXPECT_FALSE(server.gate->Fence(kMember, false));
  EXPECT_FALSE(server.gate->Fence(kMember, true)) << "no process ends itself";
  EXPECT_EQ(server.gate->Members(), (std::vector<MemberId>{kMember, kOtherMember})) << "it is not forgotten";
  EXPECT_EQ(another.Write(part->rkey(), 8), CompletionStatus::kOk);
  EXPECT_TRUE(server.gate->Fence(kOtherMember, false)) << "nothing of this one is under way";
  EXPECT_EQ(part->data()[2 * kPage], std::byte{0});
  trap.LetGo();
  writer.join();
  EXPECT_EQ(status, CompletionStatus::kOk);
  EXPECT_EQ(part->data()[2 * kPage], std::byte{7}) << "which is why the answer was no";
  EXPECT_TRUE(server.gate->Fence(kMember, false));
  EXPECT_TRUE(server.gate->Members().empty());
  std::fill_n(client.local->data(), kRevokedBytes, std::byte{8});
  EXPECT_EQ(client.Write(part->rkey(), 8), CompletionStatus::kPeerLost);
  EXPECT_EQ(part->data()[0], std::byte{0}) << "the other's";
}

TEST(ShmRevokeTest, AFencedConnectionVouchesForNoOther) {
  GatedServer server;
  Client client(server.gate->address(), kMember);
  const auto part = server.NewRegion(8 * kPage);
  Trap trap;
  trap.Set(client.local->data() + 2 * kPage);
  std::thread writer([&] { client.Write(part->rkey(), 8 * kPage); });
  ASSERT_TRUE(trap.AwaitCaught());
  server.everybody.live = false;
  EXPECT_FALSE(server.gate->Fence(kMember, false));
  const auto queue = Take(client.fabric->CreateCompletionQueue(1024));
  EXPECT_TRUE(absl::IsPermissionDenied(
      client.fabric->Connect(server.gate->address(), *queue, {.member = {kMember, {}}}, Deadline::Never())
          .status()));
  trap.LetGo();
  writer.join();
  EXPECT_TRUE(server.gate->Fence(kMember, false));
}

TEST(ShmRevokeTest, AConnectionThatHasEndedInTheMiddleOfAWriteIsStillItsMembers) {
  GatedServer server;
  Client client(server.gate->address(), kMember);
  const auto part = server.NewRegion(8 * kPage);
  Trap trap;
  trap.Set(client.local->data() + 2 * kPage);
  std::thread writer([&] { client.Write(part->rkey(), 8 * kPage); });
  ASSERT_TRUE(trap.AwaitCaught());
  EXPECT_FALSE(server.gate->Fence(kMember, false));
  // By now its socket has ended as well.
  while (client.pair->state() == QueuePairState::kReady) {
  }
  EXPECT_EQ(server.gate->Members(), std::vector<MemberId>{kMember});
  EXPECT_FALSE(server.gate->Fence(kMember, false));
  trap.LetGo();
  writer.join();
  EXPECT_TRUE(server.gate->Members().empty()) << "no fence is needed";
}

/// A server in a separate process, so that this one maps the connection's channel only once. It has a region,
/// and revokes its key on request: then it reports whether the revocation succeeded.
class ServerProcess {
 public:
  struct Offer {
    char address[108] = {};
    RemoteKey rkey;
  };
  ServerProcess() {
    pid_ = fork();  // no other thread runs yet
    if (pid_ != 0) return;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    GatedServer server;
    const auto part = server.NewRegion(kPage);
    Offer offer;
    server.listener->address().copy(offer.address, sizeof(offer.address) - 1);
    offer.rkey = part->rkey();
    (void)!write(offer_.in.get(), &offer, sizeof(offer));
    if (!revoke_.Take() || !part->Revoke()) _exit(1);
    std::memset(part->data(), 0, kPage);
    revoked_.Put();
    if (!look_.Take()) _exit(1);
    _exit(part->data()[0] == std::byte{0} ? 0 : 2);
  }
  Offer Await() const {
    Offer offer;
    EXPECT_EQ(read(offer_.out.get(), &offer, sizeof(offer)), static_cast<ssize_t>(sizeof(offer)));
    return offer;
  }
  bool Revoke() const {
    revoke_.Put();
    return revoked_.Take();
  }
  /// True if its memory is unchanged.
  bool Untouched() const {
    look_.Put();
    int status = 0;
    return waitpid(pid_, &status, 0) == pid_ && WIFEXITED(status) && WEXITSTATUS(status) == 0;
  }

 private:
  Pipe offer_, revoke_, revoked_, look_;
  pid_t pid_ = -1;
};

std::byte* MappedChannel() {
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);) {
    if (line.find("/memfd:nam-channel") != std::string::npos)
      return reinterpret_cast<std::byte*>(std::stoul(line, nullptr, 16));
  }
  return nullptr;
}

/// A peer stopped between its check of the key and the word that shows the key in use checks again before it
/// changes memory.
void RevokeBetweenTheLooks(const std::function<CompletionStatus(Client&, RemoteAddress)>& write) {
  const ServerProcess server;
  const ServerProcess::Offer offer = server.Await();
  Client client(offer.address);
  const RemoteAddress at{offer.rkey, 0};
  std::fill_n(client.local->data(), kRevokedBytes, std::byte{7});
  ASSERT_EQ(write(client, at), CompletionStatus::kOk) << "the region is mapped";
  std::byte* const channel = MappedChannel();
  ASSERT_NE(channel, nullptr);
  Trap trap;
  trap.Set(channel);
  CompletionStatus status = CompletionStatus::kOk;
  std::thread writer([&] { status = write(client, at); });
  ASSERT_TRUE(trap.AwaitCaught());
  EXPECT_TRUE(server.Revoke());
  trap.LetGo();
  writer.join();
  EXPECT_EQ(status, CompletionStatus::kRemoteAccessError);
  EXPECT_TRUE(server.Untouched());
}

TEST(ShmRevokeTest, APostedWriteLooksAtTheKeyASecondTime) {
  RevokeBetweenTheLooks([](Client& client, RemoteAddress at) {
    return client.Run(*client.pair, WorkRequest::Write(1, client.local->Slice(0, 8), at));
  });
}

TEST(ShmRevokeTest, AnImmediateWriteLooksAtTheKeyASecondTime) {
  RevokeBetweenTheLooks([](Client& client, RemoteAddress at) {
    return dynamic_cast<ImmediateOperations&>(*client.pair).WriteNow(client.local->data(), 8, at);
  });
}

TEST(ShmRevokeTest, AnImmediateAtomicLooksAtTheKeyASecondTime) {
  RevokeBetweenTheLooks([](Client& client, RemoteAddress at) {
    uint64_t old = 0;
    return dynamic_cast<ImmediateOperations&>(*client.pair).FetchAddNow(at, 1, &old);
  });
}

/// Each request of a batch checks its own key, although earlier ones were executed before the key was gone.
TEST(ShmRevokeTest, KeysAreLookedAtInTheMiddleOfABatch) {
  GatedServer server;
  Client client(server.listener->address());
  const auto stays = server.NewRegion(kPage);
  const auto goes = server.NewRegion(kPage);
  const auto read = [&](uint64_t id, size_t into, const MemoryRegion& from) {
    return WorkRequest::Read(id, client.local->Slice(into, 8), {from.rkey(), 0});
  };
  ASSERT_EQ(client.Run(*client.pair, read(1, 0, *stays)), CompletionStatus::kOk);
  ASSERT_EQ(client.Run(*client.pair, read(1, 0, *goes)), CompletionStatus::kOk);
  Trap trap;
  trap.Set(client.local->data() + kPage);
  std::thread reader([&] {
    const std::array batch = {read(2, kPage, *stays), read(3, 0, *goes)};
    EXPECT_TRUE(client.pair->Post(batch).ok());
  });
  ASSERT_TRUE(trap.AwaitCaught());
  EXPECT_TRUE(goes->Revoke());
  trap.LetGo();
  reader.join();
  std::array<Completion, 2> completions;
  ASSERT_EQ(client.completions->Poll(completions), 2u);
  EXPECT_EQ(completions[0].status, CompletionStatus::kOk);
  EXPECT_EQ(completions[1].status, CompletionStatus::kRemoteAccessError);
}

TEST(ShmRevokeTest, MemoryStaysAsLongAsAPeerWritesToIt) {
  GatedServer server;
  Client client(server.listener->address());
  auto part = server.NewRegion(8 * kPage);
  Trap trap;
  trap.Set(client.local->data() + 2 * kPage);
  CompletionStatus status = CompletionStatus::kFlushed;
  std::thread writer([&, rkey = part->rkey()] { status = client.Write(rkey, 8 * kPage); });
  ASSERT_TRUE(trap.AwaitCaught());
  part.reset();
  trap.LetGo();
  writer.join();
  EXPECT_EQ(status, CompletionStatus::kOk);
}

TEST(ShmRevokeTest, SaysNoWhenOnlyTheConnectionHasEnded) {
  GatedServer server;
  Client client(server.listener->address());
  const auto part = server.NewRegion(8 * kPage);
  Trap trap;
  trap.Set(client.local->data() + 2 * kPage);
  std::thread writer([&] { client.Write(part->rkey(), 8 * kPage); });
  ASSERT_TRUE(trap.AwaitCaught());
  server.listener.reset();  // which closes the connections that it serves
  EXPECT_FALSE(part->Revoke());
  trap.LetGo();
  writer.join();
  EXPECT_TRUE(part->Revoke());
}

/// A process of kMember that stalls inside a WRITE; `end` ends it.
void EndAWritersProcess(const std::function<void(pid_t, GatedServer&)>& end) {
  Trap trap;  // its pipes are both processes'; the child sets it
  Pipe address_pipe;
  const pid_t child = fork();  // no other thread runs yet
  if (child == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    struct {
      char address[108];
      RemoteKey rkey;
    } to;
    if (read(address_pipe.out.get(), &to, sizeof(to)) != static_cast<ssize_t>(sizeof(to))) _exit(1);
    Client client(to.address, kMember);
    trap.Set(client.local->data() + 2 * kPage);
    client.Write(to.rkey, 8 * kPage);
    _exit(2);  // never let go
  }
  GatedServer server;
  const auto part = server.NewRegion(8 * kPage);
  struct {
    char address[108] = {};
    RemoteKey rkey;
  } to;
  server.gate->address().copy(to.address, sizeof(to.address) - 1);
  to.rkey = part->rkey();
  ASSERT_EQ(write(address_pipe.in.get(), &to, sizeof(to)), static_cast<ssize_t>(sizeof(to)));
  ASSERT_TRUE(trap.AwaitCaught());
  EXPECT_FALSE(part->Revoke());
  const UniqueFd life(static_cast<int>(syscall(SYS_pidfd_open, child, 0)));
  end(child, server);
  pollfd ended{life.get(), POLLIN, 0};
  ASSERT_EQ(poll(&ended, 1, kRevokeTimeoutMs), 1);
  EXPECT_TRUE(part->Revoke()) << "not even its parent has noticed yet";
  EXPECT_TRUE(server.gate->Fence(kMember, false));
  int status = 0;
  EXPECT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFSIGNALED(status));
}

TEST(ShmRevokeTest, SaysYesWhenThePeersProcessIsDead) {
  EndAWritersProcess([](pid_t child, GatedServer&) { kill(child, SIGKILL); });
}

TEST(ShmRevokeTest, AFenceEndsAPeerThatIsStopped) {
  EndAWritersProcess([](pid_t child, GatedServer& server) {
    kill(child, SIGSTOP);
    EXPECT_FALSE(server.gate->Fence(kMember, false));
    EXPECT_TRUE(server.gate->Fence(kOtherMember, true)) << "not another's";
    EXPECT_EQ(kill(child, 0), 0);
    EXPECT_TRUE(server.gate->Fence(kMember, true));
  });
}

/// Revokes a key during short writes, repeatedly; afterwards the memory belongs to the owner. Returns the
/// number of rounds in which the writer changed it anyway.
int BrokenRounds(int rounds) {
  GatedServer server;
  Client client(server.listener->address());
  int broken = 0;
  for (int round = 0; round < rounds; ++round) {
    const auto part = server.NewRegion(64);
    std::atomic<bool> under_way = false, revoked = false;
    std::thread writer([&, rkey = part->rkey()] {
      std::memset(client.local->data(), 7, 8);
      while (client.Write(rkey, 8) == CompletionStatus::kOk) under_way = true;
      while (!revoked) {
      }
    });
    while (!under_way) {
    }
    while (!part->Revoke()) {
    }
    std::atomic_ref<uint64_t> word(*reinterpret_cast<uint64_t*>(part->data()));
    word.store(1);
    revoked = true;
    writer.join();
    broken += word.load() != 1;
    client.pair = client.Connect(server.listener->address());
  }
  return broken;
}

TEST(ShmRevokeTest, NothingIsWrittenAfterTheYes) {
  EXPECT_EQ(BrokenRounds(kRevokeRounds), 0);
}

TEST(ShmRevokeTest, NorWhereTheKernelRefusesToRunBarriers) {
  const pid_t child = fork();
  if (child == 0) {
    std::array filter = {
        sock_filter(BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr))),
        sock_filter(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_membarrier, 0, 1)),
        sock_filter(BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM)),
        sock_filter(BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)),
    };
    const sock_fprog program{static_cast<unsigned short>(filter.size()), filter.data()};
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ||
        prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0)
      _exit(200);  // not possible here
    if (syscall(SYS_membarrier, 0, 0, 0) != -1) _exit(1);
    _exit(BrokenRounds(kRevokeRounds) == 0 ? 0 : 2);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFEXITED(status));
  if (WEXITSTATUS(status) == 200) GTEST_SKIP() << "no seccomp filters here";
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

/// As BrokenRounds, by a fence.
TEST(ShmRevokeTest, NothingIsWrittenAfterAFence) {
  GatedServer server;
  Client client(server.gate->address(), kMember);
  const auto part = server.NewRegion(64);
  std::atomic_ref<uint64_t> word(*reinterpret_cast<uint64_t*>(part->data()));
  for (int round = 0; round < kRevokeRounds; ++round) {
    std::atomic<bool> under_way = false, fenced = false;
    std::thread writer([&] {
      std::memset(client.local->data(), 7, 8);
      while (client.Write(part->rkey(), 8) == CompletionStatus::kOk) under_way = true;
      while (!fenced) {
      }
    });
    while (!under_way) {
    }
    while (!server.gate->Fence(kMember, false)) {
    }
    word.store(1);
    fenced = true;
    writer.join();
    ASSERT_EQ(word.load(), 1u) << round;
    client.pair = client.Connect(server.gate->address(), kMember);
  }
}

}  // namespace
}  // namespace nam::fabric
