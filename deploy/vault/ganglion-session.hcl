# What a session's Vault token may do: read the credentials of one vault, and look after itself.
#
# The token role lets mcp-proxy name the vault as the token's entity alias, and nothing else; Vault puts that name
# into the path here. So mcp-proxy cannot make a token that reads two vaults, and needs no right to write policies
# or identities. TOKEN_MOUNT_ACCESSOR is filled in when the policy is written: accessors differ from Vault to Vault.
path "ganglion/data/vaults/{{identity.entity.aliases.TOKEN_MOUNT_ACCESSOR.name}}/*" {
  capabilities = ["read"]
}

# These tokens are made without the default policy, which would let them wrap and store data.
path "auth/token/lookup-self" {
  capabilities = ["read"]
}

path "auth/token/renew-self" {
  capabilities = ["update"]
}

path "auth/token/revoke-self" {
  capabilities = ["update"]
}
