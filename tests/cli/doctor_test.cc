#include "cli/doctor.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cli/doctor_devices.h"
#include "cli/doctor_network.h"
#include "nlohmann/json.hpp"
#include "tests/cli/host_tree.h"

namespace nam::cli {
namespace {

using fabric::Kind;
using fabric::verbs::Atomics;
using fabric::verbs::DeviceReport;
using testing::HasSubstr;

DeviceReport GoodDevice(const std::string& name) {
  return {.name = name,
          .atomics = Atomics::kDevice,
          .ports = {{.number = 1,
                     .active = true,
                     .state = "PORT_ACTIVE",
                     .link_layer = "Ethernet",
                     .mtu_bytes = 1024,
                     .gids = {{0, "fe80::1", "RoCE v1"}, {1, "10.0.0.2", "RoCE v2"}}}}};
}

FindingState StateOf(const std::vector<Finding>& findings, const std::string& name) {
  for (const Finding& finding : findings) {
    if (finding.name == name) return finding.state;
  }
  ADD_FAILURE() << "no finding " << name;
  return FindingState::kOk;
}

TEST(DoctorDevices, NoneIsMissing) {
  const auto findings = CheckDevices({});
  ASSERT_EQ(findings.size(), 1u);
  EXPECT_EQ(findings[0].state, FindingState::kMissing);
  EXPECT_EQ(findings[0].found, "0 usable of 0");
  EXPECT_THAT(findings[0].remedy, HasSubstr("rdma_rxe"));
}

TEST(DoctorDevices, OneThatWorks) {
  const auto findings = CheckDevices({GoodDevice("rxe0")});
  EXPECT_TRUE(Usable(findings, Kind::kVerbs));
  EXPECT_EQ(StateOf(findings, "RDMA devices"), FindingState::kOk);
  EXPECT_EQ(findings[1].found, "PORT_ACTIVE, Ethernet, MTU 1024");
  EXPECT_THAT(findings[2].found, HasSubstr("1: 10.0.0.2 RoCE v2"));
  EXPECT_EQ(StateOf(findings, "rxe0 CAS self-test"), FindingState::kOk);
}

TEST(DoctorDevices, EveryDefectIsNamed) {
  const auto defect = [](const std::function<void(DeviceReport&)>& change, const std::string& finding) {
    DeviceReport device = GoodDevice("rxe0");
    change(device);
    const auto findings = CheckDevices({device});
    EXPECT_EQ(StateOf(findings, "RDMA devices"), FindingState::kMissing) << finding;
    EXPECT_EQ(StateOf(findings, finding), FindingState::kMissing);
    EXPECT_FALSE(Usable(findings, Kind::kVerbs));
    EXPECT_TRUE(Usable(findings, Kind::kTcp)) << "no other fabric needs a device";
  };
  defect([](DeviceReport& d) { d.opened = absl::UnavailableError("cannot be opened"); }, "rxe0");
  defect([](DeviceReport& d) { d.ports[0].active = false; }, "rxe0 port 1");
  defect([](DeviceReport& d) { d.ports[0].gids.pop_back(); }, "rxe0 port 1 GIDs");
  defect([](DeviceReport& d) { d.atomics = Atomics::kNone; }, "rxe0 atomics");
  defect([](DeviceReport& d) { d.cas_self_test = absl::InternalError("wrong result"); },
         "rxe0 CAS self-test");
}

TEST(DoctorDevices, ASecondOneThatFailsIsAWarning) {
  DeviceReport bad = GoodDevice("rxe1");
  bad.ports[0].active = false;
  const auto findings = CheckDevices({GoodDevice("rxe0"), bad});
  EXPECT_TRUE(Usable(findings, Kind::kVerbs));
  EXPECT_EQ(StateOf(findings, "rxe1 port 1"), FindingState::kWarning);
}

TEST(DoctorDevices, InfiniBandNeedsNoRoce) {
  DeviceReport device = GoodDevice("mlx5_0");
  device.ports[0].link_layer = "InfiniBand";
  device.ports[0].gids = {{0, "fe80::2", "IB"}};
  EXPECT_TRUE(Usable(CheckDevices({device}), Kind::kVerbs));
}

TEST(DoctorNetwork, ListenAddresses) {
  EXPECT_TRUE(TryListen("127.0.0.1:0").ok());
  EXPECT_EQ(TryListen("192.0.2.1:0").code(), absl::StatusCode::kNotFound) << "another host's";
  EXPECT_EQ(TryListen("no-such-host.invalid:0").code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(TryListen("4700").code(), absl::StatusCode::kInvalidArgument);
}

TEST(DoctorNetwork, ListenFindings) {
  EXPECT_EQ(CheckListen("h:4700", absl::OkStatus()).state, FindingState::kOk);
  const Finding taken = CheckListen("h:4700", absl::AlreadyExistsError("the port is in use"));
  EXPECT_EQ(taken.state, FindingState::kMissing);
  EXPECT_THAT(taken.remedy, HasSubstr("sport = :4700"));
  EXPECT_THAT(CheckListen("h:80", absl::PermissionDeniedError("")).remedy,
              HasSubstr("unprivileged_port_start=80"));
  EXPECT_THAT(CheckListen("h:80", absl::NotFoundError("")).remedy, HasSubstr("ip address"));
}

TEST(DoctorNetwork, Multicast) {
  EXPECT_EQ(CheckMulticast(absl::OkStatus(), "eth0").state, FindingState::kOk);
  const Finding deaf = CheckMulticast(absl::UnavailableError("nothing came back within 2 s"), "eth0");
  EXPECT_EQ(deaf.state, FindingState::kWarning) << "streams fall back to READ";
  EXPECT_THAT(deaf.remedy, HasSubstr("ip link set dev eth0 multicast on"));
}

TEST(DoctorNetwork, MulticastIsHeardOverTheFabric) {
  auto fabric = fabric::Open({.kind = Kind::kTcp, .secret = "s", .host = "127.0.0.1"});
  ASSERT_TRUE(fabric.ok()) << fabric.status();
  const absl::Status heard = TryMulticast(**fabric);
  EXPECT_TRUE(heard.ok()) << heard;
}

TEST(DoctorNetwork, DatagramBuffer) {
  FakeHost host;
  EXPECT_EQ(CheckDatagramBuffer(host.tree()).state, FindingState::kOk);
  host.Write("proc/sys/net/core/rmem_max", "212992\n");
  const Finding small = CheckDatagramBuffer(host.tree());
  EXPECT_EQ(small.state, FindingState::kWarning);
  EXPECT_EQ(small.found, "208 KiB");
  EXPECT_EQ(small.remedy, "sysctl -w net.core.rmem_max=16777216");
  host.Write("proc/self/status", "CapEff:\t0000000000001000\n");  // CAP_NET_ADMIN
  EXPECT_EQ(CheckDatagramBuffer(host.tree()).state, FindingState::kOk);
}

std::vector<Finding> OneOfEach() {
  return {{.name = "a", .found = "1", .needed = "1", .fabrics = kRealFabrics},
          {.name = "b",
           .found = "0",
           .needed = "1",
           .state = FindingState::kWarning,
           .remedy = "mend b",
           .fabrics = {Kind::kShm}},
          {.name = "c",
           .found = "0",
           .needed = "2",
           .state = FindingState::kMissing,
           .remedy = "mend c",
           .fabrics = {Kind::kVerbs}}};
}

TEST(DoctorReport, OnlyTheMissingOfTheFabricCounts) {
  EXPECT_TRUE(Usable(OneOfEach(), Kind::kShm));
  EXPECT_TRUE(Usable(OneOfEach(), Kind::kTcp));
  EXPECT_FALSE(Usable(OneOfEach(), Kind::kVerbs));
  EXPECT_EQ(Relevant(OneOfEach(), "").size(), 3u);
  EXPECT_EQ(Relevant(OneOfEach(), "shm").size(), 2u);
  EXPECT_EQ(Relevant(OneOfEach(), "tcp").size(), 1u);
}

TEST(DoctorReport, Json) {
  const auto json = nlohmann::json::parse(
      RenderFindings(OneOfEach(), {.memory_bytes = 4096, .listen = {"127.0.0.1:0"}, .format = "json"}));
  EXPECT_EQ(json["command"], "doctor");
  EXPECT_EQ(json["config"]["fabric"], "all");
  EXPECT_EQ(json["config"]["memory_bytes"], 4096);
  EXPECT_TRUE(json.contains("host"));
  ASSERT_EQ(json["rows"].size(), 3u);
  EXPECT_EQ(json["rows"][2], (nlohmann::json{{"finding", "c"},
                                             {"state", "missing"},
                                             {"found", "0"},
                                             {"needed", "2"},
                                             {"remedy", "mend c"},
                                             {"fabrics", {"verbs"}}}));
  EXPECT_EQ(json["summary"]["ok"], 1);
  EXPECT_EQ(json["summary"]["warnings"], 1);
  EXPECT_EQ(json["summary"]["missing"], 1);
  EXPECT_EQ(json["summary"]["usable"], (nlohmann::json{{"shm", true}, {"tcp", true}, {"verbs", false}}));
}

TEST(DoctorReport, TableEndsWithWhatMends) {
  const std::string text = RenderFindings(OneOfEach(), {});
  EXPECT_THAT(text, HasSubstr("Missing:\n  c: mend c\n"));
  EXPECT_THAT(text, HasSubstr("Could be better:\n  b: mend b\n"));
  EXPECT_THAT(text, HasSubstr("The shm fabric works here.\n"));
  EXPECT_THAT(text, HasSubstr("The verbs fabric lacks something.\n"));
  EXPECT_THAT(RenderFindings(OneOfEach(), {.format = "csv"}), HasSubstr("c,missing,0,2,verbs,mend c\n"));
}

}  // namespace
}  // namespace nam::cli
