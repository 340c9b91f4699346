#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "fabric/sim/nic_model.h"
#include "fabric/sim/world.h"

/// The load of a simulated cluster's network cards during a measurement. A card has units that serve one
/// request after the other: its ports and its message engine, in each direction, and the atomics on each
/// word. The limit of a rate is the rate at which the busiest unit of all cards would never be idle.
namespace nam::bench {

enum class CardRole : uint8_t { kRows, kState, kClients };

struct Card {
  std::string host;
  CardRole role = CardRole::kRows;
};

/// A unit of a card.
struct UnitUse {
  std::string what;     // `memory-1, bytes out`
  double fraction = 0;  // of the time
};

/// The use of one card. Fractions are shares of the time in which a unit was busy.
struct CardUse {
  Card card;
  double bytes_out = 0, bytes_in = 0;
  double messages_out = 0, messages_in = 0;
  double word = 0;              // of atomics on the busiest word
  fabric::RemoteAddress where;  // that word
  std::string word_name = "one word";
  // Totals of both directions.
  int64_t bytes = 0, messages = 0;
  int64_t received_bytes = 0;

  UnitUse Busiest() const;
};

/// The card with the busiest unit; null if there are no cards.
const CardUse* BusiestOf(const std::vector<CardUse>& cards);

/// Measures from its construction on. One per world at a time, because it restarts the counting of atomics.
class CardWatch {
 public:
  /// `nic` is the model of the world's cards.
  CardWatch(fabric::sim::World& world, fabric::sim::NicModel nic, std::vector<Card> cards);
  /// The use until now, in the order of the cards.
  std::vector<CardUse> Uses() const;
  int64_t elapsed_ns() const { return world_.NowNs() - from_ns_; }

 private:
  fabric::sim::World& world_;
  const fabric::sim::NicModel nic_;
  const std::vector<Card> cards_;
  int64_t from_ns_ = 0;
  std::vector<fabric::sim::NicTraffic> from_;  // by card
};

}  // namespace nam::bench
