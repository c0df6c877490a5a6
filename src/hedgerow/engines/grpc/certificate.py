"""The certificate of a site's port or stream, made where it is used; others pin it exactly.

P-256, because gRPC refuses Ed25519 certificates. It carries no privacy claim: whoever is at either
end proves a pinned signing key in the hello, and messages are signed and sealed besides.
"""

from __future__ import annotations

from datetime import UTC, datetime

from cryptography import x509
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import NameOID

from hedgerow.engines.grpc import SERVER_NAME
from hedgerow.errors import FormatError

# It is pinned, so an end date would protect nobody and one day stop everybody.
_FROM, _UNTIL = datetime(2000, 1, 1, tzinfo=UTC), datetime(9999, 12, 31, tzinfo=UTC)


def make_certificate(key_name: str) -> tuple[str, str]:
    """A new private key and its certificate, both as PEM.

    `key_name` goes into the subject: of two certificates with one subject only the first would be
    looked at.
    """
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, key_name[:64])])
    usage = x509.KeyUsage(
        digital_signature=True, content_commitment=False, key_encipherment=False,
        data_encipherment=False, key_agreement=False, key_cert_sign=False, crl_sign=False,
        encipher_only=False, decipher_only=False,
    )  # fmt: skip
    made = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(_FROM)
        .not_valid_after(_UNTIL)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(usage, critical=True)
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(SERVER_NAME)]), critical=False)
        .sign(key, hashes.SHA256())
    )
    private = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    return private.decode("ascii"), made.public_bytes(Encoding.PEM).decode("ascii")


def check_certificate(pem: str, whose: str) -> str:
    """The same text, if it is one certificate that signed itself; FormatError if not.

    Nothing may stand around it: gRPC would take further blocks that are not looked at here, such as
    TRUSTED CERTIFICATE, for roots as well.
    """
    try:
        (found,) = x509.load_pem_x509_certificates(pem.encode("ascii"))
        found.verify_directly_issued_by(found)
        alone = found.public_bytes(Encoding.PEM).decode("ascii").strip() == pem.strip()
    except (ValueError, TypeError, InvalidSignature) as error:
        raise FormatError(
            f"the certificate of {whose} is not readable, or not signed by itself; ask for the "
            "card again"
        ) from error
    if not alone:
        raise FormatError(
            f"there is more than one certificate in that of {whose}; ask for the card again"
        )
    return pem


def certificate_hash(pem: str) -> str:
    """What the hello is bound to."""
    found = x509.load_pem_x509_certificate(pem.encode("ascii"))
    return found.fingerprint(hashes.SHA256()).hex()
