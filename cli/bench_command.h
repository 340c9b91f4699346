#pragma once

#include <optional>
#include <string>
#include <vector>

namespace nam::cli {

/// The arguments of `nam bench …` without the word `bench`; nullopt if these are another command's.
std::optional<std::vector<std::string>> BenchArguments(const std::vector<std::string>& arguments);

/// Becomes `nam-bench`, the program of the benchmarks, with these arguments. Returns only if that cannot be
/// started: the exit code.
int RunBench(const std::vector<std::string>& arguments);

}  // namespace nam::cli
