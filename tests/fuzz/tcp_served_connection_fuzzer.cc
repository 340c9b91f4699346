// A peer that has authenticated and then sends anything, in any pieces: the connection that serves it must
// keep to the regions and rights that it was given, and answer the requests that it has executed.
//
//     input: records  kind:1 …    0 raw      length:1 bytes
//                                 1 frame    the 48 bytes of a request, with magic and sequence made right
//                                 2 receive  capacity:2, posted
//                                 3 read     what the connection has answered is taken
//                                 4 retire   the writable region goes

#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <memory>
#include <string>
#include <vector>

#include "base/check.h"
#include "base/unique_fd.h"
#include "fabric/tcp/served_connection.h"
#include "tests/fuzz/fuzz.h"

namespace nam::fuzz {
namespace {

using namespace fabric::tcp;
using fabric::Access;
using fabric::Opcode;
using fabric::net::Stream;

constexpr size_t kRegionBytes = 4096;
constexpr std::byte kUntouched{0xa5};
constexpr uint32_t kReceiveDepth = 4;
constexpr int kTurnsMax = 64;

/// Three consecutive regions: one with all rights, one read-only, and one that is not registered.
struct Memory {
  alignas(64) std::array<std::byte, kRegionBytes> shared;
  alignas(64) std::array<std::byte, kRegionBytes> read_only;
  alignas(64) std::array<std::byte, kRegionBytes> own;
};

class Session {
 public:
  Session() {
    std::memset(static_cast<void*>(&memory_), static_cast<int>(kUntouched), sizeof(memory_));
    int ends[2];
    NAM_CHECK(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) == 0);
    peer_.reset(ends[0]);
    const auto add = [&](std::array<std::byte, kRegionBytes>& bytes, Access access) {
      return *regions_.Register({bytes.data(), bytes.size(), access});
    };
    shared_key_ = add(memory_.shared, Access::kAll);
    read_key_ = add(memory_.read_only, Access::kRead);
    receives_ = std::make_shared<ReceiveQueue>(1, kReceiveDepth, std::make_shared<Doorbell>());
    receives_->SetResume([this] { resumed_ = true; });
    connection_ = std::make_unique<ServedConnection>(Stream(UniqueFd(ends[1]), {}, Stream::Side::kServer),
                                                     regions_, receives_, Access::kAll);
  }

  void SendRaw(std::span<const std::byte> bytes) { Send(bytes); }
  void SendFrame(RequestHeader header) {
    header.magic = kRequestMagic;
    header.zero = 0;
    header.zero2 = 0;
    header.sequence = sequence_++;
    // Keys and lengths that are valid; the fuzzer finds the others by raw records.
    header.rkey = header.rkey % 3 == 0 ? shared_key_ : header.rkey % 3 == 1 ? read_key_ : header.rkey;
    header.bytes %= 2 * kRegionBytes;
    Send({reinterpret_cast<const std::byte*>(&header), sizeof(header)});
  }
  void PostReceive(uint32_t capacity_bytes) {
    const fabric::ReceiveRequest receive{
        1, {memory_.shared.data(), std::min<uint32_t>(capacity_bytes, kRegionBytes), {shared_key_}}};
    receives_->Post({&receive, 1}).IgnoreError();
    std::array<fabric::Completion, kReceiveDepth> taken;
    receives_->Pop(taken);
  }
  void RetireShared() {
    if (retired_) return;
    retired_ = true;
    regions_.Retire(shared_key_);
    connection_->ReleaseRegion(shared_key_);
    at_retirement_ = memory_.shared;
  }
  void TakeReplies() {
    std::array<std::byte, 4096> bytes;
    while (recv(peer_.get(), bytes.data(), bytes.size(), MSG_DONTWAIT) > 0) {
    }
  }
  /// Runs the connection as a NIC thread does, a bounded number of times: one that always wants another turn
  /// is stuck.
  void Serve() {
    if (closed_) return;
    int turns = 0;
    ServedConnection::Want want;
    while ((want = connection_->Serve()) == ServedConnection::Want::kTurn) {
      NAM_CHECK(++turns < kTurnsMax, "turns without end");
    }
    closed_ = want == ServedConnection::Want::kClose;
  }
  void CheckMemory() const {
    const auto untouched = [](std::byte b) { return b == kUntouched; };
    NAM_CHECK(std::all_of(memory_.read_only.begin(), memory_.read_only.end(), untouched),
              "wrote read-only bytes");
    NAM_CHECK(std::all_of(memory_.own.begin(), memory_.own.end(), untouched), "wrote outside of all regions");
    NAM_CHECK(!retired_ || memory_.shared == at_retirement_, "wrote a region after it was retired");
  }
  void End() {
    if (connection_ != nullptr) connection_->Abort(fabric::CompletionStatus::kPeerLost);
    connection_.reset();
  }

