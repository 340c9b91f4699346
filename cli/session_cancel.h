#pragma once

#include "cli/interrupts.h"
#include "session/session.h"

namespace nam::cli {

/// While it lives, a Ctrl-C cancels the statement of this session that runs.
class SessionCancel final : public Cancellable {
 public:
  SessionCancel(session::Session& session, Interrupts& interrupts)
      : session_(session), interrupts_(interrupts) {
    interrupts_.SetTarget(this);
  }
  ~SessionCancel() override { interrupts_.SetTarget(nullptr); }
  void CancelFromSignal() override { session_.Cancel(); }

 private:
  session::Session& session_;
  Interrupts& interrupts_;
};

}  // namespace nam::cli
