#pragma once

#include <vector>

#include "computeserver/session.h"
#include "proto/catalog.pb.h"

/// What `nam status` and the shell's \d, \dt and \servers show, as rows for the table printer.
namespace nam::cli {

computeserver::ResultSet MembersReport(const proto::Cluster& cluster);
/// One row a table. `readable`: sizes as `1.5 GiB` and memory servers in one column; otherwise in bytes. With
/// a `cluster` also the state of each: what it has lost, and whom it waits for.
computeserver::ResultSet TablesReport(const std::vector<proto::Table>& tables, bool readable,
                                      const proto::Cluster* cluster = nullptr);
/// One row a column.
computeserver::ResultSet ColumnsReport(const proto::Table& table);
/// One row an index, and a CHECK, of a record table.
computeserver::ResultSet IndexesReport(const proto::Table& table);
computeserver::ResultSet ChecksReport(const proto::Table& table);
/// Where a table's blocks lie: one row for each memory server of each table.
computeserver::ResultSet PlacementReport(const std::vector<proto::Table>& tables);

}  // namespace nam::cli
