# What `ganglion up` may do: give mcp-proxy its login, wrapped, so that only the process that opens it can use it.
# It can read no credential and, since an unwrapped secret id is refused, cannot log in as mcp-proxy unnoticed:
# opening a wrapped one spends it, and mcp-proxy then refuses to start.

path "auth/approle/role/ganglion-proxy/role-id" {
  capabilities = ["read"]
}

path "auth/approle/role/ganglion-proxy/secret-id" {
  capabilities     = ["create", "update"]
  min_wrapping_ttl = "1s"
  max_wrapping_ttl = "10m"
}

path "auth/token/lookup-self" {
  capabilities = ["read"]
}

path "auth/token/renew-self" {
  capabilities = ["update"]
}
