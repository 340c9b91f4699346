#include "catalog/certificates.h"

#include <openssl/bio.h>
#include <openssl/bn.h>
#include <openssl/core_names.h>
#include <openssl/crypto.h>
#include <openssl/ec.h>
#include <openssl/evp.h>
#include <openssl/kdf.h>
#include <openssl/obj_mac.h>
#include <openssl/param_build.h>
#include <openssl/pem.h>
#include <openssl/rand.h>
#include <openssl/x509.h>
#include <openssl/x509v3.h>

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/check.h"
#include "base/private_file.h"
#include "base/status_macros.h"
#include "base/unique_fd.h"

namespace nam::catalog {
namespace {

/// gRPC's threads go on while a process exits, perhaps in a handshake: the library must not take away what
/// they use. Before main(), because what uses the library first decides.
[[maybe_unused]] const int kNoCleanupAtExit = OPENSSL_init_crypto(OPENSSL_INIT_NO_ATEXIT, nullptr);

constexpr char kAuthorityName[] = "nam cluster authority";
constexpr char kMemberName[] = "nam member";
constexpr char kNotBefore[] = "20000101000000Z";
constexpr char kNotAfter[] = "99991231235959Z";  // RFC 5280: no known expiration
constexpr size_t kScalarBytes = 32;

template <typename T, void (*kFree)(T*)>
struct Freed {
  void operator()(T* object) const { kFree(object); }
};
template <typename T, void (*kFree)(T*)>
using Owned = std::unique_ptr<T, Freed<T, kFree>>;

void FreeBio(BIO* bio) {
  BIO_free(bio);
}
void FreeCertificates(STACK_OF(X509) * certificates) {
  sk_X509_pop_free(certificates, X509_free);
}

using Key = Owned<EVP_PKEY, EVP_PKEY_free>;
using Certificate = Owned<X509, X509_free>;
using Number = Owned<BIGNUM, BN_clear_free>;
using Bytes = std::vector<unsigned char>;

// HKDF-SHA256 (RFC 5869): any number of bytes, different for each purpose.
Bytes Derive(const std::string& secret, const std::string& purpose, size_t bytes) {
  const Owned<EVP_KDF, EVP_KDF_free> kdf(EVP_KDF_fetch(nullptr, "HKDF", nullptr));
  const Owned<EVP_KDF_CTX, EVP_KDF_CTX_free> context(EVP_KDF_CTX_new(kdf.get()));
  Bytes derived(bytes);
  char digest[] = "SHA256";
  const OSSL_PARAM parameters[] = {
      OSSL_PARAM_construct_utf8_string(OSSL_KDF_PARAM_DIGEST, digest, 0),
      OSSL_PARAM_construct_octet_string(OSSL_KDF_PARAM_KEY, const_cast<char*>(secret.data()), secret.size()),
      OSSL_PARAM_construct_octet_string(OSSL_KDF_PARAM_INFO, const_cast<char*>(purpose.data()),
                                        purpose.size()),
      OSSL_PARAM_construct_end()};
  NAM_CHECK(context != nullptr && EVP_KDF_derive(context.get(), derived.data(), bytes, parameters) == 1,
            "HKDF");
  return derived;
}

Key KeyOfScalar(const BIGNUM& scalar, const EC_GROUP& group) {
  const Owned<EC_POINT, EC_POINT_free> point(EC_POINT_new(&group));
  NAM_CHECK(EC_POINT_mul(&group, point.get(), &scalar, nullptr, nullptr, nullptr) == 1, "P-256");
  unsigned char encoded[2 * kScalarBytes + 1];
  NAM_CHECK(EC_POINT_point2oct(&group, point.get(), POINT_CONVERSION_UNCOMPRESSED, encoded, sizeof(encoded),
                               nullptr) == sizeof(encoded),
            "P-256");
  const Owned<OSSL_PARAM_BLD, OSSL_PARAM_BLD_free> builder(OSSL_PARAM_BLD_new());
  NAM_CHECK(
      OSSL_PARAM_BLD_push_utf8_string(builder.get(), OSSL_PKEY_PARAM_GROUP_NAME, "prime256v1", 0) == 1 &&
          OSSL_PARAM_BLD_push_BN_pad(builder.get(), OSSL_PKEY_PARAM_PRIV_KEY, &scalar, kScalarBytes) == 1 &&
          OSSL_PARAM_BLD_push_octet_string(builder.get(), OSSL_PKEY_PARAM_PUB_KEY, encoded,
                                           sizeof(encoded)) == 1,
      "parameters of a key");
  const Owned<OSSL_PARAM, OSSL_PARAM_free> parameters(OSSL_PARAM_BLD_to_param(builder.get()));
  const Owned<EVP_PKEY_CTX, EVP_PKEY_CTX_free> context(EVP_PKEY_CTX_new_from_name(nullptr, "EC", nullptr));
  EVP_PKEY* key = nullptr;
  NAM_CHECK(EVP_PKEY_fromdata_init(context.get()) == 1 &&
                EVP_PKEY_fromdata(context.get(), &key, EVP_PKEY_KEYPAIR, parameters.get()) == 1,
            "a key of P-256");
  return Key(key);
}

// The first derived number that is a valid key; nearly always the very first.
Key AuthorityKey(const std::string& secret) {
  const Owned<EC_GROUP, EC_GROUP_free> group(EC_GROUP_new_by_curve_name(NID_X9_62_prime256v1));
  for (int attempt = 1;; ++attempt) {
    Bytes bytes = Derive(secret, absl::StrCat("nam control plane authority ", attempt), kScalarBytes);
    const Number scalar(BN_bin2bn(bytes.data(), static_cast<int>(bytes.size()), nullptr));
    OPENSSL_cleanse(bytes.data(), bytes.size());
    if (!BN_is_zero(scalar.get()) && BN_cmp(scalar.get(), EC_GROUP_get0_order(group.get())) < 0)
      return KeyOfScalar(*scalar, *group);
  }
}

void AddExtension(X509& certificate, int kind, const char* value) {
  const Owned<X509_EXTENSION, X509_EXTENSION_free> extension(
      X509V3_EXT_conf_nid(nullptr, nullptr, kind, value));
  NAM_CHECK(extension != nullptr && X509_add_ext(&certificate, extension.get(), -1) == 1,
            "an extension of a certificate");
}

Certificate NewCertificate(const char* subject, EVP_PKEY& key) {
  Certificate certificate(X509_new());
  X509& made = *certificate;
  unsigned char serial[16];
  NAM_CHECK(RAND_bytes(serial, sizeof(serial)) == 1, "random bytes");
  serial[0] = (serial[0] & 0x7f) | 1;  // positive, and of full length
  const Number number(BN_bin2bn(serial, sizeof(serial), nullptr));
  X509_NAME* const authority = X509_NAME_new();
  const Owned<X509_NAME, X509_NAME_free> owner(authority);
  const auto named = [](X509_NAME* name, const char* text) {
    return X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_ASC, reinterpret_cast<const unsigned char*>(text),
                                      -1, -1, 0) == 1;
  };
  NAM_CHECK(X509_set_version(&made, X509_VERSION_3) == 1 &&
                BN_to_ASN1_INTEGER(number.get(), X509_get_serialNumber(&made)) != nullptr &&
                ASN1_TIME_set_string_X509(X509_getm_notBefore(&made), kNotBefore) == 1 &&
                ASN1_TIME_set_string_X509(X509_getm_notAfter(&made), kNotAfter) == 1 &&
                named(X509_get_subject_name(&made), subject) && named(authority, kAuthorityName) &&
                X509_set_issuer_name(&made, authority) == 1 && X509_set_pubkey(&made, &key) == 1,
            "a certificate");
  return certificate;
}

template <typename Write>
std::string Pem(Write write) {
  const Owned<BIO, FreeBio> bio(BIO_new(BIO_s_mem()));
  NAM_CHECK(bio != nullptr && write(bio.get()) == 1, "PEM");
  char* text = nullptr;
  const long bytes = BIO_get_mem_data(bio.get(), &text);  // NOLINT(runtime/int): OpenSSL's
  return std::string(text, static_cast<size_t>(bytes));
}

std::string PemOf(X509& certificate) {
  return Pem([&](BIO* bio) { return PEM_write_bio_X509(bio, &certificate); });
}

Owned<BIO, FreeBio> Reader(const std::string& text) {
  return Owned<BIO, FreeBio>(BIO_new_mem_buf(text.data(), static_cast<int>(text.size())));
}

absl::StatusOr<std::string> ReadFile(const std::string& what, const std::string& path, bool private_one) {
  const std::string name = absl::StrFormat("the %s `%s`", what, path);
  const auto read = [&]() -> absl::StatusOr<std::string> {
    NAM_ASSIGN_OR_RETURN(const UniqueFd fd, OpenRegularFile(path, name));
    if (private_one) NAM_RETURN_IF_ERROR(CheckPrivateFile(fd.get(), name));
    return ReadAll(fd.get(), name);
  };
  absl::StatusOr<std::string> text = read();
  if (text.ok()) return text;
  return absl::InvalidArgumentError(text.status().message());
}

// The file's certificates; the first is the holder's own.
absl::StatusOr<Owned<STACK_OF(X509), FreeCertificates>> Parse(const std::string& what,
                                                              const std::string& path,
                                                              const std::string& text) {
  Owned<STACK_OF(X509), FreeCertificates> certificates(sk_X509_new_null());
  const auto reader = Reader(text);
  while (X509* const next = PEM_read_bio_X509(reader.get(), nullptr, nullptr, nullptr))
    sk_X509_push(certificates.get(), next);
  if (sk_X509_num(certificates.get()) == 0) {
    return absl::InvalidArgumentError(absl::StrFormat("the %s `%s` has no certificate in PEM", what, path));
  }
  return certificates;
}

absl::Status CheckChain(const TlsFiles& files, STACK_OF(X509) & chain, STACK_OF(X509) & authorities) {
  const Owned<X509_STORE, X509_STORE_free> store(X509_STORE_new());
  for (int i = 0; i < sk_X509_num(&authorities); ++i)
    X509_STORE_add_cert(store.get(), sk_X509_value(&authorities, i));
  const Owned<X509_STORE_CTX, X509_STORE_CTX_free> context(X509_STORE_CTX_new());
  NAM_CHECK(X509_STORE_CTX_init(context.get(), store.get(), sk_X509_value(&chain, 0), &chain) == 1,
            "a check of certificates");
  if (X509_verify_cert(context.get()) == 1) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrFormat(
      "the TLS certificate `%s` does not hold against `%s`: %s", files.certificate, files.authority,
      X509_verify_cert_error_string(X509_STORE_CTX_get_error(context.get()))));
}

}  // namespace

