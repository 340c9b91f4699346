#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "csv/sample.h"

namespace nam::csv {

/// Whether the first row has names: docs/design/files-in-queries.md has the rule's reason.
///
///     no column is typed     → names      name,city ⏎ Ada,London
///     a value is unlike the
///       typed column's others → names     id,2019 ⏎ 1,2.5
///     else                    → a row     2019,Ada ⏎ 2020,Kurt
///
/// A typed column has values below, and they are no texts. A first row without any value has names, none.
bool HasHeader(const Sample& sample);

/// Names of a file's columns, as words of SQL in lower case: the first row's, without blanks around. What has
/// none is called column0, column1, … by its place; a name that is taken gets _1, _2, …. 22021 if one is not
/// UTF-8.
absl::StatusOr<std::vector<std::string>> NamesOf(const Sample& sample, bool header);

/// The names as the first row has them; empty if a column has none.
std::vector<std::string> WrittenNamesOf(const Sample& sample, bool header);

}  // namespace nam::csv
