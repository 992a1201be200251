/** Active credentials that a vault may have. */
export const MAX_ACTIVE = 20;
/** Pairs of metadata that a record may have. */
export const MAX_PAIRS = 16;
/** Hosts that a credential may name. */
export const MAX_HOSTS = 16;

const NAME_FORM = /^[A-Za-z_][A-Za-z0-9_]{0,254}$/;
const HOST_FORM =
  /^(?=.{1,253}$)[a-z0-9_]([a-z0-9_-]{0,61}[a-z0-9_])?(\.[a-z0-9_]([a-z0-9_-]{0,61}[a-z0-9_])?)*$/;
const IPV4_FORM = /^(25[0-5]|2[0-4]\d|1\d\d|[1-9]?\d)(\.(25[0-5]|2[0-4]\d|1\d\d|[1-9]?\d)){3}$/;
const NUMBER_FORM = /^(0x[0-9a-f]*|\d+)$/;

// A placeholder in one of these would break a hand, or change which code it runs and where it connects.
const RESERVED_NAMES = new Set([
  ...["PATH", "HOME", "SHELL", "USER", "LOGNAME", "PWD", "OLDPWD", "IFS", "ENV", "BASH_ENV", "PS4", "TMPDIR"],
  ...["LANG", "TERM", "NO_PROXY", "CDPATH", "GLOBIGNORE", "SHELLOPTS", "BASHOPTS", "EDITOR", "PAGER"],
  ...[
    "NODE_OPTIONS",
    "NODE_EXTRA_CA_CERTS",
    "PYTHONPATH",
    "PYTHONHOME",
    "PYTHONSTARTUP",
    "PERL5LIB",
    "PERL5OPT",
  ],
  ...["RUBYLIB", "RUBYOPT", "JAVA_TOOL_OPTIONS", "SSL_CERT_FILE", "SSL_CERT_DIR", "REQUESTS_CA_BUNDLE"],
  ...["CURL_CA_BUNDLE", "CURL_HOME", "HOSTALIASES", "LOCALDOMAIN", "RES_OPTIONS"],
]);
const RESERVED_FORM =
  /^(LD_|DYLD_|GANGLION_|BASH_FUNC_|LC_|MALLOC_|GIT_(SSH|SSL|CONFIG|EXEC|PROXY|ASKPASS|DIR|WORK|TEMPLATE|EXTERNAL))|_PROXY$/;

/** True for a name that an environment variable with a placeholder may have. */
export function isSecretName(text: string): boolean {
  const name = text.toUpperCase();
  return NAME_FORM.test(text) && !RESERVED_NAMES.has(name) && !RESERVED_FORM.test(name);
}

/**
 * True for a host that a credential may name, in lower case: a host name, an IPv4 address, or "*." and the end of a
 * name. What only looks like an address ("127.1", "0x7f000001") is none of these: URL parsers make an address of it.
 */
export function isAllowedHost(text: string): boolean {
  const name = text.startsWith("*.") ? text.slice(2) : text;
  if (!HOST_FORM.test(name)) return false;
  const last = name.slice(name.lastIndexOf(".") + 1);
  if (NUMBER_FORM.test(last)) return name === text && IPV4_FORM.test(text);
  return true;
}
