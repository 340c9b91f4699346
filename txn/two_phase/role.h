#pragma once

#include "txn/two_phase/transport.h"

namespace nam::txn::two_phase {

/// How a server thread handles its frames.
class Role : public FrameSink {
 public:
  /// Called after all frames that had arrived are handled.
  virtual void AfterBatch() {}
};

}  // namespace nam::txn::two_phase
