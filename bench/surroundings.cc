#include "bench/surroundings.h"

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <system_error>

#include "absl/strings/str_cat.h"

namespace nam::bench {

absl::StatusOr<std::string> MakeLargeDirectory() {
  std::error_code error;
  const std::filesystem::path parent = std::filesystem::temp_directory_path(error);
  std::string path = ((error ? std::filesystem::path("/tmp") : parent) / "nam-bench-XXXXXX").string();
  if (mkdtemp(path.data()) == nullptr) return absl::InternalError(absl::StrCat("cannot create ", path));
  return path;
}

double LoadAverage() {
  double average = 0;
  return getloadavg(&average, 1) == 1 ? average : 0;
}

void WarnOfLoad(double load_average) {
  constexpr double kQuietLoad = 0.5;  // processors in use that hardly affect a benchmark
  if (load_average <= kQuietLoad) return;
  std::fprintf(stderr, "nam: other work runs on this machine (load average %.2f): expect noise\n",
               load_average);
}

}  // namespace nam::bench
