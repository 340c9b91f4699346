#include "cli/bench_command.h"

#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstdio>
#include <cstring>

#include "localcluster/process.h"
#include "terminal/exit_codes.h"

namespace nam::cli {

std::optional<std::vector<std::string>> BenchArguments(const std::vector<std::string>& arguments) {
  // Before a command only --config is allowed.
  for (size_t i = 0; i < arguments.size(); ++i) {
    if (arguments[i] == "bench") {
      std::vector<std::string> others = arguments;
      others.erase(others.begin() + static_cast<std::ptrdiff_t>(i));
      return others;
    }
    if (arguments[i] == "--config") {
      ++i;
    } else if (!arguments[i].starts_with("--config=")) {
      break;
    }
  }
  return std::nullopt;
}

int RunBench(const std::vector<std::string>& arguments) {
  const absl::StatusOr<std::string> program = FindExecutable("nam-bench");
  if (!program.ok()) {
    std::fprintf(stderr, "nam: %s\nhint: `./run bench` in the source tree builds it\n",
                 std::string(program.status().message()).c_str());
    return kExitUsage;
  }
  std::vector<std::string> words{*program};
  words.insert(words.end(), arguments.begin(), arguments.end());
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  ::execv(program->c_str(), argv.data());
  std::fprintf(stderr, "nam: cannot start %s: %s\n", program->c_str(), std::strerror(errno));
  return kExitFailed;
}

}  // namespace nam::cli
