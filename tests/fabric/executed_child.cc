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

#include "base/unique_fd.h"
#include "tests/fabric/child.h"
#include "tests/fabric/provider.h"

/// Children that are processes of the operating system: this test binary, executed again with
/// `--child=ROLE …`.
namespace nam::fabric::conformance {
namespace {

const int kChildTimeoutMs = static_cast<int>(60'000 * TimeoutFactor());
constexpr char kFlag[] = "--child=";

class ExecutedChild final : public ChildProcess {
 public:
  explicit ExecutedChild(const std::vector<std::string>& role);
  ~ExecutedChild() override { Kill(); }
  std::optional<std::string> ReadLine() override;
  void Kill() override;
  int pid() const override { return pid_; }
  int Finish() override;

 private:
  pid_t pid_ = -1;
  UniqueFd input_;  // it ends when this is closed
  UniqueFd output_;
};

ExecutedChild::ExecutedChild(const std::vector<std::string>& role) {
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

std::optional<std::string> ExecutedChild::ReadLine() {
  std::string line;
  while (true) {
    pollfd waiting{output_.get(), POLLIN, 0};
    char byte;
    if (poll(&waiting, 1, kChildTimeoutMs) != 1 || read(output_.get(), &byte, 1) != 1) return std::nullopt;
    if (byte == '\n') return line;
    line += byte;
  }
}

void ExecutedChild::Kill() {
  if (pid_ <= 0) return;
  kill(pid_, SIGKILL);
  waitpid(pid_, nullptr, 0);
  pid_ = -1;
}

int ExecutedChild::Finish() {
  if (pid_ <= 0) return -1;
  input_.reset();
  const UniqueFd process(static_cast<int>(syscall(SYS_pidfd_open, pid_, 0)));
  pollfd waiting{process.get(), POLLIN, 0};
  int status = 0;
  if (poll(&waiting, 1, kChildTimeoutMs) != 1 || waitpid(pid_, &status, 0) != pid_) {
    Kill();
    return -1;
  }
  pid_ = -1;
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

/// Lines on standard output; standard input ends with the test's interest.
class StandardConsole final : public Console {
 public:
  void Print(const std::string& line) override {
    std::printf("%s\n", line.c_str());
    std::fflush(stdout);
  }
  void AwaitEnd() override {
    char byte;
    while (read(STDIN_FILENO, &byte, 1) > 0) {
    }
  }
};

}  // namespace

std::unique_ptr<ChildProcess> Provider::StartChild(const std::vector<std::string>& role) {
  return std::make_unique<ExecutedChild>(role);
}

std::optional<int> RunAsChild(int argc, char** argv) {
  if (argc < 3 || std::string(argv[1]).rfind(kFlag, 0) != 0) return std::nullopt;
  std::vector<std::string> role(argv + 1, argv + argc);
  role[0] = role[0].substr(sizeof(kFlag) - 1);
  const auto fabric = CurrentProvider().Open(role[1]);
  if (!fabric.ok()) {
    std::fprintf(stderr, "child: %s\n", fabric.status().ToString().c_str());
    return 1;
  }
  StandardConsole console;
  return PlayRole(role, **fabric, console);
}

}  // namespace nam::fabric::conformance
