#pragma once

#include <span>

#include "optimizer/assignment.h"
#include "plan/physical.h"

/// The distribution of rows over servers, and the requirements of operators on it. Plans have exchanges only
/// where a requirement is unmet.
namespace nam::optimizer {

/// The distribution of a scan's output, while servers claim whole partitions: by the table's only partition
/// key if the scan emits it. Otherwise kAny.
plan::Distribution DistributionOf(const plan::TableScan& scan, const proto::Table& table);

/// The distribution of a step's output, given its input's: the same, while its columns pass unchanged.
plan::Distribution DistributionAfter(const plan::Distribution& input, const plan::StepNode& step);

/// Whether the distribution is as wanted. Replicated rows do not satisfy single ones: each server has them
/// all.
bool Satisfies(const plan::Distribution& have, const plan::Distribution& wanted);

/// Whether rows with equal values in these slots are on one server, so that grouping by them, or building and
/// probing by them, needs no exchange.
bool KeepsTogether(const plan::Distribution& have, std::span<const uint32_t> slots);

/// Sets BlockScan::co_partitioned_key for every build side that only rows of its stage's claimed table probe,
/// if one of its partitions suffices for one of that table.
void StatePartitionMatches(const TableRefs& tables, plan::PhysicalPlan& plan);

}  // namespace nam::optimizer
