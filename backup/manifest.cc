#include "backup/manifest.h"

#include <algorithm>
#include <array>
#include <set>
#include <span>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "base/status_macros.h"
#include "memserver/sealed_file.h"
#include "storage/checksum.h"
#include "storage/remote_ptr.h"

namespace nam::backup {
namespace {

constexpr char kFirstWords[] = "nam backup ";
constexpr uint32_t kFormat = 1;
constexpr size_t kMemoryServersMax = 65'535;
constexpr size_t kTextBytesMax = 1'024;  // a name's limit, before it is escaped
constexpr std::array<const char*, 4> kKinds = {"columnar", "record", "view", "schema"};

uint64_t ChecksumOf(absl::string_view text) {
  return storage::Checksum(std::as_bytes(std::span(text.data(), text.size())));
}

/// Takes a text apart; what is wrong first makes all that follows wrong.
class Lines {
 public:
  explicit Lines(absl::string_view text) : rest_(text) {}

  /// Whether the next line begins with these words. Then Word, Number and Rest take what follows.
  bool Next(absl::string_view words) {
    const size_t end = rest_.find('\n');
    absl::string_view line = rest_.substr(0, end);
    if (!ok_ || end == absl::string_view::npos || !absl::ConsumePrefix(&line, words)) return false;
    ok_ = line_.empty();  // nothing is left of the one before
    line_ = line;
    rest_.remove_prefix(end + 1);
    return ok_;
  }
  /// As Next, of a line that must be there.
  void Expect(absl::string_view words) { ok_ = Next(words) && ok_; }

  absl::string_view Word() {
    const size_t space = line_.find(' ');
    const absl::string_view word = line_.substr(0, space);
    ok_ = ok_ && !word.empty() && space != absl::string_view::npos;
    line_.remove_prefix(ok_ ? space + 1 : line_.size());
    return word;
  }
  uint64_t Number() { return NumberOf(Word()); }
  uint64_t HexNumber() { return HexNumberOf(Word()); }
  /// Those of what is left of the line.
  uint64_t LastNumber() { return NumberOf(std::exchange(line_, {})); }
  uint64_t LastHexNumber() { return HexNumberOf(std::exchange(line_, {})); }
  std::string LastText() {
    std::string text;
    ok_ = ok_ && absl::CUnescape(std::exchange(line_, {}), &text) && text.size() <= kTextBytesMax;
    return text;
  }
  absl::string_view rest() const { return rest_; }
  void Fail() { ok_ = false; }
  bool ok() const { return ok_ && line_.empty(); }

 private:
  uint64_t NumberOf(absl::string_view digits) {
    uint64_t number = 0;
    ok_ = ok_ && absl::SimpleAtoi(digits, &number) && absl::StrCat(number) == digits;
    return number;
  }
  uint64_t HexNumberOf(absl::string_view digits) {
    uint64_t number = 0;
    ok_ = ok_ && absl::SimpleHexAtoi(digits, &number) && absl::StrFormat("%016x", number) == digits;
    return number;
  }

