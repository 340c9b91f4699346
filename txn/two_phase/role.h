#pragma once

#include "txn/two_phase/transport.h"

namespace nam::txn::two_phase {

/// What a server thread does with its frames.
class Role : public FrameSink {
 public:
  /// After everything that had arrived was handled.
  virtual void AfterBatch() {}
};

}  // namespace nam::txn::two_phase
