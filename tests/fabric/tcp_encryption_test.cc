#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "base/mutex.h"
#include "base/unique_fd.h"
#include "fabric/net/sealed_stream.h"
#include "fabric/tcp/tcp_fabric.h"
#include "tests/fabric/tcp_connection.h"

/// The view of an attacker between two processes, and the effect of edits.
namespace nam::fabric {
namespace {

constexpr size_t kRelayedBytes = 64 << 10;
constexpr int kRelayTimeoutMs = 60'000;  // a hang guard

using Bytes = std::vector<std::byte>;
/// The replacement of a record, the `number`-th after the handshake in its direction.
using Edit = std::function<std::vector<Bytes>(size_t number, Bytes record)>;

std::unique_ptr<Fabric> OpenWithEncryption(bool encrypt) {
  return OpenTcp({.kind = Kind::kTcp, .secret = kSecret, .peer_timeout_us = 10'000'000, .encrypt = encrypt})
      .value();
}

/// Carries one connection to a server. Only with encryption, it finds records and edits them.
class Relay {
 public:
  explicit Relay(const std::string& server) : server_(server) {
    listening_.reset(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_in at = Address(0);
    socklen_t length = sizeof(at);
    EXPECT_EQ(bind(listening_.get(), reinterpret_cast<sockaddr*>(&at), sizeof(at)), 0);
    EXPECT_EQ(listen(listening_.get(), 4), 0);
    getsockname(listening_.get(), reinterpret_cast<sockaddr*>(&at), &length);
    address_ = "127.0.0.1:" + std::to_string(ntohs(at.sin_port));
  }
  ~Relay() {
    if (thread_.joinable()) thread_.join();
  }
  const std::string& address() const { return address_; }
  /// From now on, for one connection.
  void Start(Edit to_server, Edit to_client) {
    thread_ = std::thread([this, to_server, to_client] {
      const UniqueFd client(accept(listening_.get(), nullptr, nullptr));
      const UniqueFd server(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
      const sockaddr_in to = Address(std::stoi(server_.substr(server_.rfind(':') + 1)));
      if (connect(server.get(), reinterpret_cast<const sockaddr*>(&to), sizeof(to)) != 0) return;
      Direction there{client.get(), server.get(), sizeof(net::ClientHello) + sizeof(net::ClientProof),
                      to_server};
      Direction back{server.get(), client.get(), sizeof(net::ServerChallenge) + sizeof(net::ServerProof),
                     to_client};
      pollfd ends[] = {{client.get(), POLLIN, 0}, {server.get(), POLLIN, 0}};
      while (poll(ends, 2, kRelayTimeoutMs) > 0) {
        if (ends[0].revents != 0 && !Pass(there)) return;
        if (ends[1].revents != 0 && !Pass(back)) return;
      }
    });
  }
  bool Saw(const Bytes& text) {
    const MutexLock lock(mutex_);
    return std::search(seen_.begin(), seen_.end(), text.begin(), text.end()) != seen_.end();
  }

 private:
  struct Direction {
    int from, to;
    size_t handshake;  // bytes of it still to come
    Edit edit;
    Bytes waiting{};
    size_t number = 0;
  };
  static sockaddr_in Address(int port) {
    sockaddr_in at{};
    at.sin_family = AF_INET;
    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    at.sin_port = htons(static_cast<uint16_t>(port));
    return at;
  }
  static bool SendAll(int fd, const Bytes& bytes) {
    return send(fd, bytes.data(), bytes.size(), MSG_NOSIGNAL) == static_cast<ssize_t>(bytes.size());
  }
  /// False: the connection is over.
  bool Pass(Direction& way) {
    Bytes arrived(64 << 10);
    const ssize_t got = recv(way.from, arrived.data(), arrived.size(), 0);
    if (got <= 0) return false;
    arrived.resize(static_cast<size_t>(got));
    {
      const MutexLock lock(mutex_);
      seen_.insert(seen_.end(), arrived.begin(), arrived.end());
    }
    if (way.edit == nullptr) return SendAll(way.to, arrived);
    const size_t plain = std::min(way.handshake, arrived.size());
    way.handshake -= plain;
    const auto begin = arrived.begin() + static_cast<ptrdiff_t>(plain);
    if (plain > 0 && !SendAll(way.to, Bytes(arrived.begin(), begin))) return false;
    way.waiting.insert(way.waiting.end(), begin, arrived.end());
    while (way.waiting.size() >= 4) {
      const size_t bytes =
          net::RecordCipher::RecordBytes(std::span<const std::byte, 4>(way.waiting.data(), 4));
      if (bytes == 0 || way.waiting.size() < bytes) break;
      const auto end = way.waiting.begin() + static_cast<ptrdiff_t>(bytes);
      Bytes record(way.waiting.begin(), end);
      way.waiting.erase(way.waiting.begin(), end);
      for (const Bytes& edited : way.edit(way.number++, std::move(record))) {
        if (!SendAll(way.to, edited)) return false;
      }
    }
    return true;
  }

  const std::string server_;
  UniqueFd listening_;
  std::string address_;
  Mutex mutex_;
  Bytes seen_;
  std::thread thread_;
};

class TcpEncryptionTest : public testing::Test {
 protected:
  void Start(bool encrypt) {
    server_ = OpenWithEncryption(encrypt);
    client_ = OpenWithEncryption(encrypt);
    region_ = server_->Allocate(kRelayedBytes, {.huge_pages = false}).value();
    local_ = client_->Allocate(kRelayedBytes, {.huge_pages = false}).value();
    listener_ = server_->Listen({.address = "127.0.0.1:0"}).value();
    queue_ = client_->CreateCompletionQueue(1024).value();
    relay_ = std::make_unique<Relay>(listener_->address());
  }
  void Connect(Edit to_server = nullptr, Edit to_client = nullptr) {
    relay_->Start(std::move(to_server), std::move(to_client));
    auto pair = client_->Connect(relay_->address(), *queue_, {}, Soon());
    ASSERT_TRUE(pair.ok()) << pair.status();
    pair_ = *std::move(pair);
  }
  void TearDown() override {
    pair_.reset();
    relay_.reset();
  }
  Completion Next() {
    Completion completion{.status = CompletionStatus::kLocalError};
    EXPECT_EQ(queue_->Wait({&completion, 1}, Soon()), 1u);
    return completion;
  }
  Completion Run(const WorkRequest& request) {
    EXPECT_TRUE(pair_->Post({&request, 1}).ok());
    return Next();
  }
  WorkRequest Write(std::byte value) {
    std::fill_n(local_->data(), 8, value);
    return WorkRequest::Write(1, local_->Slice(0, 8), {region_->rkey(), 0});
  }
  WorkRequest Read() { return WorkRequest::Read(2, local_->Slice(8, 8), {region_->rkey(), 0}); }

  std::unique_ptr<Fabric> server_, client_;
  std::unique_ptr<MemoryRegion> region_, local_;
  std::unique_ptr<Listener> listener_;
  std::unique_ptr<CompletionQueue> queue_;
  std::unique_ptr<Relay> relay_;
  std::unique_ptr<QueuePair> pair_;
};

Bytes Text(const char* text) {
  const auto* bytes = reinterpret_cast<const std::byte*>(text);
  return Bytes(bytes, bytes + std::strlen(text));
}

TEST_F(TcpEncryptionTest, NobodyOnTheWayReadsWhatIsMoved) {
  const Bytes written = Text("what a client has written there"), held = Text("what the server has held");
  for (const bool encrypt : {false, true}) {
    Start(encrypt);
    Connect();
    std::copy(written.begin(), written.end(), local_->data());
    std::copy(held.begin(), held.end(), region_->data() + 1'024);
    const auto bytes = static_cast<uint32_t>(written.size());
    EXPECT_TRUE(Run(WorkRequest::Write(1, local_->Slice(0, bytes), {region_->rkey(), 0})).ok());
    EXPECT_TRUE(Run(WorkRequest::Read(2, local_->Slice(4'096, 64), {region_->rkey(), 1'024})).ok());
    EXPECT_TRUE(std::equal(written.begin(), written.end(), region_->data()));
    EXPECT_TRUE(std::equal(held.begin(), held.end(), local_->data() + 4'096));
    EXPECT_EQ(relay_->Saw(written), !encrypt);
    EXPECT_EQ(relay_->Saw(held), !encrypt);
    TearDown();
  }
}

// Each edits the second of three records, with one WRITE each, on their way to the server.
TEST_F(TcpEncryptionTest, WhatWasChangedOnTheWayIsNotExecuted) {
  const auto flip = [](size_t at) {
    return [at](size_t number, Bytes record) {
      if (number == 1) record[std::min(at, record.size() - 1)] ^= std::byte{1};
      return std::vector<Bytes>{record};
    };
  };
  const Edit leave_out = [](size_t number, Bytes record) {
    return number == 1 ? std::vector<Bytes>{} : std::vector<Bytes>{record};
  };
  const Edit repeat = [](size_t number, Bytes record) {
    return number == 1 ? std::vector<Bytes>{record, record} : std::vector<Bytes>{record};
  };
  const Edit swap = [held = std::make_shared<Bytes>()](size_t number, Bytes record) {
    if (number == 1) *held = record;
    if (number == 1) return std::vector<Bytes>{};
    return number == 2 ? std::vector<Bytes>{record, *held} : std::vector<Bytes>{record};
  };
  struct Case {
    const char* name;
    Edit edit;
    std::byte left;  // the server's byte afterwards
  };
  for (const Case& c :
       {Case{"a bit of its length", flip(0), std::byte{1}}, Case{"a bit of its text", flip(10), std::byte{1}},
        Case{"a bit of its tag", flip(kRelayedBytes), std::byte{1}},
        Case{"left out", leave_out, std::byte{1}}, Case{"repeated", repeat, std::byte{2}},
        Case{"after its successor", swap, std::byte{1}}}) {
    SCOPED_TRACE(c.name);
    Start(true);
    Connect(c.edit);
    EXPECT_TRUE(Run(Write(std::byte{1})).ok());
    // One record each; the second may stay unanswered, so the third one shows that it was omitted.
    const WorkRequest second = Write(std::byte{2});
    ASSERT_TRUE(pair_->Post({&second, 1}).ok());
    WorkRequest third = WorkRequest::Write(3, local_->Slice(0, 8), {region_->rkey(), 64});
    ASSERT_TRUE(pair_->Post({&third, 1}).ok());
    Completion completion = Next();
    if (c.left == std::byte{2}) completion = Next();
    EXPECT_EQ(completion.status, CompletionStatus::kPeerLost);
    EXPECT_EQ(pair_->state(), QueuePairState::kError);
    EXPECT_EQ(region_->data()[0], c.left);
    EXPECT_EQ(region_->data()[64], std::byte{0});
    TearDown();
  }
}

TEST_F(TcpEncryptionTest, RepliesThatWereForgedEndTheConnectionAndAreNamed) {
  Bytes request;
  const Edit remember = [&request](size_t, Bytes record) {
    request = record;
    return std::vector<Bytes>{record};
  };
  const Edit flip = [](size_t number, Bytes record) {
    if (number == 1) record[10] ^= std::byte{1};
    return std::vector<Bytes>{record};
  };
  // The keys of the two directions differ.
  const Edit reflect = [&request](size_t number, Bytes record) {
    return std::vector<Bytes>{number == 1 ? request : record};
  };
  for (const Edit& edit : {flip, reflect}) {
    Start(true);
    Connect(remember, edit);
    EXPECT_TRUE(Run(Write(std::byte{1})).ok());
    const Completion completion = Run(Read());
    EXPECT_EQ(completion.status, CompletionStatus::kPeerLost);
    const absl::Status error = CompletionError(completion, *pair_);
    EXPECT_NE(std::string(error.message()).find("forged"), std::string::npos) << error;
    TearDown();
  }
}

// Requests are numbered, too; but an unnumbered record would be sealed twice under one nonce.
TEST(RecordCipherTest, RecordsOpenOnceAndInTheirPlace) {
  using net::RecordCipher;
  net::StreamKeys::Key key{};
  key.fill(7);
  RecordCipher seal(key, RecordCipher::Direction::kSeal);
  Bytes text = Text("the same twice");
  const iovec part{text.data(), text.size()};
  std::array<Bytes, 2> records;
  for (Bytes& record : records) {
    record.resize(text.size() + RecordCipher::kOverheadBytes);
    ASSERT_EQ(seal.Seal({&part, 1}, record), record.size());
  }
  EXPECT_NE(records[0], records[1]);
  // True if the last of `order` opens, after the first ones did.
  const auto opens = [&](const std::vector<size_t>& order) {
    RecordCipher open(key, RecordCipher::Direction::kOpen);
    bool opened = false;
    for (const size_t at : order) {
      Bytes record = records[at];
      opened = open.Open(record);
      if (!opened) continue;
      EXPECT_TRUE(std::equal(text.begin(), text.end(), record.begin() + RecordCipher::kHeaderBytes));
    }
    return opened;
  };
  EXPECT_TRUE(opens({0}));
  EXPECT_TRUE(opens({0, 1}));
  EXPECT_FALSE(opens({1})) << "the first one was left out";
  EXPECT_FALSE(opens({0, 0})) << "repeated";
}

TEST_F(TcpEncryptionTest, BothSidesEncryptOrNeitherDoes) {
  for (const bool encrypt : {false, true}) {
    Start(encrypt);
    const auto other = OpenWithEncryption(!encrypt);
    const auto queue = other->CreateCompletionQueue(1024).value();
    const absl::Status refused = other->Connect(listener_->address(), *queue, {}, Soon()).status();
    EXPECT_EQ(refused.code(), absl::StatusCode::kFailedPrecondition) << refused;
    EXPECT_NE(std::string(refused.message()).find("--encrypt"), std::string::npos) << refused;
    TearDown();
  }
}

}  // namespace
}  // namespace nam::fabric
