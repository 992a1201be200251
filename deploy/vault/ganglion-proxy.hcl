# What mcp-proxy's own login may do. It writes credentials and can read none of them: reading takes a session's token.

# "patch" replaces one field of a secret, a client's secret for example, without reading the others.
path "ganglion/data/vaults/+/+" {
  capabilities = ["create", "update", "patch"]
}

# Versions and times of a credential (no values), and its removal.
path "ganglion/metadata/vaults/+/+" {
  capabilities = ["read", "delete"]
}

# Old versions of a rotated credential are destroyed, not kept.
path "ganglion/destroy/vaults/+/+" {
  capabilities = ["update"]
}

# Its own keys. Made once, never replaced by it: with "create" alone Vault refuses to overwrite.
path "ganglion/data/proxy/+" {
  capabilities = ["create", "read"]
}

# A token for one session and one vault. The role fixes policy, kind and longest life; here it must name its vault.
# Without the alias the token would be good for nothing, so that is refused at once.
path "auth/token/create/ganglion-session" {
  capabilities        = ["create", "update"]
  required_parameters = ["entity_alias"]
  allowed_parameters = {
    "entity_alias" = ["vlt_*"]
    "ttl"          = []
    "meta"         = []
    "display_name" = []
    "renewable"    = []
  }
}

path "auth/token/revoke-accessor" {
  capabilities = ["update"]
}

path "auth/token/lookup-self" {
  capabilities = ["read"]
}

path "auth/token/renew-self" {
  capabilities = ["update"]
}

path "auth/token/revoke-self" {
  capabilities = ["update"]
}

# A login that an operator gave `ganglion up` is handed on wrapped; it is wrapped with itself.
path "sys/wrapping/wrap" {
  capabilities = ["update"]
}

# The start-up check that this policy is no wider than it should be.
path "sys/capabilities-self" {
  capabilities = ["update"]
}