Identity MakeIdentity(const std::string& secret) {
  const Key authority_key = AuthorityKey(secret);
  const Certificate authority = NewCertificate(kAuthorityName, *authority_key);
  AddExtension(*authority, NID_basic_constraints, "critical,CA:TRUE,pathlen:0");
  AddExtension(*authority, NID_key_usage, "critical,keyCertSign");
  NAM_CHECK(X509_sign(authority.get(), authority_key.get(), EVP_sha256()) > 0, "signing");

  const Key key(EVP_EC_gen("P-256"));
  NAM_CHECK(key != nullptr, "a new key of P-256");
  const Certificate certificate = NewCertificate(kMemberName, *key);
  AddExtension(*certificate, NID_basic_constraints, "critical,CA:FALSE");
  AddExtension(*certificate, NID_key_usage, "critical,digitalSignature");
  AddExtension(*certificate, NID_ext_key_usage, "serverAuth,clientAuth");
  NAM_CHECK(X509_sign(certificate.get(), authority_key.get(), EVP_sha256()) > 0, "signing");
  return {.authority = PemOf(*authority),
          .certificate = PemOf(*certificate),
          .key = Pem([&](BIO* bio) {
            return PEM_write_bio_PKCS8PrivateKey(bio, key.get(), nullptr, nullptr, 0, nullptr, nullptr);
          })};
}

