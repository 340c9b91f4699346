#include "catalog/checked_rows.h"

#include <xxhash.h>

#include <cstring>
#include <memory>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "base/check.h"
#include "base/status_macros.h"

namespace nam::catalog {
namespace {

void BindField(Statement& statement, const Row::Field& field, char kind) {
  if (kind == 'i') {
    statement.Bind(std::get<uint64_t>(field));
  } else if (kind == 't') {
    statement.BindText(std::get<std::string>(field));
  } else {
    statement.BindBlob(std::get<std::string>(field));
  }
}

std::string UpsertOf(const RowLayout& layout) {
  std::string marks, updates;
  for (size_t i = 0; i < layout.columns.size(); ++i) {
    absl::StrAppend(&marks, "?, ");
    if (i != 0) absl::StrAppend(&updates, layout.columns[i], " = excluded.", layout.columns[i], ", ");
  }
  // Not REPLACE, which deletes first and would violate the foreign key.
  return absl::StrCat("INSERT INTO ", layout.table, " (", absl::StrJoin(layout.columns, ", "),
                      ", checksum) VALUES (", marks, "?) ON CONFLICT (", layout.columns[0],
                      ") DO UPDATE SET ", updates, "checksum = excluded.checksum");
}

std::string RowName(const RowLayout& layout, const Row& row) {
  if (layout.kinds[0] == 'i') return absl::StrFormat("row %d of `%s`", row.Number(0), layout.table);
  return absl::StrFormat("row `%s` of `%s`", row.Bytes(0), layout.table);
}

}  // namespace

uint64_t Row::Checksum(const RowLayout& layout) const {
  const std::unique_ptr<XXH3_state_t, decltype(&XXH3_freeState)> state(XXH3_createState(), &XXH3_freeState);
  NAM_CHECK(state != nullptr);
  XXH3_64bits_reset(state.get());
  const auto add_number = [&](uint64_t number) { XXH3_64bits_update(state.get(), &number, sizeof(number)); };
  const auto add_bytes = [&](const char* bytes, size_t size) {
    add_number(size);
    XXH3_64bits_update(state.get(), bytes, size);
  };
  add_bytes(layout.table, std::strlen(layout.table));
  for (const Field& field : fields_) {
    if (const auto* number = std::get_if<uint64_t>(&field)) {
      add_number(*number);
    } else {
      const auto& bytes = std::get<std::string>(field);
      add_bytes(bytes.data(), bytes.size());
    }
  }
  return XXH3_64bits_digest(state.get());
}

absl::StatusOr<uint64_t> CheckedRows::StoredChecksum(const RowLayout& layout, const Row::Field& key) {
  const std::string sql =
      absl::StrCat("SELECT checksum FROM ", layout.table, " WHERE ", layout.columns[0], " = ?");
  Statement statement(database_, sql.c_str());
  BindField(statement, key, layout.kinds[0]);
  NAM_ASSIGN_OR_RETURN(const bool found, statement.Next());
  return found ? statement.Integer(0) : 0;
}

absl::Status CheckedRows::Put(const RowLayout& layout, const Row& row) {
  NAM_ASSIGN_OR_RETURN(const uint64_t before, StoredChecksum(layout, row.fields()[0]));
  const uint64_t checksum = row.Checksum(layout);
  const std::string sql = UpsertOf(layout);
  Statement statement(database_, sql.c_str());
  for (size_t i = 0; i < layout.columns.size(); ++i) BindField(statement, row.fields()[i], layout.kinds[i]);
  NAM_RETURN_IF_ERROR(statement.Bind(checksum).Run());
  sum_ += checksum - before;
  return absl::OkStatus();
}

absl::Status CheckedRows::Delete(const RowLayout& layout, const Row::Field& key) {
  NAM_ASSIGN_OR_RETURN(const uint64_t before, StoredChecksum(layout, key));
  const std::string sql = absl::StrCat("DELETE FROM ", layout.table, " WHERE ", layout.columns[0], " = ?");
  Statement statement(database_, sql.c_str());
  BindField(statement, key, layout.kinds[0]);
  NAM_RETURN_IF_ERROR(statement.Run());
  sum_ -= before;
  return absl::OkStatus();
}

absl::Status CheckedRows::Scan(const RowLayout& layout, const std::function<absl::Status(const Row&)>& row) {
  const std::string sql = absl::StrCat("SELECT ", absl::StrJoin(layout.columns, ", "), ", checksum FROM ",
                                       layout.table, " ORDER BY ", layout.columns[0]);
  Statement statement(database_, sql.c_str());
  const int columns = static_cast<int>(layout.columns.size());
  while (true) {
    NAM_ASSIGN_OR_RETURN(const bool more, statement.Next());
    if (!more) return absl::OkStatus();
    std::vector<Row::Field> fields;
    for (int i = 0; i < columns; ++i) {
      if (!statement.Is(layout.kinds[i], i)) {
        return database_.Damaged(absl::StrFormat("a row of `%s` has a %s of another type", layout.table,
                                                 layout.columns[static_cast<size_t>(i)]));
      }
      if (layout.kinds[i] == 'i') {
        fields.emplace_back(statement.Integer(i));
      } else {
        fields.emplace_back(statement.Bytes(i));
      }
    }
    const Row read(std::move(fields));
    const uint64_t checksum = read.Checksum(layout);
    if (!statement.Is('i', columns) || statement.Integer(columns) != checksum) {
      return database_.Damaged(absl::StrCat("the checksum of ", RowName(layout, read), " does not fit it"));
    }
    sum_ += checksum;
    NAM_RETURN_IF_ERROR(row(read));
  }
}

}  // namespace nam::catalog
