#pragma once

#include "localcluster/connect.h"

namespace nam::cli {

struct ResetTransactionsOptions {
  ClusterOptions cluster;
  bool yes = false;  // otherwise asks on the terminal
};

/// Drops all record tables and the transaction state, so that transactions can begin again. Refused while the
/// memory server with the state lives.
int RunResetTransactions(const ResetTransactionsOptions& options);

}  // namespace nam::cli
