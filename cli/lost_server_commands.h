#pragma once

#include <cstdint>

#include "localcluster/connect.h"

/// What an operator gives up when a memory server does not come back. Both ask on the terminal first.
namespace nam::cli {

struct BuryOptions {
  ClusterOptions cluster;
  uint32_t server = 0;
  bool yes = false;
};

/// Ends the membership of a suspect memory server at an operator's request: first lists the tables that lose
/// blocks by it, and asks, unless told not to.
int RunBury(const BuryOptions& options);

struct ResetTransactionsOptions {
  ClusterOptions cluster;
  bool yes = false;  // otherwise asks on the terminal
};

/// Drops all record tables and the transaction state, so that transactions can begin again. Refused while the
/// memory server with the state lives.
int RunResetTransactions(const ResetTransactionsOptions& options);

}  // namespace nam::cli
