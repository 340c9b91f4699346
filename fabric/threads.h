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

/// Runs `body` on a thread of its own; the destructor waits for its end. Up to 16 threads of the system are
/// parked for the next bodies, with what is thread_local. Longer names are cut to 15 characters.
std::unique_ptr<Thread> StartRealThread(const std::string& name, std::function<void()> body);

/// 64 bits of the operating system's randomness.
uint64_t RandomBits();

}  // namespace nam::fabric
