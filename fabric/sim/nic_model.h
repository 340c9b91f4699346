#pragma once

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "fabric/fabric.h"

namespace nam::fabric::sim {

/// Traffic of a card since its host was created; bytes include headers.
struct NicTraffic {
  int64_t bytes_out = 0, messages_out = 0;
  int64_t bytes_in = 0, messages_in = 0;
};

/// The atomics that a card has executed on one word.
struct WordTraffic {
  RemoteAddress address;  // as the first atomic named it
  int64_t atomics = 0;
  int64_t busy_ns = 0;  // the time that the card held the word
};

/// A network card and its link to a full-bisection switch, as `sim` models them. docs/design/simulator.md
/// explains every parameter and where an operation spends its time. The defaults are the generation `fdr`.
struct NicModel {
  std::string name = "fdr";
  uint32_t ports = 2;
  /// Payload and headers that one port carries in each direction.
  int64_t port_bytes_per_us = 6'800;
  uint32_t mtu_bytes = 4096;
  /// Headers of one packet: routing, transport, address, checksums.
  uint32_t packet_overhead_bytes = 30;
  /// The same for a datagram, with its global route header.
  uint32_t datagram_overhead_bytes = 74;
  int64_t messages_per_us = 137;  // of the whole card, in each direction

  /// Latency of one 8-byte operation between idle cards, from the start of Post to the return of Wait.
  int64_t write_ns = 1'000;  // also SEND
  int64_t read_ns = 2'000;   // also atomics

  /// Atomics on one word take turns: the time that the responder's card holds the word for each, from fetch
  /// to write back. Atomics on different words overlap.
  int64_t atomic_ns = 400;

  /// CPU time of the thread that posts or polls.
  int64_t doorbell_ns = 100;  // per Post
  int64_t post_ns = 20;       // per work request
  int64_t poll_ns = 50;       // per Poll, even an empty one

  /// Time of a datagram queue pair's send queue per datagram: address look-up, gather and completion.
  int64_t datagram_ns = 240;

  uint32_t queue_depth_max = 16'384;  // of a queue pair's send or receive queue
  uint32_t reads_in_flight_max = 16;  // READs and atomics of one queue pair on the wire

  /// `fdr`, `edr`, `hdr`, `ndr`; NOT_FOUND lists them.
  static absl::StatusOr<NicModel> Named(const std::string& name);
  /// Reads a TOML file: `base = "edr"` and any of the fields above by name.
  static absl::StatusOr<NicModel> FromFile(const std::string& path);
  /// Accepts a generation's name or a file's path.
  static absl::StatusOr<NicModel> Parse(const std::string& name_or_path);
  /// INVALID_ARGUMENT names the field that is out of range.
  absl::Status Validate() const;
};

}  // namespace nam::fabric::sim
