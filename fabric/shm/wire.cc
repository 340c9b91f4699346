#include "fabric/shm/wire.h"

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <poll.h>
#include <sys/random.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>
#include <vector>

#include "absl/strings/str_format.h"
#include "base/check.h"

namespace nam::fabric::shm {
namespace {

union ControlBuffer {
  cmsghdr align;
  char bytes[CMSG_SPACE(sizeof(int) * kDescriptorsMax)];
};

/// Takes ownership of all received descriptors, so that none leaks on a later error.
void TakeDescriptors(msghdr& header, std::array<UniqueFd, kDescriptorsMax>& into) {
  size_t taken = 0;
  for (cmsghdr* c = CMSG_FIRSTHDR(&header); c != nullptr; c = CMSG_NXTHDR(&header, c)) {
    if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS) continue;
    const size_t count = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    for (size_t i = 0; i < count; ++i) {
      int fd;
      std::memcpy(&fd, CMSG_DATA(c) + i * sizeof(int), sizeof(int));
      UniqueFd owned(fd);
      if (taken < into.size()) into[taken++] = std::move(owned);
    }
  }
}

template <typename Bytes>
Bytes RandomBytes() {
  Bytes bytes;
  NAM_CHECK(getrandom(bytes.data(), bytes.size(), 0) == static_cast<ssize_t>(bytes.size()), "no randomness");
  return bytes;
}

}  // namespace

absl::Status SendMessage(int socket, const Message& message, std::span<const int> descriptors) {
  NAM_CHECK(descriptors.size() <= kDescriptorsMax);
  Message copy = message;
  iovec io{&copy, sizeof(copy)};
  msghdr header{};
  header.msg_iov = &io;
  header.msg_iovlen = 1;
  ControlBuffer control{};
  if (!descriptors.empty()) {
    header.msg_control = control.bytes;
    header.msg_controllen = CMSG_SPACE(descriptors.size_bytes());
    cmsghdr* c = CMSG_FIRSTHDR(&header);
    c->cmsg_level = SOL_SOCKET;
    c->cmsg_type = SCM_RIGHTS;
    c->cmsg_len = CMSG_LEN(descriptors.size_bytes());
    std::memcpy(CMSG_DATA(c), descriptors.data(), descriptors.size_bytes());
  }
  ssize_t sent;
  do {
    sent = sendmsg(socket, &header, MSG_DONTWAIT | MSG_NOSIGNAL);
  } while (sent < 0 && errno == EINTR);
  if (sent == static_cast<ssize_t>(sizeof(copy))) return absl::OkStatus();
  return absl::UnavailableError(
      absl::StrFormat("the peer does not listen any more: %s", std::strerror(errno)));
}

absl::StatusOr<Packet> ReceiveMessage(int socket) {
  Packet packet;
  iovec io{&packet.message, sizeof(packet.message)};
  ControlBuffer control{};
  msghdr header{};
  header.msg_iov = &io;
  header.msg_iovlen = 1;
  header.msg_control = control.bytes;
  header.msg_controllen = sizeof(control.bytes);
  ssize_t received;
  do {
    received = recvmsg(socket, &header, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
  } while (received < 0 && errno == EINTR);
  if (received < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return absl::NotFoundError("nothing yet");
  if (received <= 0) return absl::UnavailableError("the peer closed the connection");
  TakeDescriptors(header, packet.descriptors);
  if ((header.msg_flags & MSG_CTRUNC) != 0) {
    return absl::ResourceExhaustedError("cannot take a peer's descriptors: raise `ulimit -n`");
  }
  if (received != static_cast<ssize_t>(sizeof(Message)) || (header.msg_flags & MSG_TRUNC) != 0 ||
      packet.message.magic != kWireMagic) {
    return absl::InvalidArgumentError("the peer does not speak this protocol");
  }
  if (packet.message.version != kWireVersion) {
    return absl::InvalidArgumentError(
        absl::StrFormat("the peer speaks version %d of the protocol, this is version %d",
                        packet.message.version, kWireVersion));
  }
  return packet;
}

absl::StatusOr<Packet> AwaitMessage(int socket, Deadline deadline) {
  while (true) {
    absl::StatusOr<Packet> packet = ReceiveMessage(socket);
    if (!absl::IsNotFound(packet.status())) return packet;
    const int64_t left_ns = deadline.ns - RealClock().NowNs();
    if (left_ns <= 0) return absl::DeadlineExceededError("no answer in time");
    pollfd waiting{socket, POLLIN, 0};
    poll(&waiting, 1, static_cast<int>(std::min<int64_t>(left_ns / 1'000'000 + 1, 60'000)));
  }
}

Message MakeRefusal(const absl::Status& status) {
  Message refusal{.type = MessageType::kRefused, .code = static_cast<uint32_t>(status.code())};
  const auto text = status.message();
  std::copy_n(text.data(), std::min(text.size(), refusal.text.size() - 1), refusal.text.data());
  return refusal;
}

absl::Status RefusalStatus(const Message& message) {
  const std::string text(message.text.data(), strnlen(message.text.data(), message.text.size()));
  const auto code = static_cast<absl::StatusCode>(message.code);
  return absl::Status(code == absl::StatusCode::kOk ? absl::StatusCode::kInternal : code, text);
}

Nonce RandomNonce() {
  return RandomBytes<Nonce>();
}
ProcessId RandomProcessId() {
  return RandomBytes<ProcessId>();
}

Mac ComputeMac(const std::string& secret, std::string_view role, const Nonce& client, const Nonce& server) {
  std::vector<uint8_t> text(role.begin(), role.end());
  text.insert(text.end(), client.begin(), client.end());
  text.insert(text.end(), server.begin(), server.end());
  Mac mac;
  unsigned length = 0;
  NAM_CHECK(HMAC(EVP_sha256(), secret.data(), static_cast<int>(secret.size()), text.data(), text.size(),
                 mac.data(), &length) != nullptr &&
            length == mac.size());
  return mac;
}

bool SameMac(const Mac& a, const Mac& b) {
  return CRYPTO_memcmp(a.data(), b.data(), a.size()) == 0;
}

}  // namespace nam::fabric::shm
