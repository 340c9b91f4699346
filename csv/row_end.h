#pragma once

#include <cstddef>
#include <string_view>

#include "csv/dialect.h"

namespace nam::csv {

/// The end of the last whole row in `text`: after its line end; 0 if there is none. `text` begins with a row.
///
///     1,"a          2,b           3,"c
///     b",x ⏎        …    ⏎        d
///                         └ here     the quote is open: this line end is a field's
size_t EndOfLastRow(std::string_view text, const Dialect& dialect);

}  // namespace nam::csv
