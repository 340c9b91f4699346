#include "localcluster/process.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstdio>
#include <cstring>
#include <deque>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/clock.h"
#include "base/errno_error.h"
#include "base/status_macros.h"

namespace nam {
namespace {

constexpr size_t kReadyLineBytesMax = 64 * 1024;
constexpr size_t kStderrLines = 16;
constexpr char kThisProgram[] = "/proc/self/exe";

int MillisecondsUntil(Deadline deadline) {
  const int64_t left_ns = deadline.ns - RealClock().NowNs();
  return static_cast<int>(std::clamp<int64_t>((left_ns + 999'999) / 1'000'000, 0, 3'600'000));
}

/// The child's data, prepared before fork: between fork and exec nothing may allocate.
struct Launch {
  std::vector<std::string> strings;
  std::vector<char*> argv;
  std::vector<char*> envp;
};

Launch Prepare(const ProcessOptions& options) {
  Launch launch;
  launch.strings.push_back("nam");
  for (const std::string& argument : options.arguments) launch.strings.push_back(argument);
  const size_t arguments = launch.strings.size();
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string_view text = *entry;
    if (!options.drop_prefix.empty() && text.starts_with(options.drop_prefix)) continue;
    if (!options.environment.contains(std::string(text.substr(0, text.find('=')))))
      launch.strings.emplace_back(text);
  }
  for (const auto& [name, value] : options.environment)
    launch.strings.push_back(absl::StrCat(name, "=", value));
  for (size_t i = 0; i < launch.strings.size(); ++i) {
    (i < arguments ? launch.argv : launch.envp).push_back(launch.strings[i].data());
  }
  launch.argv.push_back(nullptr);
  launch.envp.push_back(nullptr);
  return launch;
}

/// Runs in the child: async-signal-safe calls only.
[[noreturn]] void RunChild(const ProcessOptions& options, const Launch& launch, pid_t parent, int out,
                           int err) {
  if (options.detached) {
    setsid();
  } else {
    // Its own group: a terminal's Ctrl-C reaches only the parent, which stops its children in order.
    setpgid(0, 0);
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    // A parent that died before prctl sends no signal.
    if (getppid() != parent) _exit(127);
  }
  const int in = options.stdin_fd >= 0 ? options.stdin_fd : open("/dev/null", O_RDONLY | O_CLOEXEC);
  if (options.directory_fd >= 0 && fchdir(options.directory_fd) != 0) _exit(127);
  if (in < 0 || dup2(in, 0) < 0 || dup2(out, 1) < 0 || (err >= 0 && dup2(err, 2) < 0)) _exit(127);
  syscall(SYS_close_range, 3u, ~0u, 4u /* CLOSE_RANGE_CLOEXEC */);
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
  signal(SIGPIPE, SIG_DFL);
  signal(SIGINT, SIG_DFL);
  signal(SIGTERM, SIG_DFL);
  execve(options.executable.c_str(), launch.argv.data(), launch.envp.data());
  static constexpr char kMessage[] = "cannot execute the program\n";
  [[maybe_unused]] const ssize_t ignored = write(2, kMessage, sizeof kMessage - 1);
  _exit(127);
}

std::string DescribeWaitStatus(int status) {
  if (WIFSIGNALED(status)) {
    const int number = WTERMSIG(status);
    return absl::StrFormat("signal %d (%s)", number, strsignal(number));
  }
  return absl::StrCat("exit code ", WEXITSTATUS(status));
}

UniqueFd OpenPidfd(pid_t pid) {
  return UniqueFd(static_cast<int>(syscall(SYS_pidfd_open, pid, 0)));
}

/// True once `fd` is readable.
bool AwaitReadable(int fd, Deadline deadline) {
  pollfd wait{fd, POLLIN, 0};
  do {
    if (poll(&wait, 1, MillisecondsUntil(deadline)) > 0) return true;
  } while (!RealClock().Passed(deadline));
  return false;
}

std::string StderrPath(const ProcessOptions& options) {
  if (options.directory_fd < 0) return options.stderr_file;
  return absl::StrFormat("/proc/self/fd/%d/%s", options.directory_fd, options.stderr_file);
}

constexpr char kDeleted[] = " (deleted)";

std::string FirstLine(const std::string& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

/// The start time of the process with this /proc directory.
std::optional<uint64_t> StartTimeOf(const std::string& folder) {
  const std::string text = FirstLine(folder + "/stat");
  // The second field, the name in parentheses, may contain anything; the 22nd is the start time.
  const size_t name_end = text.rfind(')');
  if (name_end == std::string::npos) return std::nullopt;
  std::istringstream fields(text.substr(name_end + 1));
  std::string field;
  for (int i = 3; i <= 21; ++i) fields >> field;
  uint64_t start_time = 0;
  if (!(fields >> start_time)) return std::nullopt;
  return start_time;
}

std::optional<uid_t> EffectiveUserOf(const std::string& folder) {
  std::ifstream file(folder + "/status");
  for (std::string line; std::getline(file, line);) {
    unsigned real, effective;
    if (std::sscanf(line.c_str(), "Uid: %u %u", &real, &effective) == 2) return effective;
  }
  return std::nullopt;
}

}  // namespace

std::optional<ReadyLine> ReadyLine::Parse(std::string_view line) {
  std::istringstream words{std::string(line)};
  std::string word;
  ReadyLine ready;
  if (!(words >> word) || word != "READY" || !(words >> ready.role)) return std::nullopt;
  while (words >> word) {
    const size_t equals = word.find('=');
    if (equals == std::string::npos || equals == 0) return std::nullopt;
    ready.values[word.substr(0, equals)] = word.substr(equals + 1);
  }
  return ready;
}

std::string ReadyLine::ToString() const {
  std::string line = absl::StrCat("READY ", role);
  for (const auto& [key, value] : values) absl::StrAppend(&line, " ", key, "=", value);
  return line;
}

absl::StatusOr<std::unique_ptr<Process>> Process::Start(ProcessOptions options) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return ErrnoError("pipe");
  UniqueFd read_end(ends[0]), write_end(ends[1]);
  if (fcntl(read_end.get(), F_SETFL, O_NONBLOCK) != 0) return ErrnoError("fcntl");
  UniqueFd log;
  int64_t stderr_start = 0;
  if (options.quote_stderr) {
    log.reset(memfd_create("stderr", MFD_CLOEXEC));
    if (!log.valid()) return ErrnoError("memfd_create");
  } else if (!options.stderr_file.empty()) {
    log.reset(open(StderrPath(options).c_str(), O_RDWR | O_CREAT | O_APPEND | O_NOFOLLOW | O_CLOEXEC, 0600));
    if (!log.valid()) return ErrnoError(absl::StrCat("cannot write ", options.stderr_file));
    stderr_start = lseek(log.get(), 0, SEEK_END);
  }
  options.executable = std::filesystem::absolute(options.executable);
  const Launch launch = Prepare(options);
  const pid_t parent = getpid();
  const pid_t pid = fork();
  if (pid < 0) return ErrnoError(absl::StrCat("cannot start ", options.name));
  const int out = options.stdout_fd >= 0 ? options.stdout_fd : write_end.get();
  if (pid == 0) RunChild(options, launch, parent, out, log.get());
  UniqueFd pidfd = OpenPidfd(pid);
  if (!pidfd.valid()) {
    const absl::Status status = ErrnoError("pidfd_open (needs Linux 5.3)");
    kill(pid, SIGKILL);
    waitpid(pid, nullptr, 0);
    return status;
  }
  return std::unique_ptr<Process>(new Process(std::move(options), pid, std::move(pidfd), std::move(read_end),
                                              std::move(log), stderr_start));
}

Process::Process(ProcessOptions options, pid_t pid, UniqueFd pidfd, UniqueFd stdout_pipe, UniqueFd stderr_log,
                 int64_t stderr_start)
    : options_(std::move(options)),
      pid_(pid),
      pidfd_(std::move(pidfd)),
      stdout_(std::move(stdout_pipe)),
      stderr_(std::move(stderr_log)),
      stderr_start_(stderr_start) {}

Process::~Process() {
  if (options_.detached || !running()) return;
  Signal(SIGKILL);
  AwaitEnd(kKillWaitMs);
}

void Process::Reap() {
  if (wait_status_.has_value()) return;
  int status = 0;
  if (waitpid(pid_, &status, WNOHANG) == pid_) wait_status_ = status;
}

bool Process::running() {
  Reap();
  return !wait_status_.has_value();
}

std::string Process::Outcome() {
  return running() ? std::string() : DescribeWaitStatus(*wait_status_);
}

void Process::Signal(int signal) {
  // Not reaped yet, so the pid still belongs to this child.
  if (running()) kill(pid_, signal);
}

bool Process::AwaitEnd(int64_t timeout_ms) {
  return !running() || (AwaitReadable(pidfd_.get(), DeadlineAfterMs(timeout_ms)) && !running());
}

absl::Status Process::Stop(int64_t timeout_ms) {
  Process* const self = this;
  return StopAll({&self, 1}, timeout_ms);
}

absl::Status Process::DiedEarly() {
  AwaitEnd(kKillWaitMs);
  return absl::UnavailableError(
      absl::StrCat(options_.name, " ended before it was ready (", Outcome(), ")", Said()));
}

std::string Process::Said() const {
  if (!stderr_.valid()) return {};
  const std::string tail =
      LastLines(absl::StrCat("/proc/self/fd/", stderr_.get()), stderr_start_, kStderrLines);
  return tail.empty() ? tail : absl::StrCat("; it said:\n", tail);
}

absl::Status Process::ReadOutput() {
  char chunk[4096];
  const ssize_t n = read(stdout_.get(), chunk, sizeof chunk);
  if (n < 0) return errno == EAGAIN || errno == EINTR ? absl::OkStatus() : ErrnoError("read");
  if (n == 0) return DiedEarly();
  line_.append(chunk, static_cast<size_t>(n));
  for (size_t end; !ready_.has_value() && (end = line_.find('\n')) != std::string::npos;) {
    // Libraries may print other lines first.
    ready_ = ReadyLine::Parse(std::string_view(line_).substr(0, end));
    line_.erase(0, end + 1);
  }
  if (line_.size() > kReadyLineBytesMax) {
    return absl::InternalError(absl::StrCat(options_.name, " writes something else than its READY line"));
  }
  return absl::OkStatus();
}

absl::Status AwaitReady(std::span<Process* const> processes, int64_t timeout_ms, int interrupt_fd) {
  const Deadline deadline = DeadlineAfterMs(timeout_ms);
  while (true) {
    std::vector<pollfd> waits{{interrupt_fd, POLLIN, 0}};
    std::vector<Process*> waiting;
    for (Process* process : processes) {
      if (process->ready_.has_value()) continue;
      waiting.push_back(process);
      waits.push_back({process->stdout_.get(), POLLIN, 0});
    }
    if (waiting.empty()) return absl::OkStatus();
    const int ready = poll(waits.data(), waits.size(), MillisecondsUntil(deadline));
    if (ready < 0 && errno != EINTR) return ErrnoError("poll");
    if (ready > 0 && waits[0].revents != 0) return absl::CancelledError("interrupted");
    for (size_t i = 0; ready > 0 && i < waiting.size(); ++i) {
      if (waits[i + 1].revents != 0) NAM_RETURN_IF_ERROR(waiting[i]->ReadOutput());
    }
    if (ready <= 0 && RealClock().Passed(deadline)) {
      return absl::DeadlineExceededError(
          absl::StrFormat("%s was not ready within %.1f s%s", waiting[0]->name(),
                          static_cast<double>(timeout_ms) / 1000, waiting[0]->Said()));
    }
  }
}

absl::Status StopAll(std::span<Process* const> processes, int64_t timeout_ms) {
  const Deadline deadline = DeadlineAfterMs(timeout_ms);
  for (Process* process : processes) process->Signal(SIGTERM);
  absl::Status result;
  for (Process* process : processes) {
    if (!process->AwaitEnd(MillisecondsUntil(deadline))) {
      process->Signal(SIGKILL);
      process->AwaitEnd(kKillWaitMs);
      result.Update(absl::DeadlineExceededError(
          absl::StrFormat("%s did not stop within %.1f s and was killed", process->name(),
                          static_cast<double>(timeout_ms) / 1000)));
    } else if (process->Outcome() != "exit code 0") {
      result.Update(absl::InternalError(absl::StrCat(process->name(), " ended with ", process->Outcome())));
    }
  }
  return result;
}

std::optional<ProcessIdentity> IdentityOf(pid_t pid) {
  const std::string folder = absl::StrCat("/proc/", pid);
  const auto start_time = StartTimeOf(folder);
  if (!start_time || EffectiveUserOf(folder) != geteuid()) return std::nullopt;
  std::error_code error;
  std::string executable = std::filesystem::read_symlink(folder + "/exe", error);
  if (error) return std::nullopt;
  // A build may have replaced the file meanwhile; that does not make it another program.
  if (executable.ends_with(kDeleted)) executable.resize(executable.size() - std::strlen(kDeleted));
  return ProcessIdentity{pid, *start_time, FirstLine("/proc/sys/kernel/random/boot_id"), executable};
}

bool EndForeignProcess(const ProcessIdentity& process, int64_t timeout_ms, bool already) {
  const UniqueFd pidfd = OpenPidfd(process.pid);
  // The descriptor is opened first, so it belongs to the process identified next.
  if (!pidfd.valid() || IdentityOf(process.pid) != process) return false;
  if (AwaitReadable(pidfd.get(), DeadlineAfterMs(0))) return false;  // ended; its parent has not noticed yet
  const auto send = [&](int signal) { syscall(SYS_pidfd_send_signal, pidfd.get(), signal, nullptr, 0); };
  if (!already) send(SIGTERM);
  if (!AwaitReadable(pidfd.get(), DeadlineAfterMs(timeout_ms))) {
    send(SIGKILL);
    AwaitReadable(pidfd.get(), DeadlineAfterMs(kKillWaitMs));
  }
  return true;
}

std::string LastLines(const std::string& path, int64_t from, size_t lines) {
  std::ifstream file(path);
  file.seekg(from);
  std::deque<std::string> last;
  for (std::string line; std::getline(file, line);) {
    last.push_back(line);
    if (last.size() > lines) last.pop_front();
  }
  std::string text;
  for (const std::string& line : last) absl::StrAppend(&text, text.empty() ? "" : "\n", "    ", line);
  return text;
}

absl::StatusOr<std::string> FindExecutable(const std::string& name) {
  char link[PATH_MAX];
  const ssize_t bytes = ::readlink(kThisProgram, link, sizeof(link));
  const std::string path(link, bytes < 0 ? 0 : static_cast<size_t>(bytes));
  const size_t slash = path.rfind('/');
  if (slash == std::string::npos) return absl::NotFoundError("this program's own path cannot be read");
  // A build may have replaced the file meanwhile; the link still leads to the running program.
  if (path.substr(slash + 1) == name) return std::string(kThisProgram);
  const std::string directory = path.substr(0, slash);
  for (const char* beside : {"/", "/../cli/", "/../bench/"}) {
    const std::string candidate = absl::StrCat(directory, beside, name);
    if (::access(candidate.c_str(), X_OK) == 0) return candidate;
  }
  return absl::NotFoundError(absl::StrCat("there is no ", name, " beside ", path));
}

}  // namespace nam
