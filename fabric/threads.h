#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "fabric/fabric.h"

/// Events, threads and randomness of the fabrics that run in real time.
namespace nam::fabric {

/// An event that waits against RealClock().
std::unique_ptr<Event> MakeRealEvent();

/// Runs `body` on a thread; the destructor joins it. Up to 16 system threads are parked for reuse, with their
/// thread_local state. Names are cut to 15 characters.
std::unique_ptr<Thread> StartRealThread(const std::string& name, std::function<void()> body);

/// The same; RESOURCE_EXHAUSTED if the system refuses a thread, where StartRealThread ends the process.
absl::StatusOr<std::unique_ptr<Thread>> TryStartRealThread(const std::string& name,
                                                           std::function<void()> body);

/// 64 random bits from the operating system.
uint64_t RandomBits();

}  // namespace nam::fabric
