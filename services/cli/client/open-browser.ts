import { spawn } from "node:child_process";

// RFC 3986 without what means something to a shell: what starts the browser may be a script itself.
const PLAIN_URL = /^https?:\/\/[A-Za-z0-9\-._~:/?#[\]@!*+,=&%]+$/;
const OPENERS: Partial<Record<NodeJS.Platform, string>> = { darwin: "open", linux: "xdg-open" };

/** isPlainUrl says whether a URL may be shown, or given to a browser: http or https, with nothing for a shell in it. */
export function isPlainUrl(text: string): boolean {
  return text.length <= 8192 && PLAIN_URL.test(text) && URL.canParse(text);
}

/**
 * openBrowser starts the machine's browser with a URL as one argument of a program, never through a shell [A050]. False when
 * there is no program for that, or the URL is not plain.
 */
export async function openBrowser(url: string, opener = OPENERS[process.platform]): Promise<boolean> {
  if (opener === undefined || !isPlainUrl(url)) return false;
  const { promise, resolve } = Promise.withResolvers<boolean>();
  const child = spawn(opener, [url], { shell: false, stdio: "ignore", detached: true });
  child.once("error", () => resolve(false));
  child.once("spawn", () => resolve(true));
  child.unref();
  return promise;
}
