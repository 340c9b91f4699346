#include "localcluster/executables.h"

#include <unistd.h>

#include <climits>

#include "absl/strings/str_cat.h"

namespace nam {
namespace {

constexpr char kThisProgram[] = "/proc/self/exe";

}  // namespace

absl::StatusOr<std::string> FindExecutable(const std::string& name) {
  char link[PATH_MAX];
  const ssize_t bytes = ::readlink(kThisProgram, link, sizeof(link));
  const std::string path(link, bytes < 0 ? 0 : static_cast<size_t>(bytes));
  const size_t slash = path.rfind('/');
  if (slash == std::string::npos) return absl::NotFoundError("this program's own path cannot be read");
  // A build may have replaced the file meanwhile; the link still leads to what runs.
  if (path.substr(slash + 1) == name) return std::string(kThisProgram);
  const std::string directory = path.substr(0, slash);
  for (const char* beside : {"/", "/../cli/", "/../bench/"}) {
    const std::string candidate = absl::StrCat(directory, beside, name);
    if (::access(candidate.c_str(), X_OK) == 0) return candidate;
  }
  return absl::NotFoundError(absl::StrCat("there is no ", name, " beside ", path));
}

}  // namespace nam