  absl::string_view rest_;
  absl::string_view line_;
  bool ok_ = true;
};

void ReadMemoryServers(Lines& lines, Manifest& manifest) {
  while (lines.Next("memory_server ")) {
    const uint64_t storage = lines.Number();
    const uint64_t bytes = lines.LastNumber();
    const uint32_t before = manifest.memory_servers.empty() ? 0 : manifest.memory_servers.back().storage;
    if (storage <= before || storage > kMemoryServersMax || bytes > storage::kAddressSpaceBytes)
      return lines.Fail();
    manifest.memory_servers.push_back({static_cast<uint32_t>(storage), bytes});
  }
}

void ReadEntries(Lines& lines, Manifest& manifest) {
  while (lines.Next("table ")) {
    const absl::string_view kind = lines.Word();
    const auto known = std::ranges::find(kKinds, kind);
    if (known == kKinds.end()) return lines.Fail();
    Entry& entry = manifest.entries.emplace_back();
    entry.kind = static_cast<EntryKind>(known - kKinds.begin());
    entry.rows = lines.Number();
    entry.name = lines.LastText();
  }
}

bool MayHave(const Manifest& manifest, absl::string_view path) {
  if (path == kCatalogName || path == kRecordsName) return true;
  const std::optional<SealedPath> sealed = ParseSealedPath({path.data(), path.size()});
  return sealed.has_value() && std::ranges::any_of(manifest.memory_servers, [&](const MemoryServer& server) {
           return server.storage == sealed->storage;
         });
}

void ReadFiles(Lines& lines, Manifest& manifest) {
  std::set<std::string> paths;
  while (lines.Next("file ")) {
    SavedFile& file = manifest.files.emplace_back();
    file.bytes = lines.Number();
    file.checksum = lines.HexNumber();
    file.path = lines.LastText();
    if (!MayHave(manifest, file.path) || !paths.insert(file.path).second) return lines.Fail();
  }
}

absl::Status Damaged() {
  return absl::DataLossError("it is damaged");
}

}  // namespace

const SavedFile* Manifest::FindFile(std::string_view path) const {
  const auto found = std::ranges::find(files, path, &SavedFile::path);
  return found == files.end() ? nullptr : &*found;
}

uint64_t Manifest::bytes() const {
  uint64_t bytes = 0;
  for (const SavedFile& file : files) bytes += file.bytes;
  return bytes;
}

uint64_t Manifest::CountOf(EntryKind kind) const {
  return static_cast<uint64_t>(std::ranges::count(entries, kind, &Entry::kind));
}

std::string EncodeManifest(const Manifest& manifest) {
  std::string text = absl::StrCat(kFirstWords, kFormat, "\n");
  absl::StrAppendFormat(&text, "made %s by %s\n", manifest.made, absl::CEscape(manifest.program));
  absl::StrAppendFormat(&text, "cluster %016x %s %s\n", manifest.store, manifest.fabric,
                        absl::CEscape(manifest.cluster));
  absl::StrAppendFormat(&text, "schema %d\n", manifest.schema);
  for (const MemoryServer& server : manifest.memory_servers)
    absl::StrAppendFormat(&text, "memory_server %d %d\n", server.storage, server.memory_bytes);
  for (const Entry& entry : manifest.entries) {
    absl::StrAppendFormat(&text, "table %s %d %s\n", kKinds[static_cast<size_t>(entry.kind)], entry.rows,
                          absl::CEscape(entry.name));
  }
  for (const SavedFile& file : manifest.files)
    absl::StrAppendFormat(&text, "file %d %016x %s\n", file.bytes, file.checksum, file.path);
  absl::StrAppendFormat(&text, "end %016x\n", ChecksumOf(text));
  return text;
}

absl::StatusOr<Manifest> DecodeManifest(std::string_view whole) {
  const absl::string_view text(whole.data(), whole.size());
  if (text.size() > kManifestBytesMax) return Damaged();
  Lines lines(text);
  if (!lines.Next(kFirstWords)) return absl::DataLossError("it does not begin as a manifest does");
  if (const uint64_t format = lines.LastNumber(); lines.ok() && format != kFormat) {
    return absl::FailedPreconditionError(
        absl::StrFormat("it is of format %d, and this program reads format %d", format, kFormat));
  }
  Manifest manifest;
  lines.Expect("made ");
  manifest.made = std::string(lines.Word());
  if (lines.Word() != "by") lines.Fail();
  manifest.program = lines.LastText();
  lines.Expect("cluster ");
  manifest.store = lines.HexNumber();
  manifest.fabric = std::string(lines.Word());
  manifest.cluster = lines.LastText();
  lines.Expect("schema ");
  manifest.schema = lines.LastNumber();
  ReadMemoryServers(lines, manifest);
  ReadEntries(lines, manifest);
  ReadFiles(lines, manifest);
  const absl::string_view checked = text.substr(0, text.size() - lines.rest().size());
  lines.Expect("end ");
  const uint64_t checksum = lines.LastHexNumber();
  if (!lines.ok() || !lines.rest().empty() || checksum != ChecksumOf(checked)) return Damaged();
  return manifest;
}

std::string FolderOf(uint32_t storage) {
  return absl::StrCat("storage-", storage);
}

std::string SealedPathOf(uint32_t storage, AllocationId allocation) {
  return absl::StrCat(FolderOf(storage), "/", memserver::SealedFileName(allocation));
}

std::optional<SealedPath> ParseSealedPath(std::string_view path) {
  absl::string_view rest(path.data(), path.size());
  const size_t slash = rest.find('/');
  SealedPath parsed;
  if (slash == absl::string_view::npos || !absl::ConsumePrefix(&rest, "storage-") ||
      !absl::SimpleAtoi(rest.substr(0, rest.find('/')), &parsed.storage))
    return std::nullopt;
  parsed.name = std::string(path.substr(slash + 1));
  parsed.allocation = memserver::AllocationOfFileName(parsed.name);
  if (parsed.allocation == AllocationId() || SealedPathOf(parsed.storage, parsed.allocation) != path)
    return std::nullopt;
  return parsed;
}

}  // namespace nam::backup
