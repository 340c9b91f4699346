#include "csv/destination.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <climits>
#include <cstdlib>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

namespace nam::csv {
namespace {

/// As many as the system follows.
constexpr int kLinksMax = 40;

std::string FolderOf(const std::string& path) {
  const size_t slash = path.rfind('/');
  return slash == std::string::npos ? "." : slash == 0 ? "/" : path.substr(0, slash);
}

/// The descriptor of this process that a link stands for, in whatever words its folder is named; -1: none.
int DescriptorOf(const std::string& link) {
  int descriptor = -1;
  char folder[PATH_MAX];
  if (!absl::SimpleAtoi(link.substr(link.rfind('/') + 1), &descriptor) || descriptor < 0) return -1;
  if (realpath(FolderOf(link).c_str(), folder) == nullptr) return -1;
  const std::string own = absl::StrCat("/proc/", getpid(), "/");
  return absl::StartsWith(folder, own) && absl::EndsWith(folder, "/fd") ? descriptor : -1;
}

/// Goes on from link to link, to a path that is none; what it names need not exist.
int FollowLinks(std::string& path, int& descriptor) {
  for (int links = 0; links <= kLinksMax; ++links) {
    struct stat about {};
    if (lstat(path.c_str(), &about) != 0) return errno == ENOENT ? 0 : errno;
    if (!S_ISLNK(about.st_mode)) return 0;
    descriptor = DescriptorOf(path);
    if (descriptor >= 0) return 0;
    char target[PATH_MAX];
    const ssize_t bytes = readlink(path.c_str(), target, sizeof(target));
    if (bytes < 0) return errno;
    const std::string leads_to(target, static_cast<size_t>(bytes));
    path = leads_to.starts_with('/') ? leads_to : absl::StrCat(FolderOf(path), "/", leads_to);
  }
  return ELOOP;
}

/// Whether another file may take the name of this one, and all that changes are its bytes.
bool MayBeReplaced(const struct stat& about, const std::string& folder) {
  return about.st_nlink == 1 && about.st_uid == geteuid() && about.st_gid == getegid() &&
         access(folder.c_str(), W_OK | X_OK) == 0;
}

}  // namespace

int FindDestination(const std::string& path, Destination& destination) {
  using Kind = Destination::Kind;
  std::string target = path;
  destination = Destination();
  if (const int error = FollowLinks(target, destination.descriptor); error != 0) return error;
  if (destination.descriptor >= 0) {
    destination.kind = Kind::kDescriptor;
    return 0;
  }
  destination.folder = FolderOf(target);
  destination.name = target.substr(target.rfind('/') + 1);
  struct stat about {};
  if (stat(path.c_str(), &about) != 0) return errno != ENOENT ? errno : destination.name.empty() ? EISDIR : 0;
  if (S_ISDIR(about.st_mode)) return EISDIR;
  destination.fifo = S_ISFIFO(about.st_mode);
  if (!S_ISREG(about.st_mode)) {
    destination.kind = Kind::kStream;
  } else if (access(path.c_str(), W_OK) != 0) {
    return errno;
  } else if (!MayBeReplaced(about, destination.folder)) {
    destination.kind = Kind::kInPlace;
  }
  return 0;
}

}  // namespace nam::csv
