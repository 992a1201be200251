import { text } from "../core/request.ts";
import type { Handler, Route } from "../core/route.ts";
import { badRequest, notFound } from "../core/vault-error.ts";
import type { VaultState } from "../core/vault-state.ts";

/** policyRoutes are `sys/policies/acl` and its old name `sys/policy`. */
export function policyRoutes(state: VaultState): Route[] {
  const policies = state.policies;
  const nameOf = (params: Readonly<Record<string, string>>) => (params.name as string).toLowerCase();
  const list: Handler = () => ({ data: { keys: policies.list() } });
  const write: Handler = ({ data, params }) => {
    const policy = decode(text(data, "policy"));
    if (policy.trim() === "") throw badRequest("'policy' parameter not supplied or empty");
    policies.write(nameOf(params), policy);
    return undefined;
  };
  const read: Handler = ({ params }) => {
    const record = policies.read(nameOf(params));
    if (!record) throw notFound();
    const { name, policy, version, modified } = record;
    return { data: { name, policy, version, ...(modified === "" ? {} : { modified }) } };
  };
  const remove: Handler = ({ params }) => {
    policies.delete(nameOf(params));
    return undefined;
  };
  return [
    { path: "policies/acl", handlers: { list, read: list } },
    { path: "policies/acl/:name", handlers: { read, update: write, delete: remove } },
    {
      path: "policy",
      handlers: {
        list,
        read: () => ({ repeatsData: true, data: { keys: policies.list(), policies: policies.list() } }),
      },
    },
    { path: "policy/:name", handlers: { read, update: write, delete: remove } },
  ];
}

/** Vault takes a policy as it is or in base64; no policy is valid base64, so the two cannot be confused. */
function decode(policy: string): string {
  if (!/^[A-Za-z0-9+/]+={0,2}$/.test(policy)) return policy;
  return Buffer.from(policy, "base64").toString("utf8");
}
