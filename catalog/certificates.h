#pragma once

#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace nam::catalog {

/// A process's identity for TLS, as PEM.
struct Identity {
  std::string authority;    // certificates of the authorities that peers are checked against
  std::string certificate;  // this process's, with the chain to an authority
  std::string key;
};

/// Files of an operator's own certificates. All three or none; none: certificates are made from the secret.
struct TlsFiles {
  std::string certificate;
  std::string key;
  std::string authority;

  bool given() const { return !certificate.empty() || !key.empty() || !authority.empty(); }
};

/// Makes a new key and a certificate signed by the cluster's authority:
///
///     secret ── HKDF-SHA256 ─▶ P-256 key of the authority (the same in every process, never stored)
///                                   │ signs
///     random ──────────────────▶ P-256 key of this process, its certificate
///
/// Certificates never expire, so hosts whose clocks differ accept each other; they end with the process.
Identity MakeIdentity(const std::string& secret);

/// Reads and checks the files. INVALID_ARGUMENT names the file and its error. The key must be readable by its
/// owner only and fit the certificate; the certificate must be valid now and signed by the authority.
absl::StatusOr<Identity> ReadIdentity(const TlsFiles& files);

/// The server name that the cluster's clients request in the first packet of a TLS handshake, derived from
/// the secret: `<62 hexadecimal digits>.nam`. It separates strangers from members before any cryptography. It
/// is sent in clear, so it proves nothing.
std::string KnockName(const std::string& secret);

/// 128 random bits that distinguish a member from other processes that know the secret.
std::string MakeMemberProof();

/// Compares in constant time, so that a proof cannot be guessed byte by byte.
bool SameProof(std::string_view a, std::string_view b);

}  // namespace nam::catalog
