// What a peer may say over the UNIX socket: packets of any length, with and without descriptors, to the
// listening side of the handshake and to the decoders of what either side receives later.
//
//     input: records  kind:1 descriptors:1 …    0 raw    length:1 bytes
//                                               1 message  the 240 bytes, with magic and version made right
//                                               2 proof    the right answer to the last challenge

#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <memory>
#include <string>

#include "base/check.h"
#include "base/unique_fd.h"
#include "fabric/shm/handshake.h"
#include "fabric/shm/initiators.h"
#include "fabric/shm/layout.h"
#include "fabric/shm/wire.h"
#include "tests/fuzz/fuzz.h"

namespace nam::fuzz {
namespace {

using namespace fabric::shm;

constexpr char kSecret[] = "secret";

/// The region of the listening process; made once, as a fabric does.
struct Server {
  Server()
      : regions(*RegionRegistry::Create()),
        doorbells(*CreateShared("doorbells", sizeof(DoorbellPage), PeerAccess::kReadWrite, false)),
        identity{.secret = kSecret,
                 .process = RandomProcessId(),
                 .regions = regions.get(),
                 .doorbells = &doorbells,
                 .peers = &peers,
                 .initiators = &initiators} {}
  std::unique_ptr<RegionRegistry> regions;
  SharedMemory doorbells;
  PeerDirectory peers;
  Initiators initiators;
  Identity identity;
};

Server& TheServer() {
  static Server server;
  return server;
}

class Session {
 public:
  explicit Session(bool passive) : accept_(&TheServer().identity, passive) {
    int ends[2];
    NAM_CHECK(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) == 0);
    peer_.reset(ends[0]);
    own_.reset(ends[1]);
  }

  /// `choice`: how many descriptors come along, and whether they are the expected ones.
  void Send(std::span<const std::byte> bytes, uint8_t choice) {
    iovec part{const_cast<std::byte*>(bytes.data()), bytes.size()};
    alignas(cmsghdr) std::array<char, CMSG_SPACE(4 * sizeof(int))> control{};
    msghdr header{};
    header.msg_iov = &part;
    header.msg_iovlen = 1;
    const size_t count = choice % 5;
    if (count > 0) {
      header.msg_control = control.data();
      header.msg_controllen = CMSG_SPACE(count * sizeof(int));
      cmsghdr* c = CMSG_FIRSTHDR(&header);
      c->cmsg_level = SOL_SOCKET;
      c->cmsg_type = SCM_RIGHTS;
      c->cmsg_len = CMSG_LEN(count * sizeof(int));
      const int good = TheServer().doorbells.descriptor.get();
      const std::array<int, 4> fds = {good, (choice & 0x40) != 0 ? peer_.get() : good, good, good};
      std::memcpy(CMSG_DATA(c), fds.data(), count * sizeof(int));
    }
    const ssize_t sent = sendmsg(peer_.get(), &header, MSG_DONTWAIT | MSG_NOSIGNAL);
    static_cast<void>(sent);
  }
  void SendMessageBytes(std::array<uint8_t, sizeof(Message)> bytes, uint8_t choice) {
    const uint32_t magic = kWireMagic;
    std::memcpy(bytes.data() + offsetof(Message, magic), &magic, sizeof(magic));
    std::memcpy(bytes.data() + offsetof(Message, version), &kWireVersion, sizeof(kWireVersion));
    if (bytes[offsetof(Message, type)] == static_cast<uint8_t>(MessageType::kHello)) {
      std::memcpy(nonce_.data(), bytes.data() + offsetof(Message, proof), nonce_.size());
    }
    Send(std::as_bytes(std::span(bytes)), choice);
  }
  void SendProof(uint8_t choice) {
    const auto challenge = ReceiveMessage(peer_.get());
    const Nonce server = challenge.ok() ? challenge->message.proof : Nonce{};
    const Message proof{.type = MessageType::kProof,
                        .proof = ComputeMac(kSecret, kClientRole, nonce_, server)};
    Send(std::as_bytes(std::span(&proof, 1)), choice);
  }
  /// Does what the service thread does with a readable socket.
  void Serve() {
    while (!closed_) {
      auto packet = ReceiveMessage(own_.get());
      if (absl::IsNotFound(packet.status())) return;
      closed_ = !packet.ok();
      if (closed_) return;
      const absl::Status refusal = RefusalStatus(packet->message);
      NAM_CHECK(!refusal.ok() && refusal.message().size() <= packet->message.text.size());
      closed_ = !accept_.Step(own_.get(), *packet).ok();
      if (!closed_ && accept_.done()) Established(*packet);
    }
  }

 private:
  /// Later messages carry regions: descriptors that a peer made up must not be mapped.
  void Established(Packet& packet) {
    const auto& peer = accept_.established().peer;
    if (peer == nullptr) return;
    packet.message.bytes %= 1 << 20;
    const auto rights =
        static_cast<fabric::Access>(packet.message.access & static_cast<uint8_t>(fabric::Access::kAll));
    peer->Insert(packet.message.rkey, rights, packet).status().IgnoreError();
  }

  UniqueFd peer_;
  UniqueFd own_;
  Nonce nonce_{};
  AcceptHandshake accept_;
  bool closed_ = false;
};

std::string Record(const Message& message, uint8_t descriptors) {
  std::string record{'\1', static_cast<char>(descriptors)};
  Append(record, message);
  return record;
}

}  // namespace

std::vector<std::string> Seeds() {
  const std::string passive(1, '\0'), active(1, '\1');
  const std::string hello = Record({.type = MessageType::kHello}, 0);
  const std::string proof{'\2', '\0'};
  const std::string attach = Record({.type = MessageType::kAttach, .bytes = 4096, .access = 7}, 2);
  const std::string refusal = Record(MakeRefusal(absl::UnavailableError("no")), 0);
  return {passive + hello + proof + attach, active + hello + proof + attach,
          active + hello + proof + Record({.type = MessageType::kAttach}, 0x42), refusal,
          active + proof + hello};
}

}  // namespace nam::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace nam::fuzz;
  Input input(data, size);
  Session session(input.Byte() % 2 == 0);
  for (int records = 0; !input.empty() && records < 16; ++records) {
    const uint8_t kind = input.Byte(), descriptors = input.Byte();
    if (kind % 3 == 0) {
      session.Send(input.Bytes(input.Byte()), descriptors);
    } else if (kind % 3 == 1) {
      session.SendMessageBytes(input.Consume<std::array<uint8_t, sizeof(nam::fabric::shm::Message)>>(),
                               descriptors);
    } else {
      session.SendProof(descriptors);
    }
    session.Serve();
  }
  return 0;
}
