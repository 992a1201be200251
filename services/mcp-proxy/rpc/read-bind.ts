import { Violations } from "../../common/errors/violations.ts";
import { type BindRequest, NetworkingType } from "../../gen/ganglion/mcpproxy/v1/binding_service.ts";
import { parseDestination } from "../domain/canonical-url.ts";
import { type GitGrant, type Networking, repositoryUrl } from "../domain/hand-rules.ts";
import { isHandId, isSessionId, isVaultId, isWorkspaceId } from "../domain/ids.ts";
import type { BindingFields } from "../domain/row-mac.ts";
import { checkText } from "./read-requests.ts";

const MAX_ENTRIES = 20;
const MAX_HOSTS = 256;
const MAX_REFS = 64;
const HOST = /^(\*\.)?([a-z0-9_]([a-z0-9_-]{0,61}[a-z0-9_])?\.)*[a-z0-9_]([a-z0-9_-]{0,61}[a-z0-9_])?$/;
const REF = /^refs\/[\x21-\x7e]+$/;
const REF_SUSPECT = /[~^:?[\\]|\.\.|@\{|\/\/|\*./;

/** Checks a binding and brings its repositories into normal form. */
export function readBind(req: BindRequest): BindingFields {
  const found = new Violations();
  checkSessionId(found, req.sessionId);
  found.string("workspace_id", req.workspaceId, { required: true });
  const isWorkspace = req.workspaceId === "" || isWorkspaceId(req.workspaceId);
  found.check(isWorkspace, "workspace_id", "must be an id that starts with wrkspc_");
  found.count("vault_ids", req.vaultIds.length, { max: MAX_ENTRIES });
  found.count("mcp_servers", req.mcpServers.length, { max: MAX_ENTRIES });
  found.count("models", req.models.length, { max: MAX_ENTRIES });
  found.count("git_repositories", req.gitRepositories.length, { max: MAX_ENTRIES });
  found.throwIfAny();
  req.vaultIds.forEach((id, i) => {
    found.check(isVaultId(id), `vault_ids[${i}]`, "must be an id that starts with vlt_");
  });
  found.check(new Set(req.vaultIds).size === req.vaultIds.length, "vault_ids", "must not name a vault twice");
  checkServers(found, req.mcpServers);
  req.models.forEach((model, i) => {
    checkText(found, `models[${i}]`, model, { required: true, maxLength: 255 });
  });
  const networking = readNetworking(found, req.networking);
  const gitRepositories = readRepositories(found, req.gitRepositories);
  found.throwIfAny();
  const { sessionId, workspaceId, vaultIds, mcpServers, models } = req;
  return { sessionId, workspaceId, vaultIds, mcpServers, models, networking, gitRepositories };
}

/** Checks a required session id. */
export function checkSessionId(found: Violations, sessionId: string): void {
  found.string("session_id", sessionId, { required: true });
  const isFit = sessionId === "" || isSessionId(sessionId);
  found.check(isFit, "session_id", "must be an id that starts with sesn_");
}

/** Checks a required hand id. */
export function checkHandId(found: Violations, handId: string): void {
  found.string("hand_id", handId, { required: true });
  found.check(handId === "" || isHandId(handId), "hand_id", "must be an id that starts with hand_");
}

function checkServers(found: Violations, servers: BindRequest["mcpServers"]): void {
  servers.forEach(({ name, url }, i) => {
    checkText(found, `mcp_servers[${i}].name`, name, { required: true, maxLength: 255 });
    found.string(`mcp_servers[${i}].url`, url, { required: true, maxLength: 2048 });
    const isFit = url === "" || parseDestination(url) !== undefined;
    found.check(isFit, `mcp_servers[${i}].url`, "must be an http or https URL in plain form");
  });
  const names = new Set(servers.map(({ name }) => name));
  found.check(names.size === servers.length, "mcp_servers", "must not name a server twice");
}

/** Not set and unspecified mean the same: nothing. */
function readNetworking(found: Violations, networking: BindRequest["networking"]): Networking | null {
  if (!networking || networking.type === NetworkingType.NETWORKING_TYPE_UNSPECIFIED) return null;
  const { type, allowedHosts, allowMcpServers, allowPackageManagers } = networking;
  const isLimited = type === NetworkingType.NETWORKING_TYPE_LIMITED;
  const isKnown = isLimited || type === NetworkingType.NETWORKING_TYPE_UNRESTRICTED;
  found.check(isKnown, "networking.type", "is not a known type");
  found.count("networking.allowed_hosts", allowedHosts.length, { max: MAX_HOSTS });
  const isPlain = isLimited || (allowedHosts.length === 0 && !allowMcpServers && !allowPackageManagers);
  found.check(isPlain, "networking", "only a limited one has hosts and switches");
  allowedHosts.slice(0, MAX_HOSTS).forEach((host, i) => {
    const isFit = host.length <= 255 && HOST.test(host);
    found.check(isFit, `networking.allowed_hosts[${i}]`, "must be a host name in lower case, or *. and one");
  });
  const kind = isLimited ? "limited" : "unrestricted";
  return { type: kind, allowedHosts, allowMcpServers, allowPackageManagers };
}

function readRepositories(found: Violations, repositories: BindRequest["gitRepositories"]): GitGrant[] {
  const grants = repositories.map(({ url, allowFetch, allowPush, refs }, i) => {
    const field = `git_repositories[${i}]`;
    const normal = repositoryUrl(url);
    found.check(normal !== undefined, `${field}.url`, "must be the plain http or https URL of a repository");
    found.count(`${field}.refs`, refs.length, { max: MAX_REFS });
    refs.slice(0, MAX_REFS).forEach((ref, at) => {
      const isFit = ref.length <= 255 && REF.test(ref) && !REF_SUSPECT.test(ref);
      found.check(isFit, `${field}.refs[${at}]`, "must be a full ref, or the start of one and /*");
    });
    return { url: normal ?? "", allowFetch, allowPush, refs };
  });
  const urls = new Set(grants.map(({ url }) => url));
  found.check(urls.size === grants.length, "git_repositories", "must not name a repository twice");
  return grants;
}
