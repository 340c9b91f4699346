// The first bytes that a stranger sends to a gRPC port: they are inspected before TLS.

#include <string>
#include <string_view>

#include "base/check.h"
#include "catalog/client_hello.h"
#include "tests/catalog/tls_hello.h"
#include "tests/fuzz/fuzz.h"

namespace nam::fuzz {

std::vector<std::string> Seeds() {
  return {TlsHello("knock.nam"), TlsHello(""), TlsHello(std::string(300, 'n')),
          TlsHello("knock.nam") + "more", TlsHello("knock.nam").substr(0, 30)};
}

}  // namespace nam::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace nam::catalog;
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  std::string_view name;
  const Hello hello = ParseHello(bytes, &name);
  const bool within = name.empty() || (name.data() >= bytes.data() &&
                                       name.data() + name.size() <= bytes.data() + bytes.size());
  NAM_CHECK(within, "a name from elsewhere");
  NAM_CHECK(name.empty() || hello == Hello::kComplete, "a name without a hello");
  // Foreign or complete input stays so when more bytes follow it.
  if (hello != Hello::kIncomplete) {
    std::string_view again;
    NAM_CHECK(ParseHello(std::string(bytes) + "more", &again) == hello, "more bytes change a judgement");
  }
  return 0;
}
