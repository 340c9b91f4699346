#pragma once

#include "cli/interrupts.h"
#include "session/session.h"

namespace nam::cli {

/// During its lifetime, Ctrl-C cancels this session's running statement.
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
