import type { Repository } from "../../gen/ganglion/types/v1/repository.ts";
import { asObject, invalid, notYet, optionalText, refuseUnknown, requiredText } from "./refuse.ts";
import { optionalSecret } from "./secret-text.ts";

/** A token of a repository, as it came; it is sealed before anything else is done with it. */
export interface RepositoryToken {
  readonly url: string;
  readonly token: string;
}

/** The repositories of a session that is to be made, and their tokens beside them. */
export interface ReadResources {
  readonly repositories: Repository[];
  readonly tokens: RepositoryToken[];
}

const KEYS = ["type", "url", "authorization_token", "checkout", "mount_path"];

/** resourcesFromJson reads "resources" of POST /v1/sessions. The session service says which addresses and paths fit. */
export function resourcesFromJson(value: unknown): ReadResources {
  if (value === undefined || value === null) return { repositories: [], tokens: [] };
  if (!Array.isArray(value)) throw invalid("resources", "must be a list");
  const tokens: RepositoryToken[] = [];
  const repositories = value.map((entry, index) => {
    const at = `resources[${index}]`;
    const json = asObject(entry, at);
    if (json.type === "file" || json.type === "memory_store") throw notYet(`${at}.type ${json.type}`);
    if (json.type !== "github_repository") throw invalid(`${at}.type`, "must be github_repository");
    refuseUnknown(json, KEYS, `${at}.`);
    const url = requiredText(json.url, `${at}.url`);
    const token = optionalSecret(json.authorization_token, `${at}.authorization_token`);
    if (token !== undefined) tokens.push({ url, token });
    return {
      id: "",
      url,
      mountPath: optionalText(json.mount_path, `${at}.mount_path`) ?? "",
      checkout: checkoutFromJson(json.checkout, `${at}.checkout`),
      // Without a token there is nobody that a server would take a push from.
      mayPush: token !== undefined,
    };
  });
  return { repositories, tokens };
}

function checkoutFromJson(value: unknown, at: string): Repository["checkout"] {
  if (value === undefined || value === null) return undefined;
  const json = asObject(value, at);
  if (json.type === "branch") {
    refuseUnknown(json, ["type", "name"], `${at}.`);
    return { $case: "branch", value: requiredText(json.name, `${at}.name`) };
  }
  if (json.type !== "commit") throw invalid(`${at}.type`, "must be branch or commit");
  refuseUnknown(json, ["type", "sha"], `${at}.`);
  return { $case: "commit", value: requiredText(json.sha, `${at}.sha`) };
}
