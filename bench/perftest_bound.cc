#include "bench/perftest_bound.h"

#include <fcntl.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <sstream>
#include <tuple>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/clock.h"
#include "base/status_macros.h"
#include "base/unique_fd.h"
#include "localcluster/process.h"

namespace nam::bench {
namespace {

constexpr uint32_t kInFlight = 16;
constexpr int kIterations = 1000;
constexpr int kPort = 18'515;  // perftest's default
constexpr int kAttempts = 20;  // to reach the server, which does not report when it listens
constexpr int64_t kAttemptUs = 250'000;
constexpr int64_t kTimeoutMs = 120'000;

/// The program's path; empty if none.
std::string FindProgram(const std::string& name) {
  const char* path = std::getenv("PATH");
  std::istringstream folders(path != nullptr ? path : "");
  for (std::string folder; std::getline(folders, folder, ':');) {
    const std::string candidate = absl::StrCat(folder, "/", name);
    if (access(candidate.c_str(), X_OK) == 0) return candidate;
  }
  return {};
}

const char* ProgramOf(Operation operation) {
  switch (operation) {
    case Operation::kRead:
      return "ib_read_bw";
    case Operation::kWrite:
      return "ib_write_bw";
    case Operation::kSend:
      return "ib_send_bw";
    case Operation::kCompareAndSwap:
    case Operation::kFetchAdd:
      return "ib_atomic_bw";
    case Operation::kMulticast:
      return nullptr;
  }
  return nullptr;
}

std::string ReadFile(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

class PerftestBound final : public FabricBound {
 public:
  explicit PerftestBound(const PerftestOptions& options) : options_(options) {}
  const char* name() const override { return "perftest between the same devices"; }
  bool Covers(const FabricCase& wanted) const override {
    const char* program = ProgramOf(wanted.operation);
    return wanted.in_flight == kInFlight && program != nullptr && !FindProgram(program).empty();
  }
  absl::StatusOr<double> Rate(const FabricCase& wanted, int64_t) override {
    const std::tuple key(wanted.operation, wanted.bytes, wanted.threads);
    if (const auto known = rates_.find(key); known != rates_.end()) return known->second;
    NAM_ASSIGN_OR_RETURN(const double rate, Measure(wanted));
    rates_[key] = rate;
    return rate;
  }

 private:
  absl::StatusOr<double> Measure(const FabricCase& wanted) {
    NAM_ASSIGN_OR_RETURN(const auto server,
                         Start(wanted, options_.server_rdma, "", options_.directory + "/perftest-server"));
    const std::string output = options_.directory + "/perftest";
    for (int attempt = 0; attempt < kAttempts; ++attempt) {
      RealClock().SleepUntil(RealClock().After(kAttemptUs));
      NAM_ASSIGN_OR_RETURN(const auto client, Start(wanted, options_.rdma, options_.server_host, output));
      if (!client->AwaitEnd(kTimeoutMs)) break;
      if (client->Outcome() == "exit code 0") return ParsePerftest(ReadFile(output));
      if (!server->running()) break;
    }
    return absl::UnavailableError(
        absl::StrFormat("%s failed: %s", ProgramOf(wanted.operation), LastLines(output, 0, 8)));
  }

  absl::StatusOr<std::unique_ptr<Process>> Start(const FabricCase& wanted, const std::string& rdma,
                                                 const std::string& host, const std::string& output) {
    const std::string program = ProgramOf(wanted.operation);
    std::vector<std::string> arguments = PerftestDevice(rdma);
    const auto add = [&](const char* option, auto value) {
      arguments.insert(arguments.end(), {option, absl::StrCat(value)});
    };
    arguments.push_back("-F");  // ignores the processor's frequency
    add("-p", kPort);
    add("-n", kIterations);
    add("-q", wanted.threads);
    add("-t", kInFlight);
    if (IsAtomic(wanted.operation)) {
      add("-A", wanted.operation == Operation::kCompareAndSwap ? "CMP_AND_SWAP" : "FETCH_AND_ADD");
    } else {
      add("-s", wanted.bytes);
    }
    if (!host.empty()) arguments.push_back(host);
    const UniqueFd file(open(output.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600));
    if (!file.valid()) return absl::InternalError(absl::StrCat("cannot write ", output));
    return Process::Start({.name = program,
                           .executable = FindProgram(program),
                           .arguments = std::move(arguments),
                           .stderr_file = output,
                           .stdout_fd = file.get()});
  }

  const PerftestOptions options_;
  std::map<std::tuple<Operation, uint32_t, uint32_t>, double> rates_;
};

}  // namespace

std::unique_ptr<FabricBound> MakePerftestBound(const PerftestOptions& options) {
  if (FindProgram("ib_read_bw").empty()) return nullptr;
  return std::make_unique<PerftestBound>(options);
}

absl::StatusOr<double> ParsePerftest(const std::string& output) {
  // The output has a line `#bytes #iterations BW peak BW average MsgRate[Mpps]`, then a line with these
  // numbers.
  std::istringstream lines(output);
  bool table = false;
  for (std::string line; std::getline(lines, line);) {
    std::istringstream cells(line);
    double bytes, iterations, peak, average, millions;
    if (line.find("#bytes") != std::string::npos) {
      table = line.find("MsgRate[Mpps]") != std::string::npos;
    } else if (table && cells >> bytes >> iterations >> peak >> average >> millions && millions > 0) {
      return millions * 1e6;
    }
  }
  return absl::InternalError("perftest printed no message rate");
}

std::vector<std::string> PerftestDevice(const std::string& rdma) {
  std::vector<std::string> arguments;
  const size_t comma = rdma.find(',');
  const std::string device = rdma.substr(0, comma);
  const size_t colon = device.find(':');
  if (!device.empty()) arguments.insert(arguments.end(), {"-d", device.substr(0, colon)});
  if (colon != std::string::npos) arguments.insert(arguments.end(), {"-i", device.substr(colon + 1)});
  // By default the second GID: RoCE v2 with the address, on RoCE ports.
  const size_t gid = rdma.find("gid=");
  if (!device.empty()) {
    arguments.insert(arguments.end(), {"-x", gid != std::string::npos ? rdma.substr(gid + 4) : "1"});
  }
  return arguments;
}

}  // namespace nam::bench
