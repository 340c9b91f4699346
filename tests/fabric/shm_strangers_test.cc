#include <gtest/gtest.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <cstring>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/unique_fd.h"
#include "fabric/shm/shm_fabric.h"
#include "fabric/shm/socket.h"
#include "fabric/shm/wire.h"
#include "fabric/strangers.h"

/// Unauthenticated peers cost others nothing, however many come.
namespace nam::fabric {
namespace {

constexpr char kShmSecret[] = "secret";
constexpr int kStrangersTimeoutMs = 60'000;  // a hang guard

Deadline BeforeTimeout() {
  return RealClock().After(int64_t{kStrangersTimeoutMs} * 1'000);
}

/// For processes without the fabric's threads: system calls only.
int ConnectTo(const std::string& name) {
  const int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
  sockaddr_un address{.sun_family = AF_UNIX};
  std::memcpy(address.sun_path + 1, name.data() + 1, name.size() - 1);
  const auto bytes = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + name.size());
  return connect(fd, reinterpret_cast<const sockaddr*>(&address), bytes) == 0 ? fd : -1;
}

/// Another process, killed at the end, which runs `body` once it has the address.
class Child {
 public:
  explicit Child(const std::function<void(const std::string& address)>& body) {
    if (pipe(down_.data()) != 0 || pipe(up_.data()) != 0) std::abort();
    pid_ = fork();
    if (pid_ != 0) return;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    std::array<char, 108> address{};
    if (read(down_[0], address.data(), address.size()) <= 0) _exit(1);
    body(address.data());
    (void)!write(up_[1], "x", 1);
    pause();
  }
  ~Child() {
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
    for (const int fd : {down_[0], down_[1], up_[0], up_[1]}) close(fd);
  }
  void Tell(const std::string& address) const { (void)!write(down_[1], address.data(), address.size()); }
  /// The body has returned.
  bool Done() const {
    pollfd said{up_[0], POLLIN, 0};
    char byte;
    return poll(&said, 1, kStrangersTimeoutMs) == 1 && read(up_[0], &byte, 1) == 1;
  }

 private:
  std::array<int, 2> down_{}, up_{};
  pid_t pid_ = -1;
};

struct StrangersServer {
  // Far behind every wait's end: nothing is closed because of its age.
  std::unique_ptr<Fabric> fabric = OpenShm({.secret = kShmSecret, .peer_timeout_us = 600'000'000}).value();
  std::unique_ptr<Listener> listener = fabric->Listen({.address = "@"}).value();
};

TEST(ShmStrangersTest, ACrowdOfAnotherProcessPushesNobodyOut) {
  const size_t places = StrangersMax();
  const Child crowd([places](const std::string& address) {
    std::vector<pollfd> ends;
    for (size_t i = 0; i < 2 * places; ++i) ends.push_back({ConnectTo(address), POLLIN, 0});
    for (size_t gone = 0; gone < places + 1;) {
      if (poll(ends.data(), ends.size(), kStrangersTimeoutMs) <= 0) _exit(1);
      for (pollfd& end : ends) {
        if (end.fd < 0 || end.revents == 0) continue;
        end.fd = -1;
        ++gone;
      }
    }
  });
  const StrangersServer server;
  const UniqueFd honest = shm::ConnectSocket(server.listener->address(), BeforeTimeout()).value();
  const shm::Nonce nonce = shm::RandomNonce();
  ASSERT_TRUE(shm::SendMessage(honest.get(), {.type = shm::MessageType::kHello, .proof = nonce}).ok());
  const auto challenge = shm::AwaitMessage(honest.get(), BeforeTimeout());
  ASSERT_TRUE(challenge.ok()) << challenge.status();
  crowd.Tell(server.listener->address());
  ASSERT_TRUE(crowd.Done());
  const shm::Mac mac = shm::ComputeMac(kShmSecret, shm::kClientRole, nonce, challenge->message.proof);
  ASSERT_TRUE(shm::SendMessage(honest.get(), {.type = shm::MessageType::kProof, .proof = mac}).ok());
  const auto welcome = shm::AwaitMessage(honest.get(), BeforeTimeout());
  ASSERT_TRUE(welcome.ok()) << welcome.status();
  EXPECT_EQ(welcome->message.type, shm::MessageType::kWelcome);
}

constexpr uid_t kSomebodyElse = 65'534;

/// True if a process of this test can become another user: root can, unless its user namespace has no other
/// user.
bool OthersExist() {
  const pid_t pid = fork();
  if (pid == 0) _exit(setuid(kSomebodyElse) == 0 ? 0 : 1);
  int status = 0;
  return waitpid(pid, &status, 0) == pid && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

TEST(ShmStrangersTest, OtherUsersAreNotLetIn) {
  if (geteuid() == kSomebodyElse || !OthersExist()) GTEST_SKIP() << "only root can become another user";
  const Child other([](const std::string& address) {
    if (setuid(kSomebodyElse) != 0) _exit(1);
    pollfd end{ConnectTo(address), POLLIN, 0};
    // It sends nothing, yet is told why and closed.
    if (poll(&end, 1, kStrangersTimeoutMs) != 1) _exit(1);
  });
  const StrangersServer server;
  other.Tell(server.listener->address());
  EXPECT_TRUE(other.Done());
}

TEST(ShmStrangersTest, OutOfDescriptorsStrangersGiveTheirsBack) {
  const StrangersServer server;
  constexpr int kLeft = 20;
  std::vector<UniqueFd> crowd;
  for (int i = 0; i < 3 * kLeft; ++i) crowd.emplace_back(socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
  const UniqueFd honest(socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
  const std::string name = server.listener->address();
  sockaddr_un address{.sun_family = AF_UNIX};
  std::memcpy(address.sun_path + 1, name.data() + 1, name.size() - 1);
  const auto bytes = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + name.size());
  const auto enter = [&](const UniqueFd& fd) {
    return connect(fd.get(), reinterpret_cast<const sockaddr*>(&address), bytes) == 0;
  };
  UniqueFd next(dup(honest.get()));
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &before), 0);
  rlimit few = before;
  few.rlim_cur = static_cast<rlim_t>(next.get() + kLeft);
  next.reset();
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &few), 0);
  for (const UniqueFd& fd : crowd) EXPECT_TRUE(enter(fd));
  EXPECT_TRUE(enter(honest));
  const shm::Nonce nonce = shm::RandomNonce();
  EXPECT_TRUE(shm::SendMessage(honest.get(), {.type = shm::MessageType::kHello, .proof = nonce}).ok());
  const auto challenge = shm::AwaitMessage(honest.get(), BeforeTimeout());
  EXPECT_TRUE(challenge.ok()) << challenge.status();
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &before), 0);
}

