#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "txn/transaction_state.h"

/// A client's log as it lies in the transaction state: what it is about to lock, written before the first
/// lock.
namespace nam::txn {

constexpr size_t LogBytes(size_t entries) {
  return sizeof(LogHeader) + entries * sizeof(LogEntry);
}
/// To LogBytes(entries.size()) bytes.
void EncodeLog(std::span<const LogEntry> entries, std::byte* to);
/// From kLogBytes bytes. Nothing, for a log that its client died writing: then it had locked nothing yet.
std::vector<LogEntry> DecodeLog(const std::byte* bytes);

}  // namespace nam::txn
