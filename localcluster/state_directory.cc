#include "localcluster/state_directory.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/status_macros.h"
#include "nlohmann/json.hpp"

namespace nam {
namespace {

using nlohmann::json;

constexpr int kStateVersion = 1;
constexpr size_t kSecretBytes = 32;

absl::Status Errno(const std::string& what) {
  const int error = errno;
  return absl::InternalError(absl::StrCat(what, ": ", std::strerror(error)));
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

/// Writes a file of mode 0600 in one step.
absl::Status ReplaceFile(const std::string& path, const std::string& text) {
  const std::string fresh = path + ".new";
  unlink(fresh.c_str());
  UniqueFd fd(open(fresh.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
  if (!fd.valid()) return Errno(absl::StrCat("cannot write ", fresh));
  if (write(fd.get(), text.data(), text.size()) != static_cast<ssize_t>(text.size())) {
    return Errno(absl::StrCat("cannot write ", fresh));
  }
  if (rename(fresh.c_str(), path.c_str()) != 0) return Errno(absl::StrCat("cannot write ", path));
  return absl::OkStatus();
}

absl::StatusOr<std::string> ReadFile(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) {
    const int error = errno;
    return absl::NotFoundError(absl::StrCat("cannot read ", path, ": ", std::strerror(error)));
  }
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

json ToJson(const ClusterState::Server& server) {
  return {{"name", server.name}, {"pid", server.pid}, {"start_time", server.start_time}};
}

bool FromJson(const json& from, ClusterState::Server& server) {
  if (!from.is_object()) return false;
  const auto name = from.find("name"), pid = from.find("pid"), start = from.find("start_time");
  if (name == from.end() || !name->is_string() || pid == from.end() || !pid->is_number_integer() ||
      start == from.end() || !start->is_number_unsigned()) {
    return false;
  }
  server = {*name, pid->get<pid_t>(), start->get<uint64_t>()};
  return server.pid > 1;  // kill() takes others for groups
}

}  // namespace

std::string DefaultStateDirectory() {
  const std::string runtime = RuntimeDirectory();
  return runtime.empty() ? absl::StrCat("/tmp/nam-", geteuid()) : runtime + "/nam";
}

absl::Status EnsurePrivateDirectory(const std::string& path) {
  std::error_code error;
  const std::filesystem::path parent = std::filesystem::path(path).parent_path();
  if (!parent.empty()) std::filesystem::create_directories(parent, error);
  if (mkdir(path.c_str(), 0700) != 0 && errno != EEXIST) return Errno(absl::StrCat("cannot create ", path));
  struct stat info;
  if (lstat(path.c_str(), &info) != 0) return Errno(path);
  if (!S_ISDIR(info.st_mode) || info.st_uid != geteuid() || (info.st_mode & 077) != 0) {
    return absl::FailedPreconditionError(
        absl::StrCat(path,
                     " must be a directory of yours that nobody else may enter; choose another by "
                     "--state-dir or `chmod 700` it"));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::string> CreateTemporaryDirectory(const std::string& prefix) {
  const std::string runtime = RuntimeDirectory();
  std::string path = absl::StrCat(runtime.empty() ? "/tmp" : runtime, "/", prefix, "XXXXXX");
  if (mkdtemp(path.data()) == nullptr) return Errno(absl::StrCat("cannot create ", path));
  return path;
}

void RemoveTree(const std::string& path) {
  std::error_code ignored;
  std::filesystem::remove_all(path, ignored);
}

absl::Status WriteFreshSecret(const std::string& path) {
  unsigned char bytes[kSecretBytes];
  if (getrandom(bytes, sizeof bytes, 0) != static_cast<ssize_t>(sizeof bytes)) return Errno("getrandom");
  std::string text;
  for (const unsigned char byte : bytes) text += absl::StrFormat("%02x", byte);
  return ReplaceFile(path, text + "\n");
}

absl::StatusOr<std::string> ReadSecret(const std::string& path) {
  struct stat info;
  if (stat(path.c_str(), &info) != 0) {
    const int error = errno;
    return absl::NotFoundError(absl::StrCat("cannot read the secret ", path, ": ", std::strerror(error)));
  }
  if ((info.st_mode & 077) != 0) {
    return absl::FailedPreconditionError(
        absl::StrCat("others may read the secret ", path, "; `chmod 600` it, or better, make a new one"));
  }
  NAM_ASSIGN_OR_RETURN(std::string text, ReadFile(path));
  while (!text.empty() && (text.back() == '\n' || text.back() == '\r')) text.pop_back();
  if (text.empty()) return absl::FailedPreconditionError(absl::StrCat("the secret ", path, " is empty"));
  return text;
}

std::string StateFile(const std::string& directory) {
  return directory + "/cluster.json";
}
std::string SecretFile(const std::string& directory) {
  return directory + "/secret";
}

absl::Status SaveState(const std::string& directory, const ClusterState& state) {
  json servers = json::array();
  for (const ClusterState::Server& server : state.servers) servers.push_back(ToJson(server));
  const json file = {{"version", kStateVersion},
                     {"catalog", state.catalog_address},
                     {"fabric", state.fabric},
                     {"supervisor", ToJson(state.supervisor)},
                     {"servers", servers}};
  return ReplaceFile(StateFile(directory), file.dump(2, ' ', false, json::error_handler_t::replace) + "\n");
}

absl::StatusOr<ClusterState> LoadState(const std::string& directory) {
  NAM_ASSIGN_OR_RETURN(const std::string text, ReadFile(StateFile(directory)));
  const auto damaged = [&] { return absl::DataLossError(absl::StrCat(StateFile(directory), " is damaged")); };
  const json file = json::parse(text, nullptr, false);
  if (!file.is_object() || !file.contains("catalog") || !file.contains("fabric") ||
      !file.contains("supervisor") || !file.contains("servers") || !file["catalog"].is_string() ||
      !file["fabric"].is_string() || !file["servers"].is_array()) {
    return damaged();
  }
  ClusterState state{.catalog_address = file["catalog"], .fabric = file["fabric"]};
  if (!FromJson(file["supervisor"], state.supervisor)) return damaged();
  for (const json& server : file["servers"]) {
    if (!FromJson(server, state.servers.emplace_back())) return damaged();
  }
  return state;
}

void RemoveRunFiles(const std::string& directory) {
  std::error_code ignored;
  for (const auto& entry : std::filesystem::directory_iterator(directory, ignored)) {
    const std::string name = entry.path().filename();
    if (name != "lock" && name.find(".log") == std::string::npos)
      std::filesystem::remove_all(entry.path(), ignored);
  }
}

absl::StatusOr<UniqueFd> LockDirectory(const std::string& directory) {
  const std::string path = directory + "/lock";
  UniqueFd fd(open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
  if (!fd.valid()) return Errno(absl::StrCat("cannot open ", path));
  if (flock(fd.get(), LOCK_EX | LOCK_NB) != 0) {
    if (errno != EWOULDBLOCK) return Errno(path);
    return absl::FailedPreconditionError(absl::StrCat("a cluster runs in ", directory));
  }
  return fd;
}

}  // namespace nam
