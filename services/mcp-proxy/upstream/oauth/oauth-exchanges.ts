import * as oauth from "oauth4webapi";
import { VERSION } from "../../../common/version.ts";
import type { OauthClient, OauthExchanges, OauthTarget, Reply } from "../../domain/oauth/oauth-ports.ts";
import type { UpstreamPools } from "../pools.ts";
import { sendOauth } from "./send-oauth.ts";

const JSON_HEADERS = { accept: "application/json", "user-agent": `ganglion/${VERSION}` };
const INITIALIZE = JSON.stringify({
  jsonrpc: "2.0",
  id: 1,
  method: "initialize",
  params: {
    protocolVersion: "2025-11-25",
    capabilities: {},
    clientInfo: { name: "ganglion", version: VERSION },
  },
});

/**
 * Makes the protocol's requests with oauth4webapi, which knows how each is written (clients' authentication, PKCE, RFC 9207)
 * and, given a fetch, opens no connection of its own. Ours goes to the target's pinned address only.
 */
export function createOauthExchanges(pools: UpstreamPools): OauthExchanges {
  const viaLibrary = async (
    target: OauthTarget,
    connectionKey: string,
    ask: (options: oauth.TokenEndpointRequestOptions) => Promise<unknown>,
  ): Promise<Reply> => {
    let reply: Reply | undefined;
    const options = {
      // The destination was judged, plain HTTP included, before there was a target.
      [oauth.allowInsecureRequests]: true,
      [oauth.customFetch]: async (url: string, init: oauth.CustomFetchOptions<"POST", unknown>) => {
        if (url !== target.url) throw new Error("the library asked for another URL");
        const headers = { ...init.headers, "user-agent": JSON_HEADERS["user-agent"] };
        reply = await sendOauth(pools, target, {
          method: "POST",
          headers,
          body: String(init.body),
          connectionKey,
        });
        // What came is read by ourselves; the library only sees that its request was made.
        return new Response(null, { status: 204 });
      },
    };
    await ask(options as oauth.TokenEndpointRequestOptions);
    return reply as Reply;
  };

  return {
    getJson: (target) =>
      sendOauth(pools, target, { method: "GET", headers: JSON_HEADERS, connectionKey: "-" }),
    probe: (target, accessToken) => {
      const headers: Record<string, string> = {
        accept: "application/json, text/event-stream",
        "content-type": "application/json",
        "user-agent": JSON_HEADERS["user-agent"],
        ...(accessToken === undefined ? {} : { authorization: `Bearer ${accessToken}` }),
      };
      return sendOauth(pools, target, { method: "POST", headers, body: INITIALIZE, connectionKey: "probe" });
    },
    register: (target, metadata) => {
      const headers = { ...JSON_HEADERS, "content-type": "application/json" };
      const body = JSON.stringify(metadata);
      return sendOauth(pools, target, { method: "POST", headers, body, connectionKey: "-" });
    },
    refresh: (target, client, { refreshToken, scope, resource }) => {
      const additionalParameters = { ...(scope ? { scope } : {}), ...(resource ? { resource } : {}) };
      const as = serverOf(target, target.destination.origin);
      return viaLibrary(target, client.clientId, (options) =>
        oauth.refreshTokenGrantRequest(as, clientIn(client), authenticationOf(client), refreshToken, {
          ...options,
          additionalParameters,
        }),
      );
    },
    redeem: (target, client, grant) => {
      const as = serverOf(target, grant.issuer, grant.wantsIss);
      const parameters = oauth.validateAuthResponse(
        as,
        clientIn(client),
        new URLSearchParams(grant.answer),
        grant.state,
      );
      const { redirectUri, verifier, resource } = grant;
      return viaLibrary(target, client.clientId, (options) =>
        oauth.authorizationCodeGrantRequest(
          as,
          clientIn(client),
          authenticationOf(client),
          parameters,
          redirectUri,
          verifier,
          { ...options, additionalParameters: { resource } },
        ),
      );
    },
  };
}

function serverOf(target: OauthTarget, issuer: string, wantsIss = false): oauth.AuthorizationServer {
  return {
    issuer,
    token_endpoint: target.url,
    authorization_response_iss_parameter_supported: wantsIss,
  };
}

function clientIn({ clientId }: OauthClient): oauth.Client {
  return { client_id: clientId };
}

function authenticationOf({ method, clientSecret }: OauthClient): oauth.ClientAuth {
  if (method === "client_secret_basic") return basic(clientSecret ?? "");
  if (method === "client_secret_post") return oauth.ClientSecretPost(clientSecret ?? "");
  return oauth.None();
}

/**
 * Basic as RFC 6749 says, but without encoding what need not be: many servers do not decode, and would know a client with a
 * hyphen in its id no more.
 */
function basic(clientSecret: string): oauth.ClientAuth {
  return (_server, { client_id: clientId }, _body, headers) => {
    const pair = `${encodeURIComponent(clientId)}:${encodeURIComponent(clientSecret)}`;
    headers.set("authorization", `Basic ${Buffer.from(pair).toString("base64")}`);
  };
}
