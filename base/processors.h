#pragma once

namespace nam {

/// The processors that this process may run on: at least one. Simulated hosts have others: a fabric's
/// capabilities tell those.
int HostProcessors();

}  // namespace nam