absl::StatusOr<Identity> ReadIdentity(const TlsFiles& files) {
  if (files.certificate.empty() || files.key.empty() || files.authority.empty()) {
    return absl::InvalidArgumentError(
        "TLS with certificates of your own needs --tls-certificate, --tls-key and --tls-ca together");
  }
  Identity identity;
  NAM_ASSIGN_OR_RETURN(identity.authority, ReadFile("TLS authority", files.authority, false));
  NAM_ASSIGN_OR_RETURN(identity.certificate, ReadFile("TLS certificate", files.certificate, false));
  NAM_ASSIGN_OR_RETURN(identity.key, ReadFile("TLS key", files.key, true));
  NAM_ASSIGN_OR_RETURN(const auto authorities, Parse("TLS authority", files.authority, identity.authority));
  NAM_ASSIGN_OR_RETURN(const auto chain, Parse("TLS certificate", files.certificate, identity.certificate));
  // Without this function OpenSSL would prompt for a passphrase.
  const auto no_passphrase = [](char*, int, int, void*) { return -1; };
  const Key key(PEM_read_bio_PrivateKey(Reader(identity.key).get(), nullptr, no_passphrase, nullptr));
  if (key == nullptr) {
    return absl::InvalidArgumentError(
        absl::StrFormat("the TLS key `%s` has no private key in PEM without a passphrase", files.key));
  }
  if (X509_check_private_key(sk_X509_value(chain.get(), 0), key.get()) != 1) {
    return absl::InvalidArgumentError(absl::StrFormat("the TLS key `%s` is not that of the certificate `%s`",
                                                      files.key, files.certificate));
  }
  NAM_RETURN_IF_ERROR(CheckChain(files, *chain, *authorities));
  return identity;
}

std::string KnockName(const std::string& secret) {
  std::string name;
  for (const unsigned char byte : Derive(secret, "nam control plane knock 1", 31))
    absl::StrAppend(&name, absl::Hex(byte, absl::kZeroPad2));
  return name + ".nam";
}

std::string MakeMemberProof() {
  std::string proof(16, '\0');
  NAM_CHECK(RAND_bytes(reinterpret_cast<unsigned char*>(proof.data()), static_cast<int>(proof.size())) == 1,
            "no randomness");
  return proof;
}

bool SameProof(std::string_view a, std::string_view b) {
  return a.size() == b.size() && CRYPTO_memcmp(a.data(), b.data(), a.size()) == 0;
}

}  // namespace nam::catalog
