#pragma once

#include <functional>
#include <memory>
#include <string>

#include "fabric/fabric.h"

namespace nam::fabric {

/// Fabric::CreateEvent of the fabrics that run in real time.
std::unique_ptr<Event> CreateRealEvent();
/// Fabric::StartThread of the fabrics that run in real time: a thread of the operating system.
std::unique_ptr<Thread> StartRealThread(const std::string& name, std::function<void()> body);

}  // namespace nam::fabric
