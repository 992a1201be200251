/** The policy every token gets unless it is made without: what a token may do with itself. */
export const DEFAULT_POLICY = `
path "auth/token/lookup-self" { capabilities = ["read"] }
path "auth/token/renew-self" { capabilities = ["update"] }
path "auth/token/revoke-self" { capabilities = ["update"] }
path "sys/capabilities-self" { capabilities = ["update"] }
path "identity/entity/id/{{identity.entity.id}}" { capabilities = ["read"] }
path "identity/entity/name/{{identity.entity.name}}" { capabilities = ["read"] }
path "sys/wrapping/wrap" { capabilities = ["update"] }
path "sys/wrapping/lookup" { capabilities = ["update"] }
path "sys/wrapping/unwrap" { capabilities = ["update"] }
`;

/** The policy of wrapping tokens: they open themselves, once, and do nothing else. */
export const RESPONSE_WRAPPING_POLICY = `
path "sys/wrapping/unwrap" { capabilities = ["update"] }
`;
