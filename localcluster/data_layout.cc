#include "localcluster/data_layout.h"

#include <linux/magic.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "base/status_macros.h"
#include "localcluster/state_directory.h"

namespace nam {
namespace {

constexpr char kOwnData[] = "data";
constexpr char kMemoryPrefix[] = "memory-";

/// Where the user's data belong (XDG Base Directory Specification); empty: the user has no home.
std::filesystem::path DataHome() {
  const char* const data = std::getenv("XDG_DATA_HOME");
  if (data != nullptr && *data == '/') return data;
  const char* const home = std::getenv("HOME");
  if (home == nullptr || *home != '/' || access(home, W_OK) != 0) return {};
  return std::filesystem::path(home) / ".local/share";
}

bool HasStore(const std::filesystem::path& data_directory) {
  return access(StoreIn(data_directory.string()).c_str(), F_OK) == 0;
}

/// Data of former versions are in the state directory, and stay there.
std::filesystem::path OwnDataDirectory(const std::string& state_directory) {
  std::filesystem::path inside = std::filesystem::path(state_directory) / kOwnData;
  if (state_directory != DefaultStateDirectory() || DataHome().empty()) return inside;
  std::filesystem::path in_home = DataHome() / "nam";
  return HasStore(inside) && !HasStore(in_home) ? inside : in_home;
}

}  // namespace

std::string DataDirectoryOf(const std::string& state_directory, const std::string& given) {
  if (given == kNoDataDirectory) return "";
  const std::filesystem::path path =
      given.empty() ? OwnDataDirectory(state_directory) : std::filesystem::path(given);
  return std::filesystem::absolute(path).lexically_normal().string();
}

absl::Status MakeParentsOf(const std::string& path) {
  for (std::filesystem::path made; const auto& part : std::filesystem::path(path).parent_path()) {
    made /= part;
    if (mkdir(made.c_str(), 0700) == 0 || errno == EEXIST || access(made.c_str(), F_OK) == 0) continue;
    return absl::FailedPreconditionError(
        absl::StrCat("cannot make the directory `", made.string(), "`: ", std::strerror(errno)));
  }
  return absl::OkStatus();
}

absl::Status MakeDataDirectory(const std::string& path) {
  NAM_RETURN_IF_ERROR(MakeParentsOf(path));
  if (mkdir(path.c_str(), 0700) != 0 && errno != EEXIST) {
    return absl::FailedPreconditionError(
        absl::StrCat("cannot make the data directory `", path, "`: ", std::strerror(errno)));
  }
  struct stat info;
  if (lstat(path.c_str(), &info) != 0 || !S_ISDIR(info.st_mode) || info.st_uid != geteuid() ||
      (info.st_mode & 077) != 0) {
    return absl::FailedPreconditionError(
        absl::StrCat("the data directory `", path,
                     "` must be a directory, no link, of yours, and closed to others: `chmod 700` it"));
  }
  return CheckNoUnfinishedRestore(path);
}

absl::Status CheckNoUnfinishedRestore(const std::string& path) {
  if (access(UnfinishedStoreIn(path).c_str(), F_OK) != 0) return absl::OkStatus();
  return absl::FailedPreconditionError(
      absl::StrCat("a restore into `", path,
                   "` was interrupted, or is under way; remove the directory when it "
                   "has ended, and restore again"));
}

std::string StoreIn(const std::string& data_directory) {
  return absl::StrCat(data_directory, "/catalog.db");
}

std::string UnfinishedStoreIn(const std::string& data_directory) {
  return StoreIn(data_directory) + ".new";
}

std::string SavedRecordsIn(const std::string& data_directory) {
  return absl::StrCat(data_directory, "/records.saved");
}

std::string MemoryDirectoryIn(const std::string& data_directory, int place) {
  return absl::StrCat(data_directory, "/", kMemoryPrefix, place);
}

int MemoryDirectoriesIn(const std::string& data_directory) {
  int most = 0;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(data_directory, error)) {
    const std::string name = entry.path().filename().string();
    absl::string_view rest = name;
    int place = 0;
    if (absl::ConsumePrefix(&rest, kMemoryPrefix) && absl::SimpleAtoi(rest, &place))
      most = std::max(most, place);
  }
  return most;
}

bool EndsWithHost(const std::string& path) {
  struct statfs info;
  std::filesystem::path at = path;
  while (statfs(at.c_str(), &info) != 0) {
    if (!at.has_parent_path() || at == at.parent_path()) return false;
    at = at.parent_path();
  }
  return info.f_type == TMPFS_MAGIC;
}

}  // namespace nam
