#include <sys/prctl.h>

#include <iostream>
#include <string>
#include <utility>

#include "absl/strings/str_format.h"
#include "base/status_macros.h"
#include "bench/json_peer.h"
#include "bench/server_end.h"

/// The protocol of a benchmark's server behind a pipe:
///
///     {"op": "start", "fabric": …, "secret": …, …}      ──▶  {"ok": true, "one_sided": ADDRESS, …}
///     {"op": "multicast", "group": N, "members": N, …}  ──▶  {"ok": true, "addresses": […]}
///     {"op": "multicast_end"}                           ──▶  {"ok": true}
namespace nam::bench {
namespace {

using Json = JsonPeer::Json;

constexpr int64_t kCallTimeoutMs = 60'000;

Json ToJson(const storage::MulticastAddress& address) {
  return {{"server", address.server.value()},
          {"stream", address.stream},
          {"group", address.group},
          {"board", address.board.value},
          {"fragment_bytes", address.fragment_bytes}};
}

storage::MulticastAddress ParseAddress(const Json& json) {
  return {.server = MemoryServerId(json.at("server").get<uint16_t>()),
          .stream = json.at("stream"),
          .group = json.at("group"),
          .board = {json.at("board").get<uint32_t>()},
          .fragment_bytes = json.at("fragment_bytes")};
}

/// One conversation, in the child.
class Conversation {
 public:
  absl::StatusOr<Json> Answer(const Json& request) {
    const std::string op = request.value("op", "");
    if (op == "start") return Start(request);
    if (server_ == nullptr) return absl::FailedPreconditionError("not started");
    if (op == "multicast") {
      NAM_ASSIGN_OR_RETURN(const auto addresses,
                           server_->StartMulticast({.first_group = request.at("group"),
                                                    .members = request.at("members"),
                                                    .block_bytes = request.at("block_bytes"),
                                                    .chains = request.at("chains"),
                                                    .streams = request.at("streams")}));
      Json answer{{"ok", true}, {"addresses", Json::array()}};
      for (const auto& address : addresses) answer["addresses"].push_back(ToJson(address));
      return answer;
    }
    if (op == "multicast_end") {
      NAM_RETURN_IF_ERROR(server_->FinishMulticast());
      return Json{{"ok", true}};
    }
    return absl::InvalidArgumentError(absl::StrFormat("no such request: %s", op));
  }

 private:
  absl::StatusOr<Json> Start(const Json& request) {
    NAM_ASSIGN_OR_RETURN(const fabric::Kind kind, fabric::ParseKind(request.value("fabric", "")));
    const std::string host = request.value("host", "");
    NAM_ASSIGN_OR_RETURN(fabric_, fabric::Open({.kind = kind,
                                                .secret = request.value("secret", ""),
                                                .rdma = request.value("rdma", ""),
                                                .host = host,
                                                .encrypt = request.value("encrypt", false)}));
    NAM_ASSIGN_OR_RETURN(
        server_, BenchServer::Start(*fabric_, {.region_bytes = request.value("bytes", 0ul), .host = host}));
    const ServerAddress& address = server_->address();
    return Json{{"ok", true},
                {"one_sided", address.one_sided},
                {"messages", address.messages},
                {"rkey", address.rkey.value},
                {"bytes", address.region_bytes}};
  }

  std::unique_ptr<fabric::Fabric> fabric_;
  std::unique_ptr<BenchServer> server_;
};

class ServerProcess final : public ServerEnd {
 public:
  static absl::StatusOr<std::unique_ptr<ServerEnd>> Start(const ServerProcessOptions& options) {
    std::unique_ptr<ServerProcess> server(new ServerProcess);
    NAM_ASSIGN_OR_RETURN(server->peer_, JsonPeer::Start({.name = "the benchmark's server process",
                                                         .executable = "/proc/self/exe",
                                                         .arguments = {"bench-server"},
                                                         .log_file = options.log_file}));
    NAM_ASSIGN_OR_RETURN(const Json answer,
                         server->peer_->Call({{"op", "start"},
                                              {"fabric", std::string(fabric::KindName(options.fabric.kind))},
                                              {"secret", options.fabric.secret},
                                              {"rdma", options.fabric.rdma},
                                              {"host", options.server.host},
                                              {"encrypt", options.fabric.encrypt},
                                              {"bytes", options.server.region_bytes}},
                                             kCallTimeoutMs));
    server->address_ = {.one_sided = answer.value("one_sided", ""),
                        .messages = answer.value("messages", ""),
                        .rkey = {answer.value("rkey", 0u)},
                        .region_bytes = answer.value("bytes", 0ul)};
    return server;
  }

  const ServerAddress& address() const override { return address_; }
  absl::StatusOr<std::vector<storage::MulticastAddress>> StartMulticast(
      const MulticastRequest& request) override {
    NAM_ASSIGN_OR_RETURN(const Json answer, peer_->Call({{"op", "multicast"},
                                                         {"group", request.first_group},
                                                         {"members", request.members},
                                                         {"block_bytes", request.block_bytes},
                                                         {"chains", request.chains},
                                                         {"streams", request.streams}},
                                                        kCallTimeoutMs));
    std::vector<storage::MulticastAddress> addresses;
    for (const Json& address : answer.at("addresses")) addresses.push_back(ParseAddress(address));
    return addresses;
  }
  absl::Status FinishMulticast() override {
    return peer_->Call({{"op", "multicast_end"}}, kCallTimeoutMs).status();
  }

 private:
  ServerProcess() = default;
  std::unique_ptr<JsonPeer> peer_;
  ServerAddress address_;
};

}  // namespace

int RunBenchServer() {
  prctl(PR_SET_NAME, "nam-bench-srv");
  Conversation conversation;
  for (std::string line; std::getline(std::cin, line);) {
    const Json request = Json::parse(line, nullptr, /*allow_exceptions=*/false);
    const absl::StatusOr<Json> answer = request.is_object()
                                            ? conversation.Answer(request)
                                            : absl::InvalidArgumentError("a request is a JSON object");
    std::cout << (answer.ok() ? *answer
                              : Json{{"ok", false}, {"error", std::string(answer.status().message())}})
                     .dump()
              << std::endl;
  }
  return 0;
}

absl::StatusOr<std::unique_ptr<ServerEnd>> StartServerProcess(const ServerProcessOptions& options) {
  return ServerProcess::Start(options);
}

}  // namespace nam::bench
