#include "tpcw/checkout.h"

#include <xxhash.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <utility>

#include "base/check.h"
#include "base/status_macros.h"
#include "types/wire.h"

namespace nam::tpcw {
namespace {

using txn::OperationKind;

constexpr uint64_t kRowsPerLoad = 256;

constexpr size_t kCheckWord = offsetof(RowHeader, check) / sizeof(uint64_t);

template <typename Row>
constexpr size_t kWordsOf = sizeof(Row) / sizeof(uint64_t);

template <typename Row>
uint64_t WordOf(const Row& row, size_t place) {
  uint64_t word;
  std::memcpy(&word, reinterpret_cast<const std::byte*>(&row) + place * sizeof word, sizeof word);
  return word;
}

template <typename Row>
uint64_t CheckOfRow(const Row& row) {
  uint64_t check = 0;
  for (size_t i = 0; i < kWordsOf<Row>; ++i) {
    check = (check ^ (i == kCheckWord ? 0 : WordOf(row, i))) * 0x9e3779b97f4a7c15;
    check ^= check >> 32;
  }
  return check;
}

/// Converts a bigint to its stored form, and back.
uint64_t StoredWord(uint64_t word) {
  return __builtin_bswap64(word ^ uint64_t{1} << 63);
}
uint64_t LoadedWord(uint64_t stored) {
  return __builtin_bswap64(stored) ^ uint64_t { 1 } << 63;
}

/// Two letters from U+1D400 to U+1D4FF that encode 16 bits of the write's hash, in UTF-8.
uint64_t FillerOf(uint64_t write) {
  constexpr uint64_t kTwoLetters = 0x80909df0'80909df0;  // the first byte the lowest
  constexpr uint64_t kGolden = 0x9e3779b97f4a7c15;
  const uint64_t hash = write * kGolden >> 48;
  return kTwoLetters + ((hash & 0x3f) << 24) + ((hash & 0xc0) << 10) + ((hash & 0x3f00) << 48) +
         ((hash & 0xc000) << 34);
}

/// A cache line of a filler, whose words are processed together.
using FillerLine = std::array<uint64_t, 8>;

/// True if the filler repeats the write's letters.
bool IsFilledWith(std::span<const std::byte> filler, uint64_t write) {
  if (filler.empty()) return true;
  const uint64_t letters = FillerOf(write);
  if (std::memcmp(filler.data(), &letters, sizeof letters) != 0) return false;
  return std::memcmp(filler.data(), filler.data() + sizeof letters, filler.size() - sizeof letters) == 0;
}

constexpr size_t kFillerCharacterBytes = 4;
constexpr const char* kHeaderColumns[] = {"id", "write", "check"};

TableSchema SchemaOf(const std::string& name, size_t row_bytes, std::initializer_list<const char*> words) {
  TableSchema schema{name, sizeof(Key), row_bytes, {}};
  size_t filler_bytes = row_bytes;
  const auto add = [&](const char* column, const Type& type) -> proto::Type& {
    proto::Column& added = *schema.table.add_columns();
    added.set_name(column);
    *added.mutable_type() = ToProto(type);
    return *added.mutable_type();
  };
  const auto add_word = [&](const char* column) {
    add(column, {.kind = TypeKind::kInteger, .precision = sizeof(uint64_t)});
    filler_bytes -= sizeof(uint64_t);
  };
  for (const char* column : kHeaderColumns) add_word(column);
  for (const char* column : words) add_word(column);
  if (filler_bytes > 0) {
    const auto length = static_cast<uint32_t>(filler_bytes / kFillerCharacterBytes);
    add("filler", Type::String(length)).set_precision(static_cast<uint32_t>(filler_bytes));
  }
  schema.table.mutable_record()->add_primary_key(kHeaderColumns[0]);
  return schema;
}

}  // namespace

absl::Status CheckoutOptions::Validate() const {
  const auto fits = [](size_t bytes, size_t words) { return bytes >= words && bytes % 8 == 0; };
  if (!fits(product_bytes, sizeof(ProductRow)) || !fits(order_bytes, sizeof(OrderRow)) ||
      !fits(line_bytes, sizeof(LineRow))) {
    return absl::InvalidArgumentError("rows of checkout: too short, or no multiple of 8 bytes");
  }
  if (products < kLinesPerOrder || products >= uint64_t{1} << 40) {
    return absl::InvalidArgumentError("checkout needs 3 products or more, and fewer than 2^40");
  }
  if (!(zipf_theta >= 0 && zipf_theta < 1)) {
    return absl::InvalidArgumentError("Zipf's exponent is at least 0 and below 1");
  }
  if (quantity_max < 1 || restock_below < quantity_max || restock_quantity < 1 ||
      initial_stock < restock_below) {
    return absl::InvalidArgumentError("stocks of checkout: a purchase could take more than there is");
  }
  return absl::OkStatus();
}

std::vector<TableSchema> CheckoutTables(const CheckoutOptions& options) {
  return {SchemaOf(kProducts, options.product_bytes, {"stock", "price"}),
          SchemaOf(kOrders, options.order_bytes, {"lines", "total"}),
          SchemaOf(kOrderLines, options.line_bytes, {"product", "quantity", "restocked", "price"})};
}

Key KeyOf(uint64_t id) {
  return std::bit_cast<Key>(StoredWord(id));
}

template <typename Row>
void WriteRow(const Row& words, std::span<std::byte> row) {
  NAM_CHECK(row.size() >= sizeof words && row.size() % 8 == 0);
  const uint64_t check = CheckOfRow(words);
  for (size_t i = 0; i < kWordsOf<Row>; ++i) {
    const uint64_t stored = StoredWord(i == kCheckWord ? check : WordOf(words, i));
    std::memcpy(row.data() + i * sizeof stored, &stored, sizeof stored);
  }
  FillerLine line;
  line.fill(FillerOf(words.write));
  std::span<std::byte> filler = row.subspan(sizeof words);
  for (; filler.size() >= sizeof line; filler = filler.subspan(sizeof line))
    std::memcpy(filler.data(), line.data(), sizeof line);
  std::memcpy(filler.data(), line.data(), filler.size());
}

template <typename Row>
std::optional<Row> ReadRow(std::span<const std::byte> row) {
  NAM_CHECK(row.size() >= sizeof(Row) && row.size() % 8 == 0);
  std::optional<Row> words(std::in_place);
  for (size_t i = 0; i < kWordsOf<Row>; ++i) {
    uint64_t word;
    std::memcpy(&word, row.data() + i * sizeof word, sizeof word);
    word = LoadedWord(word);
    std::memcpy(reinterpret_cast<std::byte*>(&*words) + i * sizeof word, &word, sizeof word);
  }
  if (words->check != CheckOfRow(*words) || !IsFilledWith(row.subspan(sizeof(Row)), words->write))
    words.reset();
  return words;
}

template void WriteRow(const ProductRow&, std::span<std::byte>);
template void WriteRow(const OrderRow&, std::span<std::byte>);
template void WriteRow(const LineRow&, std::span<std::byte>);
template std::optional<ProductRow> ReadRow(std::span<const std::byte>);
template std::optional<OrderRow> ReadRow(std::span<const std::byte>);
template std::optional<LineRow> ReadRow(std::span<const std::byte>);

uint64_t ValueOfRow(std::span<const std::byte> row, bool sound) {
  NAM_CHECK(row.size() >= sizeof(RowHeader));
  uint64_t stored;
  std::memcpy(&stored, row.data() + offsetof(RowHeader, write), sizeof stored);
  return sound ? LoadedWord(stored) : XXH3_64bits(row.data(), row.size()) | uint64_t{1} << 63;
}

void WriteNewProduct(const CheckoutOptions& options, uint64_t id, std::span<std::byte> row) {
  const int64_t price = 100 + static_cast<int64_t>(id * 7919 % 9900);
  // Clients' write numbers begin at 2^40.
  WriteRow(ProductRow{{.id = id, .write = id + 1, .check = 0}, options.initial_stock, price}, row);
}

absl::StatusOr<uint64_t> LoadProducts(const CheckoutOptions& options, txn::Session& session,
                                      const std::function<bool(uint64_t)>& progress) {
  NAM_RETURN_IF_ERROR(options.Validate());
  NAM_ASSIGN_OR_RETURN(const txn::TableHandle products, session.OpenTable(kProducts));
  std::vector<std::byte> row(options.product_bytes);
  uint64_t last_commit = 0;
  for (uint64_t first = 0; first < options.products; first += kRowsPerLoad) {
    const uint64_t end = std::min(first + kRowsPerLoad, options.products);
    NAM_RETURN_IF_ERROR(RunUnlessLost([&]() -> absl::Status {
      NAM_RETURN_IF_ERROR(session.Begin());
      for (uint64_t id = first; id < end; ++id) {
        WriteNewProduct(options, id, row);
        NAM_RETURN_IF_ERROR(session.Insert(products, row));
      }
      NAM_ASSIGN_OR_RETURN(last_commit, session.Commit());
      return absl::OkStatus();
    }));
    if (progress && !progress(end)) return absl::CancelledError("interrupted");
  }
  return last_commit;
}

void Purchase::Draw() {
  for (size_t i = 0; i < kLinesPerOrder; ++i) {
    const auto taken = [&](uint64_t product) {
      return std::any_of(bought_.begin(), bought_.begin() + static_cast<ptrdiff_t>(i),
                         [&](const Line& line) { return line.product == product; });
    };
    do {
      bought_[i].product = choice_.Draw(random_);
    } while (taken(bought_[i].product));
    bought_[i].quantity =
        1 + static_cast<int64_t>(random_.Below(static_cast<uint64_t>(options_.quantity_max)));
  }
}

bool Purchase::Take(size_t line, std::span<const std::byte> row) {
  const auto words = ReadRow<ProductRow>(row);
  if (!words.has_value() || words->id != bought_[line].product) return false;
  read_[line] = *words;
  return true;
}

int64_t Purchase::RestockedBy(size_t line) const {
  const bool short_of = read_[line].stock - bought_[line].quantity < options_.restock_below;
  return short_of ? options_.restock_quantity : 0;
}

uint64_t Purchase::FillOrder(uint64_t order, std::span<std::byte> row) {
  int64_t total = 0;
  for (size_t i = 0; i < kLinesPerOrder; ++i) total += bought_[i].quantity * read_[i].price;
  const uint64_t write = NextWrite();
  WriteRow(OrderRow{{.id = order, .write = write, .check = 0}, kLinesPerOrder, total}, row);
  return write;
}

uint64_t Purchase::FillLine(uint64_t order, size_t line, std::span<std::byte> row) {
  const Line& bought = bought_[line];
  const uint64_t write = NextWrite();
  WriteRow(LineRow{{.id = LineId(order, line), .write = write, .check = 0},
                   bought.product,
                   bought.quantity,
                   RestockedBy(line),
                   read_[line].price},
           row);
  return write;
}

uint64_t Purchase::FillProduct(size_t line, std::span<std::byte> row) {
  ProductRow product = read_[line];
  product.stock += RestockedBy(line) - bought_[line].quantity;
  product.write = NextWrite();
  WriteRow(product, row);
  return product.write;
}

CheckoutClient::CheckoutClient(const CheckoutOptions& options, const ProductChoice& choice, uint32_t client,
                               uint64_t seed, txn::Session& session, txn::HistoryRecorder* recorder)
    : options_(options),
      client_(client),
      purchase_(options, choice, client, seed),
      session_(session),
      recorder_(recorder),
      product_rows_(kLinesPerOrder * options.product_bytes),
      order_row_(options.order_bytes),
      line_rows_(kLinesPerOrder * options.line_bytes) {}

absl::Status CheckoutClient::OpenTables() {
  using Kind = txn::RowWrite::Kind;
  NAM_ASSIGN_OR_RETURN(const txn::TableHandle products, session_.OpenTable(kProducts));
  NAM_ASSIGN_OR_RETURN(const txn::TableHandle orders, session_.OpenTable(kOrders));
  NAM_ASSIGN_OR_RETURN(const txn::TableHandle lines, session_.OpenTable(kOrderLines));
  writes_[0] = {.kind = Kind::kInsert, .table = orders, .row = order_row_};
  for (size_t i = 0; i < kLinesPerOrder; ++i) {
    lookups_[i] = {products, keys_[i], product_row(i)};
    writes_[1 + i] = {.kind = Kind::kInsert, .table = lines, .row = line_row(i)};
    product_write(i) = {.kind = Kind::kUpdate, .table = products, .row = product_row(i)};
  }
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<CheckoutClient>> CheckoutClient::Open(const CheckoutOptions& options,
                                                                     const ProductChoice& choice,
                                                                     uint32_t client, uint64_t seed,
                                                                     txn::Session& session,
                                                                     txn::HistoryRecorder* recorder) {
  NAM_RETURN_IF_ERROR(options.Validate());
  NAM_CHECK(client < kClientsMax);
  std::unique_ptr<CheckoutClient> opened(
      new CheckoutClient(options, choice, client, seed, session, recorder));
  NAM_RETURN_IF_ERROR(opened->OpenTables());
  return opened;
}

void CheckoutClient::Record(OperationKind kind, HistoryTable table, uint64_t key, uint64_t value) {
  if (recorder_ == nullptr) return;
  const uint64_t record = txn::RecordId(table, key);
  if (kind == OperationKind::kRead) {
    recorder_->Read(record, value);
  } else {
    recorder_->Write(kind, record, value);
  }
}

absl::Status CheckoutClient::BeginAndReadProducts() {
  for (size_t i = 0; i < kLinesPerOrder; ++i) keys_[i] = KeyOf(purchase_.product(i));
  NAM_RETURN_IF_ERROR(session_.BeginAndRead(lookups_));
  if (recorder_ != nullptr) recorder_->Begin(session_.snapshot());
  bool all_sound = true;
  for (size_t i = 0; i < kLinesPerOrder; ++i) {
    const uint64_t product = purchase_.product(i);
    if (!lookups_[i].found) {
      Record(OperationKind::kRead, kProductsHistory, product, txn::kNoValue);
      return absl::DataLossError("checkout: a product is not there");
    }
    product_write(i).met = lookups_[i].met;
    const bool sound = purchase_.Take(i, lookups_[i].row);
    Record(OperationKind::kRead, kProductsHistory, product, ValueOfRow(lookups_[i].row, sound));
    all_sound &= sound;
    torn_rows_ += !sound;
  }
  return all_sound ? absl::OkStatus() : absl::DataLossError("checkout: a row is torn");
}

// Writes the order, its lines, and the products' new stocks.
absl::Status CheckoutClient::Write() {
  const uint64_t order = OrderId(client_, orders_.size() - 1);
  Record(OperationKind::kInsert, kOrdersHistory, order, purchase_.FillOrder(order, order_row_));
  for (size_t i = 0; i < kLinesPerOrder; ++i) {
    Record(OperationKind::kInsert, kOrderLinesHistory, LineId(order, i),
           purchase_.FillLine(order, i, line_row(i)));
  }
  for (size_t i = 0; i < kLinesPerOrder; ++i) {
    Record(OperationKind::kUpdate, kProductsHistory, purchase_.product(i),
           purchase_.FillProduct(i, product_row(i)));
  }
  return session_.Write(writes_);
}

absl::Status CheckoutClient::Work() {
  NAM_RETURN_IF_ERROR(BeginAndReadProducts());
  return Write();
}

absl::StatusOr<std::optional<txn::AbortReason>> CheckoutClient::Try() {
  orders_.push_back(OrderState::kUnknown);
  absl::Status status = Work();
  const bool committing = status.ok();
  uint64_t commit = 0;
  if (committing) {
    if (recorder_ != nullptr) recorder_->Committing();
    const auto committed = session_.Commit();
    status = committed.status();
    commit = committed.value_or(0);
  } else if (status.code() == absl::StatusCode::kDataLoss) {
    session_.Abort();
  }
  const auto reason = txn::AbortReasonOf(status);
  if (status.ok()) {
    orders_.back() = OrderState::kCommitted;
    if (recorder_ != nullptr) recorder_->RecordOutcome(txn::Outcome::kCommitted, commit);
    return std::nullopt;
  }
  // A commit that fails for any reason but a conflict may have committed.
  if (reason.has_value() || !committing) orders_.back() = OrderState::kAborted;
  if (recorder_ != nullptr && !committing) recorder_->End(txn::Outcome::kAborted, 0);
  if (recorder_ != nullptr && committing && reason.has_value())
    recorder_->RecordOutcome(txn::Outcome::kAborted, 0);
  if (reason.has_value()) return reason;
  return status;
}

}  // namespace nam::tpcw
