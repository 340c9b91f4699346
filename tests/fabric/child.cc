#include "tests/fabric/child.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>

#include "fabric/fabric.h"
#include "tests/fabric/datagram_end.h"
#include "tests/fabric/provider.h"

namespace nam::fabric::conformance {
namespace {

constexpr int kTimeoutMs = 10'000;
constexpr char kFlag[] = "--child=";

/// Aborts the child; the parent sees the missing line.
template <typename T>
T Must(absl::StatusOr<T> result) {
  if (!result.ok()) {
    std::fprintf(stderr, "child: %s\n", result.status().ToString().c_str());
    std::exit(1);
  }
  return *std::move(result);
}

void AwaitEndOfInput() {
  char byte;
  while (read(STDIN_FILENO, &byte, 1) > 0) {
  }
}

/// serve SECRET: a passive memory server with one region. Prints its address and the rkey.
int Serve(const std::string& secret) {
  auto fabric = Must(CurrentProvider().Open(secret));
  auto region = Must(fabric->Allocate(64 << 10, {.huge_pages = false}));
  auto listener = Must(fabric->Listen({.address = CurrentProvider().ListenAddress(), .passive = true}));
  std::printf("%s %u\n", listener->address().c_str(), region->rkey().value);
  std::fflush(stdout);
  AwaitEndOfInput();
  return 0;
}

/// accept SECRET: listens, prints its address, accepts one queue pair, which it leaves alone; says so.
int AcceptOne(const std::string& secret) {
  auto fabric = Must(CurrentProvider().Open(secret));
  auto listener = Must(fabric->Listen({.address = CurrentProvider().ListenAddress(), .passive = false}));
  auto completions = Must(fabric->CreateCompletionQueue(64));
  std::printf("%s\n", listener->address().c_str());
  std::fflush(stdout);
  auto queue_pair = Must(listener->Accept(*completions, {.send_depth = 16, .receive_depth = 16},
                                          fabric->clock().After(kTimeoutMs * 1000LL)));
  std::printf("accepted\n");
  std::fflush(stdout);
  AwaitEndOfInput();
  return 0;
}

/// add SECRET ADDRESS RKEY COUNT: adds 1 COUNT times to word 0 by FETCH_ADD, to word 1 by CAS.
int Add(const std::string& secret, const std::string& address, uint32_t rkey, int count) {
  auto fabric = Must(CurrentProvider().Open(secret));
  auto local = Must(fabric->Allocate(4096, {.access = Access::kNone, .huge_pages = false}));
  auto completions = Must(fabric->CreateCompletionQueue(64));
  const Deadline deadline = fabric->clock().After(kTimeoutMs * 1000LL);
  auto queue_pair =
      Must(fabric->Connect(address, *completions, {.send_depth = 16, .receive_depth = 0}, deadline));
  uint64_t expected = 0;
  Completion completion;
  const auto run = [&](const WorkRequest& request) {
    if (!queue_pair->Post({&request, 1}).ok() || completions->Wait({&completion, 1}, deadline) != 1 ||
        !completion.ok()) {
      std::exit(1);
    }
    uint64_t old;
    std::memcpy(&old, local->data(), sizeof(old));
    return old;
  };
  for (int i = 0; i < count; ++i) {
    run(WorkRequest::FetchAdd(1, local->Slice(0, 8), {{rkey}, 0}, 1));
    while (true) {
      const uint64_t old =
          run(WorkRequest::CompareAndSwap(2, local->Slice(0, 8), {{rkey}, 8}, expected, expected + 1));
      const bool swapped = old == expected;
      expected = swapped ? expected + 1 : old;
      if (swapped) break;
    }
  }
  return 0;
}

/// member SECRET GROUP: joins, prints its own address, says when the first datagram came, goes on receiving.
int JoinGroup(const std::string& secret, const std::string& group) {
  auto fabric = Must(CurrentProvider().Open(secret));
  End member(*fabric);
  if (!member.valid() || !member.pair().Join(group).ok()) return 1;
  member.PostReceives();
  std::printf("%s\n", member.pair().address().c_str());
  std::fflush(stdout);
  if (!member.Next(fabric->clock().After(kTimeoutMs * 1000LL)).has_value()) return 1;
  std::printf("received\n");
  std::fflush(stdout);
  while (member.Next(fabric->clock().After(kTimeoutMs * 1000LL)).has_value()) {
  }
  return 0;
}

/// multicast SECRET NUMBER: opens the group, prints its address, sends numbered datagrams for ever.
int Multicast(const std::string& secret, uint32_t number) {
  auto fabric = Must(CurrentProvider().Open(secret));
  End sender(*fabric, {.send_depth = 64, .receive_depth = 0});
  if (!sender.valid()) return 1;
  const DatagramTarget group = Must(sender.pair().OpenGroup(number));
  std::printf("%s\n", Must(sender.pair().GroupAddress(group)).c_str());
  std::fflush(stdout);
  for (uint64_t i = 0;; ++i) {
    const uint32_t bytes = NumberedBytes(i, sender.pair().bytes_max());
    if (!sender.Send(group, bytes, [&](std::byte* at) { FillNumbered(at, i, bytes); })) return 1;
    if (i % 32 == 0) fabric->clock().SleepUntil(fabric->clock().After(500));
  }
}

}  // namespace

Child::Child(const std::vector<std::string>& role) {
  std::array<int, 2> in, out;
  if (pipe2(in.data(), O_CLOEXEC) != 0 || pipe2(out.data(), O_CLOEXEC) != 0) std::abort();
  std::vector<std::string> arguments = {"/proc/self/exe", kFlag + role[0]};
  arguments.insert(arguments.end(), role.begin() + 1, role.end());
  std::vector<char*> argv;
  for (std::string& argument : arguments) argv.push_back(argument.data());
  argv.push_back(nullptr);
  pid_ = fork();
  if (pid_ == 0) {
    // Only what is safe between fork and exec in a process with threads.
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    dup2(in[0], STDIN_FILENO);
    dup2(out[1], STDOUT_FILENO);
    execv("/proc/self/exe", argv.data());
    _exit(127);
  }
  close(in[0]);
  close(out[1]);
  input_.reset(in[1]);
  output_.reset(out[0]);
}

Child::~Child() {
  Kill();
}

std::optional<std::string> Child::ReadLine() {
  std::string line;
  while (true) {
    pollfd waiting{output_.get(), POLLIN, 0};
    char byte;
    if (poll(&waiting, 1, kTimeoutMs) != 1 || read(output_.get(), &byte, 1) != 1) return std::nullopt;
    if (byte == '\n') return line;
    line += byte;
  }
}

void Child::Kill() {
  if (pid_ <= 0) return;
  kill(pid_, SIGKILL);
  waitpid(pid_, nullptr, 0);
  pid_ = -1;
}

int Child::Finish() {
  if (pid_ <= 0) return -1;
  input_.reset();
  const UniqueFd process(static_cast<int>(syscall(SYS_pidfd_open, pid_, 0)));
  pollfd waiting{process.get(), POLLIN, 0};
  int status = 0;
  if (poll(&waiting, 1, kTimeoutMs) != 1 || waitpid(pid_, &status, 0) != pid_) {
    Kill();
    return -1;
  }
  pid_ = -1;
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

std::optional<int> RunAsChild(int argc, char** argv) {
  if (argc < 3 || std::string(argv[1]).rfind(kFlag, 0) != 0) return std::nullopt;
  const std::string role = std::string(argv[1]).substr(sizeof(kFlag) - 1);
  if (role == "serve") return Serve(argv[2]);
  if (role == "accept") return AcceptOne(argv[2]);
  if (role == "member" && argc == 4) return JoinGroup(argv[2], argv[3]);
  if (role == "multicast" && argc == 4) {
    return Multicast(argv[2], static_cast<uint32_t>(std::strtoul(argv[3], nullptr, 10)));
  }
  if (role == "add" && argc == 6) {
    return Add(argv[2], argv[3], static_cast<uint32_t>(std::strtoul(argv[4], nullptr, 10)),
               std::atoi(argv[5]));
  }
  return 2;
}

}  // namespace nam::fabric::conformance
