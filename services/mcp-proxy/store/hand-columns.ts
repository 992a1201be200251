import type { GitGrant, Networking } from "../domain/hand-rules.ts";

/** A binding's rules for hands as they are stored. */
export interface HandColumns {
  networking: {
    type?: string;
    allowed_hosts?: string[];
    allow_mcp_servers?: boolean;
    allow_package_managers?: boolean;
  };
  git_repositories: { url: string; allow_fetch: boolean; allow_push: boolean; refs: string[] }[];
}

/** Reads the rules for hands. What it makes of a row that somebody changed does not matter: the MAC is over it. */
export function toHandRules(row: HandColumns): {
  networking: Networking | null;
  gitRepositories: GitGrant[];
} {
  const { type, ...more } = row.networking;
  const networking: Networking | null =
    type === undefined
      ? null
      : {
          type: type as Networking["type"],
          allowedHosts: more.allowed_hosts ?? [],
          allowMcpServers: more.allow_mcp_servers ?? false,
          allowPackageManagers: more.allow_package_managers ?? false,
        };
  const gitRepositories = row.git_repositories.map((grant) => ({
    url: grant.url,
    allowFetch: grant.allow_fetch,
    allowPush: grant.allow_push,
    refs: grant.refs,
  }));
  return { networking, gitRepositories };
}

/** The rules for hands as JSON of the two columns. */
export function toHandColumns(rules: {
  networking: Networking | null;
  gitRepositories: readonly GitGrant[];
}): [networking: string, gitRepositories: string] {
  const { networking } = rules;
  const columns: HandColumns = {
    networking:
      networking === null
        ? {}
        : {
            type: networking.type,
            allowed_hosts: networking.allowedHosts,
            allow_mcp_servers: networking.allowMcpServers,
            allow_package_managers: networking.allowPackageManagers,
          },
    git_repositories: rules.gitRepositories.map(({ url, allowFetch, allowPush, refs }) => ({
      url,
      allow_fetch: allowFetch,
      allow_push: allowPush,
      refs,
    })),
  };
  return [JSON.stringify(columns.networking), JSON.stringify(columns.git_repositories)];
}
