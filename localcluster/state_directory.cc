#include "localcluster/state_directory.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <filesystem>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/errno_error.h"
#include "base/private_file.h"
#include "base/status_macros.h"
#include "nlohmann/json.hpp"

namespace nam {
namespace {

using nlohmann::json;

constexpr int kStateVersion = 2;
constexpr size_t kSecretBytes = 32;
constexpr size_t kChosenSecretBytesMin = 16;
constexpr char kLock[] = "lock", kState[] = "cluster.json", kSecret[] = "secret";
/// The files of one run, except logs and the lock. SQLite adds the store's companion files.
constexpr const char* kRunFiles[] = {kState,           "cluster.json.new",   kSecret,
                                     "secret.new",     "catalog.db",         "catalog.db-wal",
                                     "catalog.db-shm", "catalog.db-journal", "catalog.db-reserve",
                                     "control"};

absl::Status NotTrusted(const std::string& path) {
  return absl::FailedPreconditionError(absl::StrCat(
      path,
      " must be a directory of yours that no other user may enter, and no link to one; `chmod 700` it if it "
      "is yours, or choose another by --state-dir"));
}

absl::StatusOr<std::string> SecretIn(int fd, const std::string& path) {
  const std::string what = absl::StrCat("the secret ", path);
  NAM_ASSIGN_OR_RETURN(std::string text, ReadAll(fd, what));
  while (!text.empty() && (text.back() == '\n' || text.back() == '\r')) text.pop_back();
  if (text.empty()) return absl::FailedPreconditionError(absl::StrCat(what, " is empty"));
  if (text.size() >= kChosenSecretBytesMin) return text;
  return absl::FailedPreconditionError(
      absl::StrFormat("%s has %d bytes, so that it can be guessed; use %d or more, best 32 random ones "
                      "(head -c 32 /dev/urandom | od -An -tx1 | tr -d ' \\n')",
                      what, text.size(), kChosenSecretBytesMin));
}

/// Removes trailing slashes, which shells add: after a slash a link would be followed.
std::string WithoutSlashes(std::string path) {
  while (path.size() > 1 && path.back() == '/') path.pop_back();
  return path;
}

std::string RuntimeDirectory() {
  const char* runtime = std::getenv("XDG_RUNTIME_DIR");
  struct stat info;
  if (runtime == nullptr || *runtime != '/' || stat(runtime, &info) != 0 || !S_ISDIR(info.st_mode) ||
      info.st_uid != geteuid() || access(runtime, W_OK) != 0) {
    return {};
  }
  return runtime;
}

json ToJson(const ClusterState::Server& server) {
  const ProcessIdentity& process = server.process;
  return {{"name", server.name},
          {"pid", process.pid},
          {"start_time", process.start_time},
          {"boot", process.boot},
          {"executable", process.executable}};
}

bool FromJson(const json& from, ClusterState::Server& server) {
  const auto text = [&](const char* key, std::string& to) {
    if (!from.contains(key) || !from[key].is_string()) return false;
    to = from[key];
    return true;
  };
  ProcessIdentity& process = server.process;
  if (!from.is_object() || !text("name", server.name) || !text("boot", process.boot) ||
      !text("executable", process.executable) || !from.contains("pid") || !from["pid"].is_number_integer() ||
      !from.contains("start_time") || !from["start_time"].is_number_unsigned()) {
    return false;
  }
  process.pid = from["pid"].get<pid_t>();
  process.start_time = from["start_time"].get<uint64_t>();
  return process.pid > 1;  // kill() treats other values as groups
}

}  // namespace

std::string DefaultStateDirectory() {
  const std::string runtime = RuntimeDirectory();
  return runtime.empty() ? absl::StrCat("/tmp/nam-", geteuid()) : runtime + "/nam";
}

absl::StatusOr<std::string> CreateTemporaryDirectory(const std::string& prefix) {
  const std::string runtime = RuntimeDirectory();
  std::string path = absl::StrCat(runtime.empty() ? "/tmp" : runtime, "/", prefix, "XXXXXX");
  if (mkdtemp(path.data()) == nullptr) return ErrnoError(absl::StrCat("cannot create ", path));
  return path;
}

void RemoveTree(const std::string& path) {
  std::error_code ignored;
  std::filesystem::remove_all(path, ignored);
}

absl::StatusOr<std::string> ReadSecret(const std::string& path) {
  const std::string what = absl::StrCat("the secret ", path);
  NAM_ASSIGN_OR_RETURN(const UniqueFd fd, OpenRegularFile(path, what));
  NAM_RETURN_IF_ERROR(CheckPrivateFile(fd.get(), what));
  return SecretIn(fd.get(), path);
}

std::string StateFile(const std::string& directory) {
  return absl::StrCat(directory, "/", kState);
}
std::string SecretFile(const std::string& directory) {
  return absl::StrCat(directory, "/", kSecret);
}

absl::StatusOr<StateDirectory> StateDirectory::Open(const std::string& path) {
  UniqueFd directory(open(WithoutSlashes(path).c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  if (!directory.valid()) {
    if (errno == ENOENT) return absl::NotFoundError(absl::StrCat("there is no ", path));
    return errno == ENOTDIR || errno == ELOOP || errno == EACCES ? NotTrusted(path) : ErrnoError(path);
  }
  struct stat info;
  if (fstat(directory.get(), &info) != 0) return ErrnoError(path);
  if (info.st_uid != geteuid() || (info.st_mode & 077) != 0) return NotTrusted(path);
  return StateDirectory(path, std::move(directory));
}

absl::StatusOr<StateDirectory> StateDirectory::Create(const std::string& path) {
  std::error_code error;
  const std::string name = WithoutSlashes(path);
  const std::filesystem::path parent = std::filesystem::path(name).parent_path();
  if (!parent.empty()) std::filesystem::create_directories(parent, error);
  if (mkdir(name.c_str(), 0700) != 0 && errno != EEXIST)
    return ErrnoError(absl::StrCat("cannot create ", path));
  return Open(path);
}

absl::StatusOr<UniqueFd> StateDirectory::OpenFile(const char* name, int flags) const {
  UniqueFd fd(openat(directory_.get(), name, flags | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC, 0600));
  const std::string path = absl::StrCat(path_, "/", name);
  if (!fd.valid() && errno == ENOSPC) return ErrnoError(absl::StrCat("cannot write ", path));
  if (!fd.valid()) return CannotRead(path, errno);
  NAM_RETURN_IF_ERROR(CheckPrivateFile(fd.get(), path));
  return fd;
}

absl::StatusOr<std::string> StateDirectory::ReadFile(const char* name) const {
  NAM_ASSIGN_OR_RETURN(const UniqueFd fd, OpenFile(name, O_RDONLY));
  return ReadAll(fd.get(), absl::StrCat(path_, "/", name));
}

absl::Status StateDirectory::ReplaceFile(const std::string& name, const std::string& text) const {
  const std::string fresh = name + ".new", what = absl::StrCat("cannot write ", path_, "/", name);
  unlinkat(directory_.get(), fresh.c_str(), 0);
  const UniqueFd fd(
      openat(directory_.get(), fresh.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600));
  if (!fd.valid()) return ErrnoError(what);
  for (size_t written = 0; written < text.size();) {  // a full disk may take only a part
    const ssize_t n = write(fd.get(), text.data() + written, text.size() - written);
    if (n < 0) return ErrnoError(what);
    written += static_cast<size_t>(n);
  }
  return renameat(directory_.get(), fresh.c_str(), directory_.get(), name.c_str()) == 0 ? absl::OkStatus()
                                                                                        : ErrnoError(what);
}

absl::Status StateDirectory::WriteFreshSecret() const {
  unsigned char bytes[kSecretBytes];
  if (getrandom(bytes, sizeof bytes, 0) != static_cast<ssize_t>(sizeof bytes)) return ErrnoError("getrandom");
  std::string text;
  for (const unsigned char byte : bytes) text += absl::StrFormat("%02x", byte);
  return ReplaceFile(kSecret, text + "\n");
}

absl::StatusOr<std::string> StateDirectory::ReadSecret() const {
  NAM_ASSIGN_OR_RETURN(const UniqueFd fd, OpenFile(kSecret, O_RDONLY));
  return SecretIn(fd.get(), SecretFile(path_));
}

absl::Status StateDirectory::SaveState(const ClusterState& state) const {
  json servers = json::array();
  for (const ClusterState::Server& server : state.servers) servers.push_back(ToJson(server));
  const json file = {{"version", kStateVersion},
                     {"catalog", state.catalog_address},
                     {"fabric", state.fabric},
                     {"data_directory", state.data_directory},
                     {"supervisor", ToJson(state.supervisor)},
                     {"servers", servers},
                     {"events", state.events}};
  return ReplaceFile(kState, file.dump(2, ' ', false, json::error_handler_t::replace) + "\n");
}

absl::StatusOr<ClusterState> StateDirectory::LoadState() const {
  NAM_ASSIGN_OR_RETURN(const std::string text, ReadFile(kState));
  const auto damaged = [&] {
    return absl::DataLossError(absl::StrCat(StateFile(path_), " is damaged, or of another version of nam"));
  };
  const json file = json::parse(text, nullptr, false);
  if (!file.is_object() || !file.contains("version") || file["version"] != kStateVersion ||
      !file.contains("catalog") || !file.contains("fabric") || !file.contains("supervisor") ||
      !file.contains("servers") || !file["catalog"].is_string() || !file["fabric"].is_string() ||
      !file["servers"].is_array()) {
    return damaged();
  }
  if (!file.contains("data_directory") || !file["data_directory"].is_string()) return damaged();
  ClusterState state{
      .catalog_address = file["catalog"], .fabric = file["fabric"], .data_directory = file["data_directory"]};
  if (!FromJson(file["supervisor"], state.supervisor)) return damaged();
  for (const json& server : file["servers"]) {
    if (!FromJson(server, state.servers.emplace_back())) return damaged();
  }
  if (!file.contains("events") || !file["events"].is_array()) return damaged();
  for (const json& event : file["events"]) {
    if (event.is_string()) state.events.push_back(event);
  }
  return state;
}

void StateDirectory::RemoveRunFiles() const {
  for (const char* name : kRunFiles) unlinkat(directory_.get(), name, 0);
}

absl::StatusOr<UniqueFd> StateDirectory::Lock() const {
  NAM_ASSIGN_OR_RETURN(UniqueFd fd, OpenFile(kLock, O_RDWR | O_CREAT));
  if (flock(fd.get(), LOCK_EX | LOCK_NB) != 0) {
    if (errno != EWOULDBLOCK) return ErrnoError(absl::StrCat(path_, "/", kLock));
    return absl::AlreadyExistsError(absl::StrCat("a cluster runs in ", path_));
  }
  return fd;
}

}  // namespace nam
