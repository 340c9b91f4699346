#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <atomic>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "absl/strings/str_format.h"
#include "base/unique_fd.h"
#include "tests/fabric/provider.h"

namespace nam::fabric::conformance {
namespace {

class ShmProvider final : public Provider {
 public:
  absl::StatusOr<std::unique_ptr<Fabric>> Open(const std::string& secret) override {
    return fabric::Open({.kind = Kind::kShm, .secret = secret});
  }
  std::string ListenAddress() override {
    static std::atomic<int> next{0};
    return absl::StrFormat("@nam-test-%d-%d", getpid(), next.fetch_add(1));
  }
  std::string DeadAddress() override { return ListenAddress(); }

  std::vector<std::shared_ptr<void>> Harass(const std::string& address, const std::string& junk) override {
    std::vector<std::shared_ptr<void>> sockets;
    for (int i = 0; i < 20; ++i) {
      UniqueFd fd(socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
      sockaddr_un to{.sun_family = AF_UNIX};
      std::memcpy(to.sun_path, address.data(), address.size());
      to.sun_path[0] = '\0';
      const auto bytes = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + address.size());
      if (connect(fd.get(), reinterpret_cast<const sockaddr*>(&to), bytes) != 0) continue;
      if (!junk.empty()) send(fd.get(), junk.data(), junk.size(), MSG_NOSIGNAL);
      sockets.push_back(std::make_shared<UniqueFd>(std::move(fd)));
    }
    return sockets;
  }

  std::vector<std::string> NamesOf(int pid) override {
    std::vector<std::string> names;
    for (const auto& entry : std::filesystem::directory_iterator("/dev/shm")) {
      const std::string name = entry.path().filename();
      if (name.find("nam") != std::string::npos && name.find(std::to_string(pid)) != std::string::npos)
        names.push_back(entry.path());
    }
    std::ifstream sockets("/proc/net/unix");
    for (std::string line; std::getline(sockets, line);) {
      if (const size_t at = line.find(absl::StrFormat("@nam-test-%d-", pid)); at != std::string::npos)
        names.push_back(line.substr(at));
    }
    return names;
  }
};

}  // namespace

Provider& CurrentProvider() {
  static ShmProvider provider;
  return provider;
}

}  // namespace nam::fabric::conformance
