#include "catalog/client_hello.h"

#include <cstddef>
#include <cstdint>

namespace nam::catalog {
namespace {

constexpr size_t kRecordHeaderBytes = 5;
constexpr size_t kRecordBytesMax = 16'384;
constexpr uint8_t kHandshakeRecord = 22;
constexpr uint8_t kClientHello = 1;
constexpr uint16_t kServerNameExtension = 0;
constexpr uint8_t kHostName = 0;

/// Reads numbers from front to back; fails for good when asked for more than there is.
class Cursor {
 public:
  explicit Cursor(std::string_view bytes) : bytes_(bytes) {}

  size_t Number(size_t width) {
    size_t number = 0;
    for (const char byte : Read(width)) number = number << 8 | static_cast<uint8_t>(byte);
    return number;
  }
  std::string_view Read(size_t bytes) {
    failed_ = failed_ || bytes > bytes_.size();
    if (failed_) return {};
    const std::string_view taken = bytes_.substr(0, bytes);
    bytes_.remove_prefix(bytes);
    return taken;
  }
  /// The part announced by a length of `width` bytes.
  Cursor Part(size_t width) {
    const size_t bytes = Number(width);
    return Cursor(Read(bytes));
  }
  bool more() const { return !failed_ && !bytes_.empty(); }
  bool failed() const { return failed_; }

 private:
  std::string_view bytes_;
  bool failed_ = false;
};

std::string_view HostNameOf(Cursor extension) {
  Cursor names = extension.Part(2);
  while (names.more()) {
    const size_t kind = names.Number(1);
    const size_t bytes = names.Number(2);
    const std::string_view name = names.Read(bytes);
    if (kind == kHostName) return name;
  }
  return {};
}

// struct { version; random[32]; session_id<>; cipher_suites<>; compression_methods<>; extensions<>; }
bool FindName(Cursor hello, std::string_view* name) {
  hello.Read(2 + 32);
  hello.Part(1);
  hello.Part(2);
  hello.Part(1);
  Cursor extensions = hello.Part(2);
  if (hello.failed()) return false;
  while (extensions.more()) {
    const size_t kind = extensions.Number(2);
    const Cursor extension = extensions.Part(2);
    if (kind == kServerNameExtension && !extensions.failed()) *name = HostNameOf(extension);
  }
  return !extensions.failed();
}

}  // namespace

Hello ParseHello(std::string_view bytes, std::string_view* name) {
  *name = {};
  static constexpr uint8_t kBegin[] = {kHandshakeRecord, 3};
  for (size_t i = 0; i < sizeof(kBegin) && i < bytes.size(); ++i) {
    if (static_cast<uint8_t>(bytes[i]) != kBegin[i]) return Hello::kForeign;
  }
  if (bytes.size() < kRecordHeaderBytes) return Hello::kIncomplete;
  Cursor header(bytes.substr(3));
  const size_t record_bytes = header.Number(2);
  if (record_bytes == 0 || record_bytes > kRecordBytesMax) return Hello::kForeign;
  if (bytes.size() > kRecordHeaderBytes && static_cast<uint8_t>(bytes[kRecordHeaderBytes]) != kClientHello)
    return Hello::kForeign;
  if (bytes.size() < kRecordHeaderBytes + record_bytes) return Hello::kIncomplete;
  Cursor record(bytes.substr(kRecordHeaderBytes, record_bytes));
  record.Number(1);
  const Cursor hello = record.Part(3);
  std::string_view found;
  if (record.failed() || !FindName(hello, &found)) return Hello::kForeign;
  *name = found;
  return Hello::kComplete;
}

}  // namespace nam::catalog
