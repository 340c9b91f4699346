#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "proto/catalog.pb.h"
#include "session/session.h"
#include "terminal/json_report.h"

/// The contents of `nam status` and the shell's \d, \dt and \servers, as rows for the table printer.
namespace nam::cli {

/// The fabric's constants that `nam bench calibrate` has measured, or a note that there are none.
std::string CalibrationLine(const proto::Cluster& cluster);
/// With the scratch memory of the memory servers that have reported it.
session::ResultSet MembersReport(const proto::Cluster& cluster, const ScratchUses& scratch = {});
/// One row a table, with its state: its losses, and the servers that it waits for. `readable`: sizes as
/// `1.5 GiB` and memory servers in one column; otherwise in bytes.
session::ResultSet TablesReport(const std::vector<proto::Table>& tables, bool readable,
                                const proto::Cluster& cluster);
/// One row a view, and a schema, of the catalog's entries.
session::ResultSet ViewsReport(const std::vector<proto::Table>& entries);
session::ResultSet SchemasReport(const std::vector<proto::Table>& entries);
/// One row a column.
session::ResultSet ColumnsReport(const proto::Table& table);
/// One row an index, and a CHECK, of a record table.
session::ResultSet IndexesReport(const proto::Table& table);
session::ResultSet ChecksReport(const proto::Table& table);
/// One row a foreign key: those of the table, then those of other tables to it. `find`: a table by its name;
/// null if there is none.
using FindTable = std::function<std::shared_ptr<const proto::Table>(const std::string& name)>;
session::ResultSet ForeignKeysReport(const proto::Table& table, const FindTable& find);
/// The places of tables' blocks: one row for each memory server of each table.
session::ResultSet PlacementReport(const std::vector<proto::Table>& tables);

}  // namespace nam::cli