 private:
  void Send(std::span<const std::byte> bytes) {
    const ssize_t sent = send(peer_.get(), bytes.data(), bytes.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
    static_cast<void>(sent);  // a full socket is one more thing that a peer may do
  }

  Memory memory_;
  std::array<std::byte, kRegionBytes> at_retirement_;
  UniqueFd peer_;
  Regions regions_;
  uint32_t shared_key_ = 0;
  uint32_t read_key_ = 0;
  uint32_t sequence_ = 0;
  bool resumed_ = false;
  bool retired_ = false;
  bool closed_ = false;
  std::shared_ptr<ReceiveQueue> receives_;
  std::unique_ptr<ServedConnection> connection_;
};

void RunRecord(Session& session, Input& input) {
  switch (input.Byte() % 5) {
    case 0:
      session.SendRaw(input.Bytes(input.Byte()));
      break;
    case 1: {
      // Passed as raw bytes: an opcode must not become one before it was checked.
      auto bytes = input.Consume<std::array<uint8_t, sizeof(RequestHeader)>>();
      bytes[offsetof(RequestHeader, opcode)] %= 6;
      RequestHeader header;
      std::memcpy(&header, bytes.data(), sizeof(header));
      session.SendFrame(header);
      break;
    }
    case 2:
      session.PostReceive(input.Consume<uint16_t>());
      break;
    case 3:
      session.TakeReplies();
      break;
    default:
      session.RetireShared();
  }
}

std::string Frame(RequestHeader header, const std::string& payload = "") {
  std::string record(1, '\1');
  Append(record, header);
  if (!payload.empty()) record += std::string(1, '\0') + static_cast<char>(payload.size()) + payload;
  return record;
}

}  // namespace

std::vector<std::string> Seeds() {
  const std::string receive{'\2', '\x40', '\0'};
  const std::string replies(1, '\3'), retire(1, '\4');
  const std::string read = Frame({.opcode = Opcode::kRead, .bytes = 4096});
  const std::string write = Frame({.opcode = Opcode::kWrite, .bytes = 16, .offset = 8}, "0123456789abcdef");
  const std::string add = Frame({.opcode = Opcode::kFetchAdd, .bytes = 8, .offset = 16, .swap_or_add = 1});
  const std::string send = Frame({.opcode = Opcode::kSend, .bytes = 5}, "hello");
  const std::string immediate =
      Frame({.opcode = Opcode::kWriteWithImmediate, .bytes = 4, .immediate = 9}, "four");
  const std::string refused = Frame({.opcode = Opcode::kWrite, .rkey = 1, .bytes = 4}, "none");
  return {read + replies + write + add,
          receive + send + receive + immediate + replies,
          send + receive + replies,
          Frame({.opcode = Opcode::kWrite, .bytes = 32}, "half of it") + retire + replies,
          read + retire + replies,
          refused + read,
          Frame({.opcode = Opcode::kCompareAndSwap, .bytes = 8, .offset = 4092})};
}

}  // namespace nam::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  nam::fuzz::Input input(data, size);
  nam::fuzz::Session session;
  for (int records = 0; !input.empty() && records < 64; ++records) {
    nam::fuzz::RunRecord(session, input);
    session.Serve();
  }
  session.CheckMemory();
  session.End();
  session.CheckMemory();
  return 0;
}
