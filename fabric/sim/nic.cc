#include "fabric/sim/nic.h"

#include <algorithm>

namespace nam::fabric::sim {

namespace {

constexpr size_t kBusyWordsMax = 1'024;

}  // namespace

Nic::Nic(const NicModel& model)
    : port_bytes_per_us_(model.port_bytes_per_us),
      message_ps_(1'000'000 / model.messages_per_us),
      atomic_ns_(model.atomic_ns) {
  out_.port_free_ps.resize(model.ports);
  in_.port_free_ps.resize(model.ports);
}

int64_t Nic::Occupy(Way& way, int64_t now_ps, int64_t wire_bytes) {
  const int64_t begin_ps = std::max(now_ps, way.engine_free_ps);
  way.engine_free_ps = begin_ps + Slowed(message_ps_);
  way.bytes += wire_bytes;
  ++way.messages;
  int64_t& port_ps = *std::min_element(way.port_free_ps.begin(), way.port_free_ps.end());
  const int64_t first_byte_ps = std::max(begin_ps, port_ps);
  port_ps = first_byte_ps + SerializationPs(wire_bytes);
  return first_byte_ps;
}

int64_t Nic::Send(int64_t now_ps, int64_t wire_bytes) {
  return Occupy(out_, now_ps, wire_bytes);
}

int64_t Nic::Receive(int64_t now_ps, int64_t wire_bytes, int64_t small_wire_bytes) {
  return Occupy(in_, now_ps, wire_bytes) +
         SerializationPs(std::max<int64_t>(0, wire_bytes - small_wire_bytes));
}

int64_t Nic::TakeTurn(uint64_t word, RemoteAddress address, int64_t now_ns) {
  if (atomic_ns_ == 0) return now_ns;
  if (word_free_ns_.size() >= kBusyWordsMax) {
    std::erase_if(word_free_ns_, [now_ns](const auto& entry) { return entry.second <= now_ns; });
  }
  int64_t& free_ns = word_free_ns_[word];
  const int64_t at_ns = std::max(now_ns, free_ns);
  free_ns = at_ns + Slowed(atomic_ns_);
  if (counted_.has_value()) {
    WordTraffic& counted = counted_->try_emplace(word, WordTraffic{.address = address}).first->second;
    ++counted.atomics;
    counted.busy_ns += free_ns - at_ns;
  }
  return at_ns;
}

// Ties are broken by the word's number, because the map's order differs between runs.
WordTraffic Nic::BusiestWord() const {
  WordTraffic busiest;
  uint64_t word_of_busiest = 0;
  if (!counted_.has_value()) return busiest;
  for (const auto& [word, counted] : *counted_) {
    if (counted.busy_ns < busiest.busy_ns) continue;
    if (counted.busy_ns == busiest.busy_ns && word > word_of_busiest) continue;
    busiest = counted;
    word_of_busiest = word;
  }
  return busiest;
}

int64_t WireBytes(const NicModel& model, uint32_t payload_bytes) {
  const int64_t packets =
      std::max<int64_t>(1, (int64_t{payload_bytes} + model.mtu_bytes - 1) / model.mtu_bytes);
  return payload_bytes + packets * model.packet_overhead_bytes;
}

}  // namespace nam::fabric::sim
