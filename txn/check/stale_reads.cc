#include "txn/check/stale_reads.h"

#include <algorithm>

namespace nam::txn {

void StaleReads::CollectReads() {
  for (const Miss& miss : misses_) reads_of_[miss.reader];
  index_.ForEachTransaction([&](uint32_t number, const TransactionRecord& content) {
    const auto reads = reads_of_.find(number);
    if (reads == reads_of_.end()) return;
    for (const Operation& operation : content.operations) {
      if (operation.kind == OperationKind::kRead) reads->second.push_back(operation);
    }
  });
}

void StaleReads::CollectWriters() {
  constexpr uint32_t kNoWriter = ~uint32_t{0};
  for (const auto& [reader, reads] : reads_of_) {
    for (const Operation& read : reads) writer_of_[read.value] = kNoWriter;
  }
  index_.ForEachTransaction([&](uint32_t number, const TransactionRecord& content) {
    if (!index_.committed(number)) return;
    for (const Operation& operation : content.operations) {
      if (!IsWrite(operation.kind) || operation.value == kNoValue) continue;
      const auto writer = writer_of_.find(operation.value);
      if (writer != writer_of_.end()) writer->second = number;
    }
  });
  absl::erase_if(writer_of_, [](const auto& entry) { return entry.second == kNoWriter; });
}

const StaleReads::Later* StaleReads::LaterSeen(const Miss& miss, Later& later) const {
  for (const Operation& read : reads_of_.at(miss.reader)) {
    const auto writer = writer_of_.find(read.value);
    if (writer == writer_of_.end() || writer->second == miss.reader) continue;
    if (index_.commit(writer->second) < index_.commit(miss.missed)) continue;
    later = {writer->second, read.record};
    return &later;
  }
  return nullptr;
}

uint32_t StaleReads::Witness(const Miss& miss, const Later& later) const {
  uint32_t witness = miss.reader;
  const uint64_t from = index_.commit(miss.missed), until = index_.commit(later.writer);
  index_.ForEachTransaction([&](uint32_t number, const TransactionRecord& content) {
    if (witness != miss.reader || content.snapshot < from || content.snapshot >= until) return;
    const auto reads = [&](uint64_t record) {
      return std::any_of(content.operations.begin(), content.operations.end(),
                         [&](const Operation& operation) {
                           return operation.kind == OperationKind::kRead && operation.record == record;
                         });
    };
    if (reads(miss.record) && reads(later.record)) witness = number;
  });
  return witness;
}

void StaleReads::Report() {
  if (misses_.empty()) return;
  CollectReads();
  CollectWriters();
  for (const Miss& miss : misses_) {
    if (report_.full()) return;
    Later later;
    if (LaterSeen(miss, later) == nullptr) {
      report_.Add(AnomalyKind::kStaleRead, miss.record, {miss.reader, miss.missed});
      continue;
    }
    if (later.writer != miss.missed) {
      const uint32_t witness = Witness(miss, later);
      if (witness != miss.reader && witness != miss.missed && witness != later.writer) {
        report_.Add(AnomalyKind::kLongFork, miss.record, {miss.reader, miss.missed, witness, later.writer});
        continue;
      }
    }
    report_.Add(AnomalyKind::kFracturedRead, miss.record, {miss.reader, miss.missed, later.writer});
  }
}

}  // namespace nam::txn
