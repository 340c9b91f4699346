#include "partitioner/group_reader.h"

#include <cstring>
#include <memory>
#include <numeric>
#include <optional>
#include <utility>

#include "absl/strings/str_format.h"
#include "base/mutex.h"
#include "base/status_macros.h"
#include "catalog/chain_groups.h"
#include "partitioner/table_metadata.h"
#include "storage/block_stream.h"
#include "storage/channel.h"
#include "types/wire.h"

namespace nam::partitioner {
namespace {

constexpr size_t kBatchRows = 16 << 10;

uint64_t CodeAt(const std::byte* page, uint8_t width, uint32_t row) {
  uint64_t code = 0;
  std::memcpy(&code, page + size_t{row} * width, width);
  return code;
}

/// The encoding of one column in one group.
struct GroupCodes {
  proto::Encoding encoding;
  std::shared_ptr<const storage::Dictionary> dictionary;
};

/// One thread of a read: its stream, and the batch that collects rows.
class Reader {
 public:
  using Take = std::function<absl::Status(const ColumnBatch& rows)>;
  Reader(const proto::Table& table, const Take& take)
      : table_(table), take_(take), batch_(static_cast<size_t>(table.columns_size())) {
    for (const proto::Column& column : table.columns())
      forms_.push_back(FormOf(TypeOf(column.type()).value_or(Type::Null())));
  }

  absl::Status Run(storage::Channel& channel, const storage::StreamOptions& options,
                   const storage::BlockStream::ChainSource& next_chain) {
    std::vector<uint32_t> columns(static_cast<size_t>(table_.columns_size()));
    std::iota(columns.begin(), columns.end(), 0);
    storage::BlockStream stream(channel, StreamTableOf(table_, columns), options, next_chain);
    while (true) {
      storage::BlockView block;
      NAM_ASSIGN_OR_RETURN(const bool more, stream.Next(block));
      if (!more) break;
      NAM_RETURN_IF_ERROR(Add(block, stream.chain().group));
      if (batch_.rows() >= kBatchRows) NAM_RETURN_IF_ERROR(Flush());
    }
    return Flush();
  }
  /// Reads the dictionaries of the stream's groups, before it runs.
  absl::Status ReadDictionaries(storage::Channel& channel, const std::vector<uint32_t>& groups) {
    codes_.resize(catalog::GroupCount(table_));
    for (const uint32_t group : groups) {
      for (uint32_t c = 0; c < forms_.size(); ++c) {
        GroupCodes& codes = codes_[group].emplace_back();
        codes.encoding = catalog::GroupColumnOf(table_, group, c).encoding();
        if (forms_[c] != Form::kText || codes.encoding.plain()) continue;
        NAM_ASSIGN_OR_RETURN(codes.dictionary, ReadDictionary(channel, codes.encoding.dictionary()));
      }
    }
    return absl::OkStatus();
  }

