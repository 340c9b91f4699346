#include "catalog/certificates.h"

#include <gtest/gtest.h>

#include <string>

#include "tests/catalog/own_certificates.h"

namespace nam::catalog {
namespace {

class CertificatesTest : public testing::Test {
 protected:
  // Files with the certificate of one identity and the authority of another.
  TlsFiles Write(const Identity& mine, const Identity& authority) {
    return {WriteText(folder_, "crt", mine.certificate), WriteText(folder_, "key", mine.key),
            WriteText(folder_, "ca", authority.authority)};
  }
  std::string Refused(const TlsFiles& files) {
    const auto identity = ReadIdentity(files);
    EXPECT_FALSE(identity.ok());
    return std::string(identity.status().message());
  }

  const TempFolder folder_;
};

TEST_F(CertificatesTest, OneSecretHasOneAuthority) {
  const Identity one = MakeIdentity("secret"), other = MakeIdentity("secret"), guess = MakeIdentity("guess");
  EXPECT_NE(one.certificate, other.certificate);
  EXPECT_NE(one.key, other.key);
  EXPECT_TRUE(ReadIdentity(Write(one, other)).ok());
  EXPECT_TRUE(ReadIdentity(Write(other, one)).ok());
  EXPECT_NE(Refused(Write(guess, one)).find("does not hold against"), std::string::npos);
  EXPECT_NE(Refused(Write(one, guess)).find("does not hold against"), std::string::npos);
}

TEST_F(CertificatesTest, TheNameDependsOnTheSecretAndHidesIt) {
  EXPECT_EQ(KnockName("secret"), KnockName("secret"));
  EXPECT_NE(KnockName("secret"), KnockName("Secret"));
  EXPECT_EQ(KnockName("secret").find("secret"), std::string::npos);
  EXPECT_EQ(KnockName("secret").size(), 66u);  // a label of a domain name has 63 bytes at most
}

TEST_F(CertificatesTest, AnOperatorsFilesAreCheckedOneByOne) {
  const TlsFiles good = SelfSigned(folder_, "good"), other = SelfSigned(folder_, "other");
  EXPECT_TRUE(ReadIdentity(good).ok());
  TlsFiles files = good;
  files.key = "";
  EXPECT_NE(Refused(files).find("--tls-key"), std::string::npos);
  files.key = folder_.File("none");
  EXPECT_NE(Refused(files).find("No such file"), std::string::npos);
  files.key = folder_.File("pipe");
  ASSERT_EQ(::mkfifo(files.key.c_str(), 0600), 0);
  EXPECT_NE(Refused(files).find("no regular file"), std::string::npos) << "and without waiting for a writer";
  files.key = other.key;
  EXPECT_NE(Refused(files).find("is not that of the certificate"), std::string::npos);
  files.key = good.certificate;
  EXPECT_NE(Refused(files).find("no private key"), std::string::npos);
  files = good;
  files.certificate = WriteText(folder_, "empty", "");
  EXPECT_NE(Refused(files).find("no certificate in PEM"), std::string::npos);
  files = good;
  files.authority = other.authority;
  EXPECT_NE(Refused(files).find("does not hold against"), std::string::npos);
  ::chmod(good.key.c_str(), 0644);
  EXPECT_NE(Refused(good).find("chmod 600"), std::string::npos);
  EXPECT_NE(Refused(SelfSigned(folder_, "old", -1)).find("certificate has expired"), std::string::npos);
}

}  // namespace
}  // namespace nam::catalog
