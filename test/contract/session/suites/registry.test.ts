import assert from "node:assert/strict";
import { createHash, randomUUID } from "node:crypto";
import type { GanglionError } from "../../../../services/common/errors/ganglion-error.ts";
import { ListAgentsRequest } from "../../../../services/gen/ganglion/agent/v1/agent_service.ts";
import { type Caller, json, refused, refusedField, type SessionKit, same } from "../session-kit.ts";

/** Agents, environments and API keys. */
export function registrySuite(kit: () => SessionKit): void {
  describe("registry", () => {
    let client: Caller;
    let stranger: Caller;
    let operator: Caller;
    let gateway: Caller;
    before(async () => {
      client = await kit().asClient();
      stranger = await kit().asClient("wrkspc_other");
      operator = await kit().as("operator");
      gateway = await kit().as("gateway");
    });

    const parse = (bytes: Uint8Array | undefined) => JSON.parse(Buffer.from(bytes ?? []).toString());
    const createAgent = async (definition: object, requestId = "", caller = client) => {
      const { agent } = await caller.agents.createAgent({
        requestId,
        definitionJson: json(definition),
        workspaceId: "",
      });
      assert.ok(agent);
      return agent;
    };
    const patchAgent = (agentId: string, patch: object, expectedVersion = 0, caller = client) =>
      caller.agents.updateAgent({ agentId, expectedVersion, patchJson: json(patch) });
    const createEnvironment = async (body: object, requestId = "", caller = client) => {
      const { environment } = await caller.environments.createEnvironment({
        requestId,
        environmentJson: json(body),
        workspaceId: "",
      });
      assert.ok(environment);
      return environment;
    };

    it("an agent is kept as the REST API shows it", async () => {
      const agent = await createAgent({
        name: "a",
        model: "claude-x",
        tools: [{ type: "agent_toolset_20260401" }],
      });
      same(
        [agent.version, agent.name, agent.workspaceId, agent.archiveTime],
        [1, "a", "wrkspc_default", undefined],
      );
      const definition = parse(agent.definitionJson);
      same(Object.keys(definition).sort(), [
        "description",
        "execution_identity",
        "mcp_servers",
        "metadata",
        "model",
        "multiagent",
        "name",
        "skills",
        "system",
        "tools",
        "type",
      ]);
      same((await client.agents.getAgent({ agentId: agent.id, version: 0 })).agent, agent);
    });

    it("an update is the next version, a no-op is none, and versions stay", async () => {
      const agent = await createAgent({
        name: "a",
        model: "m",
        description: "d",
        metadata: { k: "1", l: "2" },
      });
      const second = (await patchAgent(agent.id, { description: null, metadata: { k: null, n: "3" } })).agent;
      assert.equal(second?.version, 2);
      const definition = parse(second?.definitionJson);
      same([definition.description, definition.metadata], [null, { l: "2", n: "3" }]);
      same((await patchAgent(agent.id, { name: "a" }, 2)).agent, second);
      await assert.rejects(patchAgent(agent.id, { name: "b" }, 1), (error: GanglionError) => {
        assert.equal(error.metadata.version, "2");
        return refused("ABORTED", "VERSION_CONFLICT")(error);
      });
      await assert.rejects(patchAgent(agent.id, { name: "a" }, 1), refused("ABORTED", "VERSION_CONFLICT"));
      const old = (await client.agents.getAgent({ agentId: agent.id, version: 1 })).agent;
      same(old?.definitionJson, agent.definitionJson);
      await assert.rejects(
        client.agents.getAgent({ agentId: agent.id, version: 3 }),
        refused("NOT_FOUND", "AGENT_NOT_FOUND"),
      );
    });

    it("updates at once make one version each", async () => {
      const agent = await createAgent({ name: "a", model: "m" });
      await Promise.all(Array.from({ length: 6 }, (_, n) => patchAgent(agent.id, { name: `n${n}` })));
      const versions: number[] = [];
      let pageToken = "";
      do {
        const page = await client.agents.listAgentVersions({ agentId: agent.id, pageSize: 3, pageToken });
        versions.push(...page.agents.map(({ version }) => version));
        pageToken = page.nextPageToken;
      } while (pageToken !== "");
      same(versions, [7, 6, 5, 4, 3, 2, 1]);
      const results = await Promise.allSettled(
        [1, 2].map((n) => patchAgent(agent.id, { name: `cas${n}` }, 7)),
      );
      assert.equal(results.filter(({ status }) => status === "fulfilled").length, 1);
    });

    it("an archived agent is not shown in lists unless asked for, and does not change", async () => {
      const agent = await createAgent({ name: "a", model: "m" });
      const archived = (await client.agents.archiveAgent({ agentId: agent.id })).agent;
      assert.ok(archived?.archiveTime);
      same((await client.agents.archiveAgent({ agentId: agent.id })).agent, archived);
      await assert.rejects(
        patchAgent(agent.id, { name: "b" }),
        refused("FAILED_PRECONDITION", "AGENT_ARCHIVED"),
      );
      const ids = async (includeArchived: boolean) => {
        const request = ListAgentsRequest.fromPartial({
          includeArchived,
          createdAtOrAfter: agent.createTime,
        });
        return (await client.agents.listAgents(request)).agents.map(({ id }) => id);
      };
      assert.equal((await ids(false)).includes(agent.id), false);
      assert.equal((await ids(true)).includes(agent.id), true);
    });

    it("lists agents newest first in pages", async () => {
      const made = [
        await createAgent({ name: "1", model: "m" }),
        await createAgent({ name: "2", model: "m" }),
      ];
      const first = await client.agents.listAgents(ListAgentsRequest.fromPartial({ pageSize: 1 }));
      const second = await client.agents.listAgents(
        ListAgentsRequest.fromPartial({ pageSize: 1, pageToken: first.nextPageToken }),
      );
      same(
        [...first.agents, ...second.agents].map(({ id }) => id),
        made.map(({ id }) => id).reverse(),
      );
      const until = ListAgentsRequest.fromPartial({ createdAtOrBefore: made[0]?.createTime, pageSize: 1 });
      assert.equal((await client.agents.listAgents(until)).agents[0]?.id, made[0]?.id);
    });

    it("pages of large definitions end before they would not fit into a message [B128]", async () => {
      const system = "s".repeat(100_000);
      const description = "d".repeat(60_000);
      const tools = Array.from({ length: 14 }, (_, n) => ({
        type: "custom",
        name: `t${n}`,
        description,
        input_schema: { type: "object" },
      }));
      const agent = await createAgent({ name: "large", model: "m", system, tools });
      for (let n = 0; n < 4; n++) await patchAgent(agent.id, { name: `large ${n}` });
      const seen: number[] = [];
      let pageToken = "";
      do {
        const page = await client.agents.listAgentVersions({ agentId: agent.id, pageSize: 100, pageToken });
        assert.ok(page.agents.length > 0 && page.agents.length <= 3);
        seen.push(...page.agents.map(({ version }) => version));
        pageToken = page.nextPageToken;
      } while (pageToken !== "");
      same(seen, [5, 4, 3, 2, 1]);
      await assert.rejects(
        patchAgent(agent.id, {
          tools: [...tools, ...tools.map((tool) => ({ ...tool, name: `${tool.name}b` }))],
        }),
        refusedField("patch_json"),
      );
    });

    it("creates are idempotent by request id", async () => {
      const requestId = randomUUID();
      const agent = await createAgent({ name: "a", model: "m" }, requestId);
      same(await createAgent({ name: "a", model: "m" }, requestId), agent);
      await assert.rejects(
        createAgent({ name: "b", model: "m" }, requestId),
        refused("ALREADY_EXISTS", "ID_REUSED"),
      );
      const name = `env ${requestId}`;
      const environment = await createEnvironment({ name }, requestId);
      same(await createEnvironment({ name }, requestId), environment);
      await assert.rejects(
        createEnvironment({ name: "z" }, requestId),
        refused("ALREADY_EXISTS", "ID_REUSED"),
      );
    });

    it("an environment is resolved, unique by name, changed, archived and deleted", async () => {
      const name = `env ${randomUUID()}`;
      const environment = await createEnvironment({ name, metadata: { a: "1" } });
      same(parse(environment.configJson), {
        type: "cloud",
        networking: { type: "unrestricted" },
        packages: { type: "packages", apt: [], cargo: [], gem: [], go: [], npm: [], pip: [] },
      });
      assert.equal(environment.description, undefined);
      await assert.rejects(createEnvironment({ name }), refused("ALREADY_EXISTS", "ENVIRONMENT_NAME_TAKEN"));
      const { id: environmentId } = environment;
      const patch = (body: object) =>
        client.environments.updateEnvironment({ environmentId, patchJson: json(body) });
      const changed = (await patch({ description: "", metadata: { a: "", b: "2" } })).environment;
      same([changed?.description, changed?.metadata, changed?.name], ["", { b: "2" }, name]);
      same((await patch({ metadata: { b: "2" } })).environment, changed);
      assert.equal((await patch({ description: null })).environment?.description, undefined);
      const other = await createEnvironment({ name: `${name} 2` });
      await assert.rejects(patch({ name: other.name }), refused("ALREADY_EXISTS", "ENVIRONMENT_NAME_TAKEN"));
      await client.environments.archiveEnvironment({ environmentId });
      await assert.rejects(patch({ name: "x" }), refused("FAILED_PRECONDITION", "ENVIRONMENT_ARCHIVED"));
      await client.environments.deleteEnvironment({ environmentId });
      const gone = refused("NOT_FOUND", "ENVIRONMENT_NOT_FOUND");
      await assert.rejects(client.environments.deleteEnvironment({ environmentId }), gone);
      await assert.rejects(client.environments.getEnvironment({ environmentId }), gone);
      await assert.rejects(patch({}), gone);
    });

    it("lists environments newest first, archived ones when asked", async () => {
      const a = await createEnvironment({ name: `a ${randomUUID()}` });
      const b = await createEnvironment({ name: `b ${randomUUID()}` });
      await client.environments.archiveEnvironment({ environmentId: b.id });
      const list = async (includeArchived: boolean, pageToken = "") =>
        client.environments.listEnvironments({ pageSize: 1, pageToken, includeArchived, workspaceId: "" });
      same(
        (await list(false)).environments.map(({ id }) => id),
        [a.id],
      );
      const first = await list(true);
      same(
        first.environments.map(({ id }) => id),
        [b.id],
      );
      same(
        (await list(true, first.nextPageToken)).environments.map(({ id }) => id),
        [a.id],
      );
    });

    it("another workspace's agents and environments are not there [A140]", async () => {
      const agent = await createAgent({ name: "mine", model: "m" });
      const environment = await createEnvironment({ name: `mine ${randomUUID()}` });
      const noAgent = refused("NOT_FOUND", "AGENT_NOT_FOUND");
      const noEnvironment = refused("NOT_FOUND", "ENVIRONMENT_NOT_FOUND");
      const { agents, environments } = stranger;
      await assert.rejects(agents.getAgent({ agentId: agent.id, version: 0 }), noAgent);
      await assert.rejects(
        agents.listAgentVersions({ agentId: agent.id, pageSize: 0, pageToken: "" }),
        noAgent,
      );
      await assert.rejects(patchAgent(agent.id, { name: "x" }, 0, stranger), noAgent);
      await assert.rejects(agents.archiveAgent({ agentId: agent.id }), noAgent);
      await assert.rejects(environments.getEnvironment({ environmentId: environment.id }), noEnvironment);
      await assert.rejects(environments.archiveEnvironment({ environmentId: environment.id }), noEnvironment);
      await assert.rejects(environments.deleteEnvironment({ environmentId: environment.id }), noEnvironment);
      same((await agents.listAgents(ListAgentsRequest.fromPartial({}))).agents, []);
      // The same name is free there.
      await createEnvironment({ name: environment.name }, "", stranger);
      const { agent: seen } = await operator.agents.getAgent({ agentId: agent.id, version: 0 });
      same([seen?.id, seen?.archiveTime], [agent.id, undefined]);
    });

    it("an operator may name a workspace that exists, and no other", async () => {
      const request = {
        requestId: "",
        definitionJson: json({ name: "o", model: "m" }),
        workspaceId: "wrkspc_other",
      };
      assert.equal((await operator.agents.createAgent(request)).agent?.workspaceId, "wrkspc_other");
      await assert.rejects(
        operator.agents.createAgent({ ...request, workspaceId: "wrkspc_none" }),
        refused("NOT_FOUND", "WORKSPACE_NOT_FOUND"),
      );
    });

    it("a key is known by its hash until it is revoked", async () => {
      const keySha256 = createHash("sha256").update(randomUUID()).digest();
      const invalid = refused("UNAUTHENTICATED", "API_KEY_INVALID");
      await assert.rejects(gateway.apiKeys.authenticateApiKey({ keySha256 }), invalid);
      const { apiKey } = await operator.apiKeys.createApiKey({
        keySha256,
        name: "ci",
        workspaceId: "wrkspc_keys",
      });
      same([apiKey?.workspaceId, apiKey?.name], ["wrkspc_keys", "ci"]);
      same((await gateway.apiKeys.authenticateApiKey({ keySha256 })).apiKey, apiKey);
      const again = await operator.apiKeys.createApiKey({
        keySha256,
        name: "ci",
        workspaceId: "wrkspc_keys",
      });
      same(again.apiKey, apiKey);
      await assert.rejects(
        operator.apiKeys.createApiKey({ keySha256, name: "ci", workspaceId: "" }),
        refused("ALREADY_EXISTS", "ID_REUSED"),
      );
      const list = await operator.apiKeys.listApiKeys({
        pageSize: 0,
        pageToken: "",
        workspaceId: "wrkspc_keys",
      });
      same(list.apiKeys, [apiKey]);
      const apiKeyId = apiKey?.id ?? "";
      const revoked = (await operator.apiKeys.revokeApiKey({ apiKeyId })).apiKey;
      assert.ok(revoked?.revokeTime);
      same((await operator.apiKeys.revokeApiKey({ apiKeyId })).apiKey, revoked);
      await assert.rejects(gateway.apiKeys.authenticateApiKey({ keySha256 }), invalid);
      await assert.rejects(gateway.apiKeys.authenticateApiKey({ keySha256: Buffer.alloc(0) }), invalid);
      await assert.rejects(
        operator.apiKeys.revokeApiKey({ apiKeyId: "apikey_none" }),
        refused("NOT_FOUND", "API_KEY_NOT_FOUND"),
      );
    });
  });
}
