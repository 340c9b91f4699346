#include "catalog/client_hello.h"

#include <gtest/gtest.h>

#include <string>

#include "tests/catalog/tls_hello.h"

namespace nam::catalog {
namespace {

TEST(ClientHelloTest, TheNameIsReadOnceTheHelloIsComplete) {
  const std::string hello = TlsHello("knock.nam");
  std::string_view name;
  for (size_t bytes = 0; bytes < hello.size(); ++bytes)
    EXPECT_EQ(ParseHello(std::string_view(hello).substr(0, bytes), &name), Hello::kIncomplete) << bytes;
  EXPECT_EQ(ParseHello(hello, &name), Hello::kComplete);
  EXPECT_EQ(name, "knock.nam");
  const std::string more = hello + "what follows";
  EXPECT_EQ(ParseHello(more, &name), Hello::kComplete);
  EXPECT_EQ(name, "knock.nam");
  const std::string nameless = TlsHello("");
  EXPECT_EQ(ParseHello(nameless, &name), Hello::kComplete);
  EXPECT_EQ(name, "");
}

TEST(ClientHelloTest, OtherBytesAreForeignAtOnce) {
  std::string_view name;
  const std::string hello = TlsHello("knock.nam");
  for (const std::string& other :
       {std::string("G"), std::string("GET / HTTP/1.1\r\n"), std::string("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"),
        std::string("\x16\x02", 2), std::string("\x16\x03\x01\x00\x00", 5),
        std::string("\x16\x03\x01\xff\xff", 5), std::string("\x16\x03\x01\x00\x10\x02", 6)}) {
    EXPECT_EQ(ParseHello(other, &name), Hello::kForeign) << other;
    EXPECT_EQ(name, "");
  }
  std::string short_record = hello;
  short_record[4] = static_cast<char>(short_record[4] - 1);  // ends within the name
  EXPECT_EQ(ParseHello(short_record, &name), Hello::kForeign);
}

}  // namespace
}  // namespace nam::catalog
