#pragma once

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <cstdlib>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_format.h"
#include "base/unique_fd.h"
#include "tests/fabric/provider.h"

namespace nam::fabric::conformance {

/// The common part of providers whose peers connect to a TCP port of an IPv4 address.
class SocketProvider : public Provider {
 public:
  explicit SocketProvider(std::string host) : host_(std::move(host)) {}

  std::string ListenAddress() override { return host_ + ":0"; }

  /// A port that was free a moment ago.
  std::string DeadAddress() override {
    UniqueFd fd(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_in address = SocketAddress(0);
    socklen_t bytes = sizeof(address);
    bind(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address));
    getsockname(fd.get(), reinterpret_cast<sockaddr*>(&address), &bytes);
    return absl::StrFormat("%s:%d", host_, ntohs(address.sin_port));
  }

  std::vector<std::shared_ptr<void>> Harass(const std::string& address, const std::string& junk) override {
    const sockaddr_in to = SocketAddress(std::atoi(address.substr(address.rfind(':') + 1).c_str()));
    std::vector<std::shared_ptr<void>> sockets;
    for (int i = 0; i < 20; ++i) {
      UniqueFd fd(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
      if (connect(fd.get(), reinterpret_cast<const sockaddr*>(&to), sizeof(to)) != 0) continue;
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
    return names;
  }

 private:
  sockaddr_in SocketAddress(int port) const {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(static_cast<uint16_t>(port));
    inet_pton(AF_INET, host_.c_str(), &address.sin_addr);
    return address;
  }

  const std::string host_;
};

}  // namespace nam::fabric::conformance
