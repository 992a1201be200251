/**
 * Variables that change what a process trusts, where its traffic goes or what it prints.
 * A service refuses to start with one of them, whatever its value: the supervisor builds its
 * environment from nothing, so their presence means that somebody else is in between. [A022]
 */
const FORBIDDEN = new Set([
  "NODE_TLS_REJECT_UNAUTHORIZED",
  "NODE_OPTIONS",
  "NODE_EXTRA_CA_CERTS",
  "NODE_USE_ENV_PROXY",
  "NODE_USE_SYSTEM_CA",
  "NODE_DEBUG",
  "NODE_DEBUG_NATIVE",
  "NODE_PATH",
  "SSLKEYLOGFILE",
  "SSL_CERT_FILE",
  "SSL_CERT_DIR",
  "OPENSSL_CONF",
  "OPENSSL_MODULES",
  "LD_PRELOAD",
  "LD_AUDIT",
  "DEBUG",
  "HTTP_PROXY",
  "HTTPS_PROXY",
  "ALL_PROXY",
  "GRPC_PROXY",
  "GRPC_TRACE",
  "GRPC_VERBOSITY",
  "GRPC_NODE_TRACE",
  "GRPC_NODE_VERBOSITY",
  "GRPC_SSL_CIPHER_SUITES",
  "GRPC_DEFAULT_SSL_ROOTS_FILE_PATH",
]);
const FORBIDDEN_PREFIXES = ["VAULT_", "BAO_", "ANTHROPIC_"];

/** Names of the forbidden variables that are set. Values are never looked at. */
export function forbiddenVariables(env: NodeJS.ProcessEnv): string[] {
  return Object.keys(env).filter((name) => {
    const upper = name.toUpperCase();
    return FORBIDDEN.has(upper) || FORBIDDEN_PREFIXES.some((prefix) => upper.startsWith(prefix));
  });
}