/// A server that does not know the secret but claims to.
TEST(ShmStrangersTest, AServerWithoutTheSecretIsNotBelieved) {
  const auto client = OpenShm({.secret = kShmSecret}).value();
  const auto queue = client->CreateCompletionQueue(1024).value();
  const auto reflect = [](const shm::Message& proof, const shm::Nonce&) { return proof.proof; };
  const auto guess = [](const shm::Message&, const shm::Nonce& nonce) {
    return shm::ComputeMac("guess", shm::kServerRole, nonce, shm::Nonce{});
  };
  for (const std::function<shm::Mac(const shm::Message&, const shm::Nonce&)>& lie :
       {std::function<shm::Mac(const shm::Message&, const shm::Nonce&)>(reflect),
        std::function<shm::Mac(const shm::Message&, const shm::Nonce&)>(guess)}) {
    const shm::ListeningSocket rogue = shm::ListeningSocket::Bind("@").value();
    const auto server = client->StartThread("rogue", [&] {
      pollfd someone{rogue.get(), POLLIN, 0};
      if (poll(&someone, 1, kStrangersTimeoutMs) != 1) return;
      const UniqueFd fd(accept(rogue.get(), nullptr, nullptr));
      const auto hello = shm::AwaitMessage(fd.get(), BeforeTimeout());
      if (!hello.ok()) return;
      shm::SendMessage(fd.get(), {.type = shm::MessageType::kChallenge}).IgnoreError();
      const auto proof = shm::AwaitMessage(fd.get(), BeforeTimeout());
      if (!proof.ok()) return;
      const std::array<int, 3> descriptors = {fd.get(), fd.get(), fd.get()};
      shm::SendMessage(
          fd.get(), {.type = shm::MessageType::kWelcome, .proof = lie(proof->message, hello->message.proof)},
          descriptors)
          .IgnoreError();
      pollfd end{fd.get(), POLLIN, 0};
      poll(&end, 1, kStrangersTimeoutMs);
    });
    const absl::Status refused = client->Connect(rogue.address(), *queue, {}, BeforeTimeout()).status();
    EXPECT_EQ(refused.code(), absl::StatusCode::kUnauthenticated) << refused;
  }
}

}  // namespace
}  // namespace nam::fabric
