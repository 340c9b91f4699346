#pragma once

#include <span>

#include "optimizer/assignment.h"
#include "plan/physical.h"

/// Which server has which rows, and what follows from it. Exchanges stand only where a requirement is unmet.
namespace nam::optimizer {

/// Of what leaves a scan, as long as servers claim whole partitions: by the table's partition key if it has
/// one alone and the scan puts it out. Otherwise kAny.
plan::Distribution DistributionOf(const plan::TableScan& scan, const proto::Table& table);

/// Of what leaves a step, given that of what comes: as that, while its columns flow on as they are.
plan::Distribution DistributionAfter(const plan::Distribution& input, const plan::StepNode& step);

/// Whether rows lie as wanted. Replicated rows are not single ones: each server has them all.
bool Satisfies(const plan::Distribution& have, const plan::Distribution& wanted);

/// Whether rows with equal values in these slots are on one server, so that grouping by them, or building and
/// probing by them, needs no exchange.
bool KeepsTogether(const plan::Distribution& have, std::span<const uint32_t> slots);

/// States for every build side that is probed by rows of its stage's claimed table alone whether one
/// partition of it suffices for one of that table: BlockScan::co_partitioned_key.
void StatePartitionMatches(const TableRefs& tables, plan::PhysicalPlan& plan);

}  // namespace nam::optimizer
