#pragma once

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "fabric/fabric.h"

namespace nam::fabric::sim {

/// What has passed a card since its host was made; bytes with their headers.
struct NicTraffic {
  int64_t bytes_out = 0, messages_out = 0;
  int64_t bytes_in = 0, messages_in = 0;
};

/// One word whose atomics a card has executed.
struct WordTraffic {
  RemoteAddress address;  // as the first of them named it
  int64_t atomics = 0;
  int64_t busy_ns = 0;  // the card kept the word for so long
};

/// A network card and its link to a full-bisection switch, as `sim` computes with it. What every parameter
/// stands for, and where an operation spends its time, is in docs/design/simulator.md.
struct NicModel {
  std::string name = "fdr";
  uint32_t ports = 2;
  /// Payload and headers that one port carries, each way.
  int64_t port_bytes_per_us = 6'800;
  uint32_t mtu_bytes = 4096;
  /// Headers of one packet: routing, transport, address, checksums.
  uint32_t packet_overhead_bytes = 30;
  /// The same of a datagram, with its global route header.
  uint32_t datagram_overhead_bytes = 74;
  int64_t messages_per_us = 137;  // a whole card, each way

  /// Of one operation of 8 bytes between idle cards, from the start of Post to the return of Wait.
  int64_t write_ns = 1'000;  // also SEND
  int64_t read_ns = 2'000;   // also atomics

  /// Atomics on one word take turns: how long the responder's card keeps it for each, from fetching it from
  /// memory until it is written back. Others, of other words, overlap.
  int64_t atomic_ns = 400;

  /// CPU time of the thread that posts or polls.
  int64_t doorbell_ns = 100;  // each Post
  int64_t post_ns = 20;       // each work request in it
  int64_t poll_ns = 50;       // each Poll, found something or not

  /// Time that a datagram queue pair's send queue takes for one datagram, however many there are: address
  /// look-up, gather, and the completion.
  int64_t datagram_ns = 240;

  uint32_t queue_depth_max = 16'384;  // of a queue pair's send or receive queue
  uint32_t reads_in_flight_max = 16;  // READs and atomics of one queue pair on the wire

  /// `fdr`, `edr`, `hdr`, `ndr`; NOT_FOUND lists them.
  static absl::StatusOr<NicModel> Named(const std::string& name);
  /// A TOML file: `base = "edr"` and any of the fields above by their names.
  static absl::StatusOr<NicModel> FromFile(const std::string& path);
  /// A generation's name, or else a file's path.
  static absl::StatusOr<NicModel> Parse(const std::string& name_or_path);
  /// INVALID_ARGUMENT names the field that is out of range.
  absl::Status Validate() const;
};

}  // namespace nam::fabric::sim
