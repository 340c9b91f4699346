#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "plan/physical.h"

namespace nam::plan {

/// Names a column of PhysicalPlan::tables.
using ColumnNames = std::function<std::string(uint32_t table, uint32_t column)>;

/// The printed form of one pipeline, without indentation. Sources and steps end with their output and its
/// estimated rows.
struct PipelineText {
  std::string source;
  std::string place;               // in the graph: `, stage 1, after P0`
  std::vector<std::string> steps;  // as Pipeline::steps
  std::string sink;
};
/// The texts of all pipelines. `plan` passed Check.
std::vector<PipelineText> PrintPipelines(const PhysicalPlan& plan, const ColumnNames& names);

/// One line for each source, step and sink; after => its output and estimated rows:
///
///     P0 scan date (d_datekey, d_year) where d_year = 1993 => d_datekey ~365
///        build unique on d_datekey
///     P1 scan lineorder (lo_orderdate, lo_revenue) => lo_orderdate, lo_revenue ~600572, claimed, after P0
///        probe P0 on lo_orderdate => lo_revenue ~85659
///        aggregate partial sum(lo_revenue)
///
/// Slots are named after their columns, or after the expression or call that made them, shortened if long;
/// those of VALUES are column1, column2, …. `plan` passed Check.
std::vector<std::string> Print(const PhysicalPlan& plan, const ColumnNames& names);

}  // namespace nam::plan
