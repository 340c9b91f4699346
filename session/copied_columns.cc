#include "session/copied_columns.h"

#include <charconv>
#include <limits>
#include <optional>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "base/utf8.h"
#include "partitioner/assigned_value.h"
#include "types/date.h"
#include "types/real.h"
#include "types/sql_error.h"
#include "types/wire.h"

namespace nam::session {
namespace {

using partitioner::ColumnBatch;

/// No sum of so many digits overflows.
constexpr size_t kSafeDigits = 18;

bool IsDigit(char c) {
  return c >= '0' && c <= '9';
}

/// Parses `[-]digits[.digits]`, with at most `scale` decimals, as n / 10^scale.
bool ReadNumber(std::string_view text, int scale, int64_t& number) {
  const bool negative = !text.empty() && text[0] == '-';
  if (negative) text.remove_prefix(1);
  if (text.empty() || text.size() > kSafeDigits || !IsDigit(text[0])) return false;
  int64_t n = 0;
  size_t at = 0;
  for (; at < text.size() && IsDigit(text[at]); ++at) n = 10 * n + (text[at] - '0');
  int decimals = 0;
  if (at < text.size() && text[at] == '.') {
    for (++at; at < text.size() && IsDigit(text[at]); ++at, ++decimals) n = 10 * n + (text[at] - '0');
  }
  if (at != text.size() || decimals > scale) return false;
  // Its digits are at most those of `text` and `scale` together.
  if (text.size() + static_cast<size_t>(scale - decimals) > kSafeDigits) return false;
  for (; decimals < scale; ++decimals) n *= 10;
  number = negative ? -n : n;
  return true;
}

/// `YYYY-MM-DD`.
bool ReadDate(std::string_view text, int64_t& days) {
  if (text.size() != 10 || text[4] != '-' || text[7] != '-') return false;
  for (const size_t at : {0, 1, 2, 3, 5, 6, 8, 9}) {
    if (!IsDigit(text[at])) return false;
  }
  const auto digit = [&](size_t at) { return text[at] - '0'; };
  const CivilDate date{1000 * digit(0) + 100 * digit(1) + 10 * digit(2) + digit(3), 10 * digit(5) + digit(6),
                       10 * digit(8) + digit(9)};
  if (date.year < 1 || date.month < 1 || date.month > 12 || date.day < 1 ||
      date.day > DaysInMonth(date.year, date.month))
    return false;
  days = DaysFromCivil(date);
  return true;
}

/// `YYYY-MM-DD hh:mm:ss`, with up to six digits of a second's fraction.
bool ReadTimestamp(std::string_view text, int64_t& us) {
  constexpr size_t kDate = 10, kSeconds = 19, kMost = 26;
  if (text.size() < kSeconds || text.size() > kMost || (text[kDate] != ' ' && text[kDate] != 'T') ||
      text[13] != ':' || text[16] != ':')
    return false;
  int64_t days = 0;
  if (!ReadDate(text.substr(0, kDate), days)) return false;
  for (const size_t at : {11, 12, 14, 15, 17, 18}) {
    if (!IsDigit(text[at])) return false;
  }
  const auto two = [&](size_t at) { return 10 * (text[at] - '0') + (text[at + 1] - '0'); };
  const int64_t hours = two(11), minutes = two(14), seconds = two(17);
  if (hours > 23 || minutes > 59 || seconds > 59) return false;
  if (text.size() > kSeconds && (text[kSeconds] != '.' || text.size() == kSeconds + 1)) return false;
  int64_t fraction = 0;
  for (size_t at = kSeconds + 1; at < kMost; ++at) {
    if (at < text.size() && !IsDigit(text[at])) return false;
    fraction = 10 * fraction + (at < text.size() ? text[at] - '0' : 0);
  }
  us = (((days * 24 + hours) * 60 + minutes) * 60 + seconds) * 1'000'000 + fraction;
  return true;
}

bool ReadBool(std::string_view text, int64_t& truth) {
  truth = text == "true" || text == "t" ? 1 : 0;
  return truth == 1 || text == "false" || text == "f";
}

/// Any finite number as PostgreSQL writes it.
bool ReadDouble(std::string_view text, int64_t& bits) {
  const size_t first = text.starts_with('-') ? 1 : 0;
  if (first == text.size() || !IsDigit(text[first])) return false;
  double x = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), x);
  if (error != std::errc() || end != text.data() + text.size()) return false;
  bits = OrderedBits(x);
  return true;
}

}  // namespace

