/**
 * walkThrough plays the browser: it follows an authorization with cookies, to the redirect that leaves for the client, and
 * answers that one's parameters.
 */
export async function walkThrough(authorizationUrl: string, redirectUri: string): Promise<URLSearchParams> {
  const cookies = new Map<string, string>();
  let at = authorizationUrl;
  for (let hops = 0; hops < 20; hops += 1) {
    const cookie = [...cookies].map(([name, value]) => `${name}=${value}`).join("; ");
    const answer = await fetch(at, { redirect: "manual", headers: cookie ? { cookie } : {} });
    for (const set of answer.headers.getSetCookie()) {
      const [pair = ""] = set.split(";");
      const split = pair.indexOf("=");
      cookies.set(pair.slice(0, split), pair.slice(split + 1));
    }
    const location = answer.headers.get("location");
    if (location === null) throw new Error(`the authorization ended at ${at} with ${answer.status}`);
    at = new URL(location, at).href;
    if (at.startsWith(redirectUri)) return new URL(at).searchParams;
  }
  throw new Error("the authorization goes round in circles");
}
