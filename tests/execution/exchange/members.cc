#include "tests/execution/exchange/members.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "execution/exchange/send_receive_endpoint.h"

namespace nam::execution {
namespace {

absl::StatusOr<std::unique_ptr<Endpoint>> Open(Design design, fabric::Fabric& fabric,
                                               const EndpointOptions& options) {
  const std::string host = fabric.kind() == fabric::Kind::kTcp ? "127.0.0.1" : "";
  switch (design) {
    case Design::kSendReceive:
      return SendReceiveEndpoint::Open(fabric, options, host);
  }
  return absl::UnimplementedError("no such design");
}

}  // namespace

std::string NameOf(const testing::TestParamInfo<Subject>& info) {
  return absl::StrCat("SendReceiveOver_", std::string(fabric::KindName(info.param.fabric)));
}

Members::Members(const Subject& subject, uint32_t count, EndpointOptions options) : subject_(subject) {
  if (subject.fabric == fabric::Kind::kSim) {
    fabric::sim::WorldOptions world;
    world.nic = *fabric::sim::NicModel::Named("fdr");
    world_ = std::make_unique<fabric::sim::World>(world);
  }
  for (uint32_t member = 0; member < count; ++member) options.members.push_back(Name(member));
  for (uint32_t member = 0; member < count; ++member) {
    fabrics_.push_back(OpenFabric());
    options.self = member;
    auto endpoint = Open(subject.design, *fabrics_.back(), options);
    EXPECT_TRUE(endpoint.ok()) << endpoint.status();
    endpoints_.push_back(*std::move(endpoint));
  }
}

std::unique_ptr<fabric::Fabric> Members::OpenFabric() {
  auto fabric = world_ != nullptr ? world_->OpenFabric(absl::StrCat("host-", ++opened_), {.secret = "secret"})
                                  : fabric::Open({.kind = subject_.fabric, .secret = "secret"});
  EXPECT_TRUE(fabric.ok()) << fabric.status();
  return *std::move(fabric);
}

std::string Members::Name(uint32_t member) {
  return absl::StrCat("member ", member);
}

std::vector<std::string> Members::addresses() const {
  std::vector<std::string> addresses;
  for (const auto& endpoint : endpoints_) addresses.push_back(endpoint->address());
  return addresses;
}

void Members::Connect() {
  OnAll([addresses = addresses(), this](uint32_t member) {
    const absl::Status met = endpoints_[member]->Connect(addresses, Soon(), cancel_);
    EXPECT_TRUE(met.ok()) << Name(member) << ": " << met;
  });
}

void Members::OnAll(const std::function<void(uint32_t)>& body) {
  std::vector<std::unique_ptr<fabric::Thread>> threads;
  for (uint32_t member = 0; member < count(); ++member) {
    if (endpoints_[member] == nullptr) continue;
    threads.push_back(
        fabrics_[member]->StartThread(absl::StrCat("member-", member), [&body, member] { body(member); }));
  }
}

void Members::Lose(uint32_t member) {
  if (world_ != nullptr) world_->KillProcess(world_->ProcessOf(*fabrics_[member]));
  endpoints_[member].reset();
}

}  // namespace nam::execution
