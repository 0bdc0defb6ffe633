"""Recognises files that usually hold keys or passwords, by their names. Pure."""

from fnmatch import fnmatchcase

_SECRET_NAMES = (
    ".env .env.* *.env .envrc *.pem *.key *.p8 *.p12 *.pfx *.jks *.keystore *.kdbx *.ppk *.asc.key "
    "id_rsa id_dsa id_ecdsa id_ed25519 .netrc _netrc .npmrc .pypirc .pgpass .htpasswd "
    ".git-credentials .dockercfg .boto .s3cfg credentials credentials.json secrets.json "
    "secrets.yml secrets.yaml service-account*.json *.tfstate *.tfstate.backup"
).split()
_SECRET_EXCEPTIONS = (".env.example", ".env.sample", ".env.template", ".env.dist", "*.example.env")


def is_secret(key: str) -> bool:
    """Return whether a file of this name usually holds keys or passwords."""
    name = key.rsplit("/", 1)[-1].lower()
    if any(fnmatchcase(name, pattern) for pattern in _SECRET_EXCEPTIONS):
        return False
    return any(fnmatchcase(name, pattern) for pattern in _SECRET_NAMES)
