#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "fabric/fabric.h"

/// Events, threads and randomness of the fabrics that run in real time.
namespace nam::fabric {

/// Waits against RealClock().
std::unique_ptr<Event> MakeRealEvent();

/// A thread of the operating system, joined by the destructor. Longer names are cut to 15 characters.
std::unique_ptr<Thread> StartRealThread(const std::string& name, std::function<void()> body);

/// 64 bits of the operating system's randomness.
uint64_t RandomBits();

}  // namespace nam::fabric
