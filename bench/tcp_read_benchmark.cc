// READs over the tcp fabric against a plain TCP socket pair that answers requests of the same size
// with the same number in flight, both on loopback and each with one serving thread.

#include <arpa/inet.h>
#include <benchmark/benchmark.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <array>
#include <cstring>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include "base/check.h"
#include "base/unique_fd.h"
#include "fabric/tcp/tcp_fabric.h"
#include "fabric/tcp/wire.h"

namespace nam::fabric {
namespace {

constexpr size_t kServedBytes = 16u << 20;

// Arguments: bytes of a READ, READs in flight.
void BM_TcpRead(benchmark::State& state) {
  const auto bytes = static_cast<uint32_t>(state.range(0));
  const auto in_flight = static_cast<uint32_t>(state.range(1));
  const FabricOptions options{.kind = Kind::kTcp, .secret = "benchmark"};
  const auto server = OpenTcp(options).value();
  const auto client = OpenTcp(options).value();
  const auto region = server->Allocate(kServedBytes, {.populate = true}).value();
  const auto local = client->Allocate(size_t{bytes} * in_flight, {.populate = true}).value();
  const auto listener = server->Listen({.address = "127.0.0.1:0"}).value();
  const auto queue = client->CreateCompletionQueue(256).value();
  const auto pair =
      client->Connect(listener->address(), *queue, {}, client->clock().After(5'000'000)).value();
  uint64_t posted = 0;
  std::vector<WorkRequest> batch;
  const auto add = [&](uint64_t slot) {
    const RemoteAddress from{region->rkey(), posted++ * bytes % (kServedBytes - bytes) / 8 * 8};
    batch.push_back(WorkRequest::Read(slot, local->Slice(slot * bytes, bytes), from));
  };
  for (uint32_t i = 0; i < in_flight; ++i) add(i);
  NAM_CHECK(pair->Post(batch).ok());
  std::array<Completion, 64> done;
  // One iteration is one READ, however many complete together.
  size_t taken = 0;
  for (auto _ : state) {
    if (taken == 0) {
      taken = queue->Wait(done, client->clock().After(5'000'000));
      NAM_CHECK(taken > 0);
      batch.clear();
      for (size_t i = 0; i < taken; ++i) add(done[i].id);
      NAM_CHECK(pair->Post(batch).ok());
    }
    --taken;
  }
  state.SetBytesProcessed(state.iterations() * bytes);
}

std::pair<UniqueFd, UniqueFd> TcpSocketPair() {
  const UniqueFd listener(socket(AF_INET, SOCK_STREAM, 0));
  sockaddr_in at{};
  at.sin_family = AF_INET;
  at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t length = sizeof(at);
  NAM_CHECK(bind(listener.get(), reinterpret_cast<sockaddr*>(&at), sizeof(at)) == 0);
  NAM_CHECK(listen(listener.get(), 1) == 0);
  NAM_CHECK(getsockname(listener.get(), reinterpret_cast<sockaddr*>(&at), &length) == 0);
  UniqueFd client(socket(AF_INET, SOCK_STREAM, 0));
  NAM_CHECK(connect(client.get(), reinterpret_cast<sockaddr*>(&at), sizeof(at)) == 0);
  UniqueFd server(accept(listener.get(), nullptr, nullptr));
  const int on = 1;
  setsockopt(client.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
  setsockopt(server.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
  return {std::move(client), std::move(server)};
}

bool SendWhole(int fd, const char* data, size_t bytes) {
  while (bytes > 0) {
    const ssize_t sent = send(fd, data, bytes, MSG_NOSIGNAL);
    if (sent <= 0) return false;
    data += sent;
    bytes -= static_cast<size_t>(sent);
  }
  return true;
}

void BM_PlainSocket(benchmark::State& state) {
  const auto bytes = static_cast<size_t>(state.range(0));
  const auto in_flight = static_cast<int>(state.range(1));
  auto [client, server] = TcpSocketPair();
  std::thread serving([&server = server, bytes] {
    const std::vector<char> data(kServedBytes, 1);
    std::array<char, sizeof(tcp::RequestHeader)> request;
    for (uint64_t i = 0;
         recv(server.get(), request.data(), request.size(), MSG_WAITALL) == ssize_t(request.size());) {
      if (!SendWhole(server.get(), data.data() + i++ * bytes % (kServedBytes - bytes), bytes)) return;
    }
  });
  const std::array<char, sizeof(tcp::RequestHeader)> request{};
  std::vector<char> reply(bytes);
  for (int i = 0; i < in_flight; ++i) SendWhole(client.get(), request.data(), request.size());
  for (auto _ : state) {
    NAM_CHECK(recv(client.get(), reply.data(), bytes, MSG_WAITALL) == static_cast<ssize_t>(bytes));
    NAM_CHECK(SendWhole(client.get(), request.data(), request.size()));
  }
  shutdown(client.get(), SHUT_RDWR);
  serving.join();
  state.SetBytesProcessed(state.iterations() * static_cast<int64_t>(bytes));
}

void Cases(benchmark::internal::Benchmark* benchmark) {
  benchmark->Args({64 << 10, 16})
      ->Args({2 << 10, 1})
      ->Args({2 << 10, 10})
      ->UseRealTime()
      ->MeasureProcessCPUTime();
}
BENCHMARK(BM_TcpRead)->Apply(Cases);
BENCHMARK(BM_PlainSocket)->Apply(Cases);

}  // namespace
}  // namespace nam::fabric