CopiedColumns::CopiedColumns(const sql::CopyStatement& statement, CopiedRows& rows, bool whole,
                             const std::vector<bool>& kept)
    : statement_(statement),
      rows_(rows),
      row_bytes_(whole ? std::make_optional<partitioner::RowBytes>(*statement.insert.table.table)
                       : std::nullopt) {
  const proto::Table& table = *statement.insert.table.table;
  for (int i = 0; i < table.columns_size(); ++i) {
    const proto::Type& type = table.columns(i).type();
    Column& column = columns_.emplace_back();
    column.field = kNoField;
    column.kept = kept.empty() || kept[static_cast<size_t>(i)];
    column.form = partitioner::FormOf(TypeOf(type).value_or(Type::Null()));
    column.absent = sql::ConstantDefault(table.columns(i)).value_or(Value::Null(ColumnTypeOf(type)));
    for (size_t f = 0; f < statement.insert.columns.size(); ++f) {
      if (statement.insert.columns[f] == i) column.field = f;
    }
    if (column.field < statement.forms.size() && statement.forms[column.field] != csv::FieldForm::kText)
      column.read = statement.forms[column.field];
    column.formatted =
        column.read != csv::FieldForm::kNone && statement.dialect.formats != csv::FieldFormats();
    switch (ColumnTypeOf(type).kind) {
      case TypeKind::kInteger:
        column.fast = Fast::kInteger;
        column.most = type.precision() == 2   ? std::numeric_limits<int16_t>::max()
                      : type.precision() == 4 ? std::numeric_limits<int32_t>::max()
                                              : std::numeric_limits<int64_t>::max();
        column.least = -column.most - 1;
        break;
      case TypeKind::kDecimal:
        if (column.form == partitioner::Form::kWide) break;
        column.fast = Fast::kDecimal;
        column.scale = static_cast<int>(type.scale());
        column.most =
            static_cast<int64_t>(PowerOfTen(type.precision() == 0 ? partitioner::kNumberDigits
                                                                  : static_cast<int>(type.precision()))) -
            1;
        column.least = -column.most;
        break;
      case TypeKind::kDate:
        column.fast = Fast::kDate;
        column.least = kLeastDay;
        column.most = kGreatestDay;
        break;
      case TypeKind::kTimestamp:
        column.fast = Fast::kTimestamp;
        break;
      case TypeKind::kBool:
        column.fast = Fast::kBool;
        break;
      case TypeKind::kDouble:
        column.fast = Fast::kDouble;
        break;
      case TypeKind::kString:
        if (type.blank_padded()) break;
        column.fast = Fast::kText;
        column.characters = type.length() == Type::kAnyLength ? 0 : type.length();
        break;
      default:
        break;
    }
  }
}

bool CopiedColumns::ReadFast(const Column& column, std::string_view text, int64_t& number) {
  int bad = 0;
  switch (column.fast) {
    case Fast::kInteger:
      return ReadNumber(text, 0, number) && text.back() != '.' && number >= column.least &&
             number <= column.most;
    case Fast::kDecimal:
      return ReadNumber(text, column.scale, number) && number >= column.least && number <= column.most;
    case Fast::kDate:
      return ReadDate(text, number);
    case Fast::kTimestamp:
      return ReadTimestamp(text, number);
    case Fast::kBool:
      return ReadBool(text, number);
    case Fast::kDouble:
      return ReadDouble(text, number);
    case Fast::kText:
      // There are at least as many bytes as characters.
      return (column.characters == 0 || text.size() <= column.characters) && IsCleanUtf8(text, &bad);
    case Fast::kNone:
      return false;
  }
  return false;
}

absl::Status CopiedColumns::ReadForm(const Column& column, csv::Field& field) {
  const std::optional<std::string_view> text =
      csv::Canonical(field.text, column.read, statement_.dialect.formats, canonical_);
  if (text.has_value()) {
    field = {.text = *text, .null = text->empty()};
    return absl::OkStatus();
  }
  // PostgreSQL's own input may read it, but as another value than is meant.
  NAM_RETURN_IF_ERROR(rows_.ValueOf(column.field, field).status());
  return UserError(
      sqlstate::kBadText,
      absl::StrCat(Quote(field.text), " is not written as the first rows are: ", csv::Described(column.read)),
      -1);
}

absl::Status CopiedColumns::AddField(size_t c, csv::Field field, ColumnBatch& batch) {
  const Column& column = columns_[c];
  ColumnBatch::Column& out = batch.column(c);
  int64_t fast = 0;
  bool is_fast = !field.null && !column.formatted && ReadFast(column, field.text, fast);
  if (column.read != csv::FieldForm::kNone && !field.null && (!is_fast || csv::HasLeadingZero(field.text))) {
    if (const absl::Status status = ReadForm(column, field); !status.ok())
      return rows_.AtField(column.field, status);
    is_fast = !field.null && ReadFast(column, field.text, fast);
  }
  std::string_view text = field.text;
  if (is_fast) {
    if (column.kept) out.Push(column.form, fast, text);
  } else {
    const absl::StatusOr<Value> value = rows_.ValueOf(column.field, field);
    if (!value.ok()) return rows_.AtField(column.field, value.status());
    if (!column.kept) return absl::OkStatus();
    if (value->null) {
      out.PushNull(column.form, batch.rows());
      return absl::OkStatus();
    }
    if (column.form == partitioner::Form::kText) text = batch.Keep(value->text);
    out.Push(column.form, value->number, text);
  }
  return absl::OkStatus();
}

absl::Status CopiedColumns::Add(const std::vector<csv::Field>& fields, ColumnBatch& batch) {
  const proto::Table& table = *statement_.insert.table.table;
  for (size_t c = 0; c < columns_.size(); ++c) {
    absl::Status added;
    if (columns_[c].field != kNoField) {
      added = AddField(c, fields[columns_[c].field], batch);
    } else {
      const absl::StatusOr<Value> value =
          partitioner::Assign(table, static_cast<int>(c), columns_[c].absent, -1);
      added = value.ok() ? absl::OkStatus() : rows_.AtRow(value.status());
      if (added.ok() && value->null) {
        batch.column(c).PushNull(columns_[c].form, batch.rows());
      } else if (added.ok()) {
        const bool text = columns_[c].form == partitioner::Form::kText;
        batch.column(c).Push(columns_[c].form, value->number,
                             text ? batch.Keep(value->text) : std::string_view());
      }
    }
    if (!added.ok()) {
      TakeBack(batch);
      return added;
    }
  }
  if (row_bytes_.has_value()) {
    if (const absl::Status fits = row_bytes_->Check(batch, batch.rows(), 1); !fits.ok()) {
      TakeBack(batch);
      return rows_.AtRow(fits);
    }
  }
  batch.set_rows(batch.rows() + 1);
  return absl::OkStatus();
}

void CopiedColumns::TakeBack(ColumnBatch& batch) const {
  for (size_t c = 0; c < columns_.size(); ++c) batch.column(c).Resize(batch.rows());
}

}  // namespace nam::session
