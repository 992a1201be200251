import { lstat, realpath, stat } from "node:fs/promises";
import { basename, dirname, isAbsolute, join, resolve } from "node:path";
import { ToolError } from "./tool-error.ts";

/** Folders of a hand that file tools may touch; the first is where relative paths start. */
export type Roots = readonly [string, ...string[]];

/** isWithin tells whether a canonical path is a root or lies below it. */
export function isWithin(root: string, path: string): boolean {
  return path === root || path.startsWith(root.endsWith("/") ? root : `${root}/`);
}

/**
 * confinePath resolves a path given by the model to the canonical path that will be opened. Every link in it is
 * followed first, also in the last part, and what then lies outside the roots is refused (PATH_ESCAPE; cases B081,
 * A084). A dangling link is refused too: writing through it would create a file elsewhere.
 * The last parts may be missing; they are returned below the canonical folder that exists.
 */
export async function confinePath(roots: Roots, path: string): Promise<string> {
  if (path.includes("\0")) throw new ToolError("the path holds a NUL character");
  const wanted = isAbsolute(path) ? resolve(path) : resolve(roots[0], path);
  const canonical = await canonicalize(wanted, path, 0);
  const realRoots = await Promise.all(roots.map((root) => realpath(root).catch(() => root)));
  if (!realRoots.some((root) => isWithin(root, canonical))) {
    throw new ToolError(`PATH_ESCAPE: ${path} lies outside ${roots.join(", ")}`);
  }
  return canonical;
}

async function canonicalize(path: string, shown: string, depth: number): Promise<string> {
  if (depth > 64) throw new ToolError(`${shown}: too many folders`);
  try {
    return await realpath(path);
  } catch (error) {
    const code = (error as NodeJS.ErrnoException).code;
    if (code !== "ENOENT") throw new ToolError(`${shown}: ${code ?? "cannot be resolved"}`);
  }
  if (await isLink(path)) throw new ToolError(`PATH_ESCAPE: ${shown} goes through a link to nothing`);
  const parent = await canonicalize(dirname(path), shown, depth + 1);
  const isFolder = (await stat(parent).catch(() => undefined))?.isDirectory() ?? true;
  if (!isFolder) throw new ToolError(`${shown}: ENOTDIR`);
  return join(parent, basename(path));
}

async function isLink(path: string): Promise<boolean> {
  return (await lstat(path).catch(() => undefined))?.isSymbolicLink() ?? false;
}
