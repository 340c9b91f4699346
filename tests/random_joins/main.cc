// Random joins and group-bys compared with SQLite, any number of them: ./run test joins.
#include <iostream>
#include <string>

#include "absl/strings/numbers.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "tests/cluster/tested_cluster.h"
#include "tests/random_joins/random_cases.h"

namespace nam::testing {
namespace {

constexpr char kUsage[] =
    R"(usage: random_joins [--seed=1] [--cases=100000] [--first=0] [--case=N] [--fabric=sim|shm|tcp|verbs]
                    [--set=250] [--failures=10] [--verbose]
Cases FIRST, FIRST + 1, … of the seed; --case=N: that one alone. A set of cases shares a cluster and tables;
it is drawn with another --set. Without --fabric, all that are here. Ends after so many failures.
)";

/// Whether the argument is `--NAME=NUMBER`.
bool Takes(absl::string_view argument, absl::string_view name, uint64_t& value) {
  return absl::ConsumePrefix(&argument, name) && absl::SimpleAtoi(argument, &value);
}

bool Parse(int argc, char** argv, RandomCasesOptions& options) {
  options.cases = 100'000;
  options.failures_max = 10;
  options.fabrics = FabricsHere();
  for (int i = 1; i < argc; ++i) {
    absl::string_view argument = argv[i];
    uint64_t one = 0;
    if (Takes(argument, "--case=", one)) {
      options.first = one;
      options.cases = 1;
    } else if (argument == "--verbose") {
      options.verbose = true;
    } else if (absl::ConsumePrefix(&argument, "--fabric=")) {
      const auto kind = fabric::ParseKind(std::string(argument));
      if (!kind.ok()) return false;
      options.fabrics = {*kind};
    } else if (!Takes(argument, "--seed=", options.seed) && !Takes(argument, "--cases=", options.cases) &&
               !Takes(argument, "--first=", options.first) &&
               !Takes(argument, "--set=", options.cases_of_a_set) &&
               !Takes(argument, "--failures=", options.failures_max)) {
      return false;
    }
  }
  return options.cases_of_a_set > 0;
}

}  // namespace
}  // namespace nam::testing

int main(int argc, char** argv) {
  nam::testing::RandomCasesOptions options;
  if (!nam::testing::Parse(argc, argv, options)) {
    std::cerr << nam::testing::kUsage;
    return 2;
  }
  const auto result = nam::testing::RunRandomCases(options, std::cout);
  std::cout << result.Summary() << "\n";
  return result.failures == 0 ? 0 : 1;
}
