#pragma once

#include <memory>

#include "bench/command.h"

/// The commands of `nam bench`; see docs/benchmarks.md.
namespace nam::bench {

// Queries beside DuckDB, over a private cluster.
std::unique_ptr<Command> SsbCommand();
std::unique_ptr<Command> TpchCommand();

// The fabric, between two processes or, in `sim`, two hosts.
std::unique_ptr<Command> FabricCommand();
std::unique_ptr<Command> PrefetchCommand();
std::unique_ptr<Command> MulticastCommand();

/// RSI beside a loop without transactions, SQLite and two-phase commit; in `sim` figure 6 of the redesign
/// paper.
std::unique_ptr<Command> CheckoutCommand();

// Joins and groups.
std::unique_ptr<Command> JoinCommand();
std::unique_ptr<Command> AggregateCommand();
std::unique_ptr<Command> ChoiceCommand();
std::unique_ptr<Command> Figure7Command();

/// Measures a running cluster for the optimizer.
std::unique_ptr<Command> CalibrateCommand();

}  // namespace nam::bench
