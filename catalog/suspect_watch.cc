#include "catalog/suspect_watch.h"

#include <utility>

#include "base/log.h"
#include "fabric/threads.h"

namespace nam::catalog {
namespace {

constexpr int64_t kDialTimeoutUs = 300'000;
constexpr char kThreadName[] = "nam-suspects";

}  // namespace

SuspectWatch::SuspectWatch(Service& service, SuspectWatchOptions options)
    : service_(service), options_(std::move(options)) {
  fabric::Fabric* const fabric = options_.fabric;
  stop_ = fabric == nullptr ? fabric::MakeRealEvent() : fabric->CreateEvent();
  const auto body = [this] { Run(); };
  thread_ =
      fabric == nullptr ? fabric::StartRealThread(kThreadName, body) : fabric->StartThread(kThreadName, body);
}

SuspectWatch::~SuspectWatch() {
  stop_->Set();
  thread_.reset();
  Log();
}

void SuspectWatch::Run() {
  while (!stop_->Wait(options_.clock->After(options_.pause_us))) {
    if (!options_.control_plane->Running()) return;
    if (options_.fabric != nullptr) service_.Pulse();  // a simulated catalog has no other pulse
    for (const Service::Overdue& server : service_.OverdueMemoryServers()) {
      if (stop_->IsSet()) return;
      if (options_.connected(server.connection)) continue;
      if (options_.control_plane->Refused(server.control_address, kDialTimeoutUs))
        service_.ProcessEnded(server);
    }
    Log();
  }
}

void SuspectWatch::Log() {
  for (const MemberEvent& event : service_.TakeEvents()) nam::Log(event.level, event.text);
}

}  // namespace nam::catalog
