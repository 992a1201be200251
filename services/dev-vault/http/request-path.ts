import { VaultError } from "../core/vault-error.ts";

/** RequestTarget is a request's path below `/v1/` and its query; or the clean path a client must be sent to. */
export type RequestTarget =
  | { readonly kind: "api"; readonly path: string; readonly query: Readonly<Record<string, string>> }
  | { readonly kind: "redirect"; readonly location: string }
  | { readonly kind: "unknown" };

/**
 * readTarget reads a request's target the way Vault does: a path that is not clean is answered with a redirect to
 * the clean one (which a client that carries a token must not follow blindly), and dot segments that arrive
 * percent-encoded are refused.
 */
export function readTarget(target: string): RequestTarget {
  const [rawPath, rawQuery] = splitOnce(target, "?");
  const clean = cleanPath(rawPath);
  if (clean !== rawPath) {
    return { kind: "redirect", location: rawQuery === "" ? clean : `${clean}?${rawQuery}` };
  }
  if (!rawPath.startsWith("/v1/")) return { kind: "unknown" };
  const path = decode(rawPath.slice("/v1/".length));
  const segments = path.split("/");
  if (segments.some((segment) => segment === "." || segment === "..") || hasControl(path)) {
    throw new VaultError(400, "relative paths not supported");
  }
  if (segments.slice(0, -1).some((segment) => segment === "")) throw new VaultError(400, "unsupported path");
  return { kind: "api", path, query: Object.fromEntries(new URLSearchParams(rawQuery)) };
}

function cleanPath(path: string): string {
  const kept: string[] = [];
  for (const segment of path.split("/")) {
    if (segment === "" || segment === ".") continue;
    if (segment === "..") kept.pop();
    else kept.push(segment);
  }
  const isFolder = path.endsWith("/") && kept.length > 0;
  return `/${kept.join("/")}${isFolder ? "/" : ""}`;
}

function decode(path: string): string {
  try {
    return decodeURIComponent(path);
  } catch {
    throw new VaultError(400, "invalid URL escape");
  }
}

function hasControl(text: string): boolean {
  return [...text].some((letter) => letter < " " || letter === "\u007f");
}

function splitOnce(text: string, separator: string): [string, string] {
  const at = text.indexOf(separator);
  return at < 0 ? [text, ""] : [text.slice(0, at), text.slice(at + 1)];
}