 private:
  absl::Status Add(const storage::BlockView& block, uint32_t group) {
    for (uint32_t c = 0; c < forms_.size(); ++c) {
      const GroupCodes& codes = codes_[group][c];
      if (!codes.encoding.plain()) {
        NAM_RETURN_IF_ERROR(AddCodes(block, c, codes));
      } else if (forms_[c] == Form::kText) {
        AddTexts(block, c);
      } else {
        AddNumbers(block, c);
      }
    }
    batch_.set_rows(batch_.rows() + block.rows());
    return absl::OkStatus();
  }
  absl::Status AddCodes(const storage::BlockView& block, uint32_t c, const GroupCodes& codes) {
    ColumnBatch::Column& out = batch_.column(c);
    const bool nullable = table_.columns(static_cast<int>(c)).nullable();
    const auto base = static_cast<uint64_t>(codes.encoding.base());
    for (uint32_t row = 0; row < block.rows(); ++row) {
      const uint64_t code = CodeAt(block.page(c), block.width(c), row);
      if (nullable && code == 0) {
        out.PushNull(forms_[c], batch_.rows() + row);
        continue;
      }
      const auto number = static_cast<int64_t>(base + code);
      if (codes.dictionary == nullptr) {
        out.Push(forms_[c], number, {});
        continue;
      }
      if (static_cast<uint64_t>(number) >= codes.dictionary->size())
        return absl::DataLossError(absl::StrFormat(
            "table %s: a code of column %d has no entry in its dictionary", table_.name(), c));
      out.Push(forms_[c], 0, (*codes.dictionary)[static_cast<size_t>(number)]);
    }
    return absl::OkStatus();
  }
  void AddTexts(const storage::BlockView& block, uint32_t c) {
    const storage::TextPage texts = block.texts(c);
    ColumnBatch::Column& out = batch_.column(c);
    for (uint32_t row = 0; row < block.rows(); ++row) {
      if (texts.IsNull(row)) {
        out.PushNull(Form::kText, batch_.rows() + row);
      } else {
        out.Push(Form::kText, 0, batch_.Keep(texts[row]));
      }
    }
  }
  void AddNumbers(const storage::BlockView& block, uint32_t c) {
    const storage::NumberPage numbers(block.page(c));
    ColumnBatch::Column& out = batch_.column(c);
    for (uint32_t row = 0; row < block.rows(); ++row) {
      if (numbers.IsNull(row)) {
        out.PushNull(forms_[c], batch_.rows() + row);
      } else {
        out.Push(forms_[c], numbers[row], {});
      }
    }
  }
  absl::Status Flush() {
    if (batch_.rows() > 0) NAM_RETURN_IF_ERROR(take_(batch_));
    batch_.Clear();
    return absl::OkStatus();
  }

  const proto::Table& table_;
  const Take& take_;
  std::vector<Form> forms_;
  std::vector<std::vector<GroupCodes>> codes_;  // by group, then column
  ColumnBatch batch_;
};

}  // namespace

absl::Status ReadGroups(catalog::Attachment& attachment, const proto::Table& table,
                        const GroupReadOptions& options,
                        const std::function<absl::Status(const ColumnBatch& rows)>& take) {
  const uint32_t partitions = catalog::PartitionCount(table);
  const auto chains = static_cast<uint32_t>(options.groups.size()) * partitions;
  std::atomic<uint32_t> next = 0;
  std::atomic<bool> stop = false;
  const auto next_chain = [&]() -> std::optional<storage::ChainStart> {
    while (!stop) {
      const uint32_t chain = next++;
      if (chain >= chains) break;
      storage::ChainStart start =
          ChainStartOf(table, options.groups[chain / partitions] * partitions + chain % partitions);
      if (start.blocks > 0) return start;
    }
    return std::nullopt;
  };
  // By READ: memory read in place may be reused after the check.
  const storage::StreamOptions stream{.in_place = false, .verify = true, .cancel = options.cancel};
  Mutex mutex;
  absl::Status first_error;
  const auto work = [&]() -> absl::Status {
    Reader reader(table, take);
    NAM_ASSIGN_OR_RETURN(const std::unique_ptr<storage::Channel> channel,
                         storage::Channel::Open(attachment.fabric(), attachment, {}));
    NAM_RETURN_IF_ERROR(reader.ReadDictionaries(*channel, options.groups));
    return reader.Run(*channel, stream, next_chain);
  };
  {
    std::vector<std::unique_ptr<fabric::Thread>> threads;
    for (int t = 0; t < options.threads; ++t) {
      threads.push_back(attachment.fabric().StartThread(absl::StrFormat("nam-compact-%d", t), [&] {
        const absl::Status status = work();
        if (status.ok()) return;
        stop = true;
        const MutexLock lock(mutex);
        first_error.Update(status);
      }));
    }
  }
  return first_error;
}

}  // namespace nam::partitioner
