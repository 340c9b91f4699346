#pragma once

#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509.h>
#include <openssl/x509v3.h>
#include <sys/stat.h>

#include <fstream>
#include <string>

#include "catalog/certificates.h"
#include "tests/catalog/temp_folder.h"

namespace nam::catalog {

inline std::string WriteText(const TempFolder& folder, const std::string& name, const std::string& text,
                             mode_t mode = 0600) {
  const std::string path = folder.File(name);
  std::ofstream(path) << text;
  ::chmod(path.c_str(), mode);
  return path;
}

/// Files of an operator: a certificate that is its own authority, valid until `days` from now.
inline TlsFiles SelfSigned(const TempFolder& folder, const std::string& name, int days = 1) {
  EVP_PKEY* const key = EVP_EC_gen("P-256");
  X509* const made = X509_new();
  X509_set_version(made, X509_VERSION_3);
  ASN1_INTEGER_set(X509_get_serialNumber(made), 1);
  X509_gmtime_adj(X509_getm_notBefore(made), -10 * 86'400);
  X509_gmtime_adj(X509_getm_notAfter(made), days * 86'400L);
  X509_NAME* const subject = X509_get_subject_name(made);
  X509_NAME_add_entry_by_txt(subject, "CN", MBSTRING_ASC,
                             reinterpret_cast<const unsigned char*>(name.c_str()), -1, -1, 0);
  X509_set_issuer_name(made, subject);
  X509_set_pubkey(made, key);
  X509_sign(made, key, EVP_sha256());
  const TlsFiles files = {WriteText(folder, name + ".crt", ""), WriteText(folder, name + ".key", ""),
                          folder.File(name + ".crt")};
  FILE* const certificate = std::fopen(files.certificate.c_str(), "w");
  PEM_write_X509(certificate, made);
  std::fclose(certificate);
  FILE* const private_key = std::fopen(files.key.c_str(), "w");
  PEM_write_PKCS8PrivateKey(private_key, key, nullptr, nullptr, 0, nullptr, nullptr);
  std::fclose(private_key);
  X509_free(made);
  EVP_PKEY_free(key);
  return files;
}

}  // namespace nam::catalog
