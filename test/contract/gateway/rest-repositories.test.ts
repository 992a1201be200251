import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import Anthropic from "@anthropic-ai/sdk";
import { GanglionError } from "../../../services/common/errors/ganglion-error.ts";
import { implementSome, unary } from "../../../services/common/grpc/handlers.ts";
import {
  type CreateSessionRequest,
  Session,
  SessionServiceService,
} from "../../../services/gen/ganglion/session/v1/session_service.ts";
import { ProxyKit } from "../mcp-proxy/proxy-kit.ts";
import { type GatewayUnderTest, playApiKeys, startGateway } from "./gateway-kit.ts";

const KEY = "gk-repositories-0123456789";
const URL_OF_REPOSITORY = "https://git.example.test/acme/app";

describe("repositories of a session over REST, with the official SDK", () => {
  let kit: ProxyKit;
  let mesh: GatewayUnderTest;
  let client: Anthropic;
  const made: CreateSessionRequest[] = [];
  const seen: string[] = [];
  let failure: GanglionError | undefined;
  let forkedFromSessionId = "";

  before(async function () {
    this.timeout(90_000);
    kit = await ProxyKit.start();
    const session = () => {
      const { repositories, ownVaultId, vaultIds } = made.at(-1)!;
      return Session.fromPartial({
        ...{ id: "sesn_1", agentJson: Buffer.from("{}"), ownVaultId, vaultIds, forkedFromSessionId },
        ...{ createTime: { seconds: 1_700_000_000n, nanos: 0 } },
        repositories: repositories.map((each, n) => ({
          ...each,
          id: `sesrsc_${n}`,
          mountPath: "/workspace/app",
        })),
      });
    };
    const sessions = implementSome(SessionServiceService, {
      createSession: unary(async (request) => {
        if (failure) throw failure;
        made.push(request);
        return { session: session() };
      }),
      getSession: unary(async () => ({ session: session() })),
      archiveSession: unary(async () => ({ session: session() })),
      deleteSession: unary(async () => ({})),
    });
    mesh = await startGateway([playApiKeys(KEY), sessions], {
      ca: kit.ca,
      address: kit.service.listening.addr,
    });
    const watched: typeof fetch = async (input, init) => {
      const response = await fetch(input, init);
      seen.push(await response.clone().text());
      return response;
    };
    client = new Anthropic({ apiKey: KEY, baseURL: mesh.rest, fetch: watched, maxRetries: 0 });
  });
  after(async () => {
    await mesh?.stop();
    await kit?.stop();
  });

  const create = (token: string | undefined, url = URL_OF_REPOSITORY) =>
    client.beta.sessions.create({
      agent: "agent_1",
      environment_id: "env_1",
      resources: [
        {
          type: "github_repository",
          url,
          checkout: { type: "branch", name: "main" },
          ...(token === undefined ? {} : { authorization_token: token }),
        },
      ],
    } as never);
  const vaultOf = (id: string) => client.beta.vaults.retrieve(id);

  it("a token becomes a sealed credential in a vault of the session's own, and is answered nowhere", async () => {
    const token = `cnry-${randomBytes(20).toString("hex")}`;
    const session = await create(token);
    const request = made.at(-1)!;
    assert.match(request.ownVaultId, /^vlt_/);
    assert.deepEqual(
      request.repositories.map(({ url, mayPush, checkout }) => ({ url, mayPush, checkout })),
      [{ url: URL_OF_REPOSITORY, mayPush: true, checkout: { $case: "branch", value: "main" } }],
    );
    assert.deepEqual(session.vault_ids, []);
    assert.deepEqual(session.resources as unknown, [
      {
        id: "sesrsc_0",
        type: "github_repository",
        url: URL_OF_REPOSITORY,
        mount_path: "/workspace/app",
        checkout: { type: "branch", name: "main" },
        created_at: "2023-11-14T22:13:20Z",
        updated_at: "2023-11-14T22:13:20Z",
      },
    ]);
    const [credential] = (await client.beta.vaults.credentials.list(request.ownVaultId)).data;
    assert.equal(
      (credential?.auth as { mcp_server_url?: string } | undefined)?.mcp_server_url,
      URL_OF_REPOSITORY,
    );
    const path = `ganglion/data/vaults/${request.ownVaultId}/${credential?.id}`;
    const { body } = await kit.vault.http.call("GET", path, { token: kit.rootToken });
    assert.deepEqual((body.data as { data: unknown }).data, { secret: token });
    const told = [
      ...seen,
      mesh.gateway.output(),
      JSON.stringify(made, (_, v) => (typeof v === "bigint" ? 0 : v)),
    ];
    assert.ok(!told.join("\n").includes(token));
  });

  it("repositories can be read one by one, and a token be replaced; nothing else of them", async () => {
    const first = `cnry-${randomBytes(20).toString("hex")}`;
    const second = `cnry-${randomBytes(20).toString("hex")}`;
    await create(first);
    const { resources } = client.beta.sessions;
    const listed = (await resources.list("sesn_1")).data;
    assert.deepEqual(
      listed.map((each) => (each as { id: string }).id),
      ["sesrsc_0"],
    );
    const session_id = "sesn_1";
    assert.deepEqual(await resources.retrieve("sesrsc_0", { session_id }), listed[0]);
    await resources.update("sesrsc_0", { session_id, authorization_token: second });
    const { ownVaultId } = made.at(-1)!;
    const [credential] = (await client.beta.vaults.credentials.list(ownVaultId)).data;
    const path = `ganglion/data/vaults/${ownVaultId}/${credential?.id}`;
    const { body } = await kit.vault.http.call("GET", path, { token: kit.rootToken });
    assert.deepEqual((body.data as { data: unknown }).data, { secret: second });
    await assert.rejects(resources.retrieve("sesrsc_9", { session_id }), Anthropic.NotFoundError);
    await assert.rejects(resources.delete("sesrsc_0", { session_id }), /not supported/);
    const told = [...seen, mesh.gateway.output()].join("\n");
    assert.ok(!told.includes(first) && !told.includes(second));
    await create(undefined);
    await assert.rejects(
      resources.update("sesrsc_0", { session_id, authorization_token: second }),
      /without/,
    );
  });

  it("a token is replaced however the repository's address was written", async () => {
    await create("a-token-of-some-length", "https://Git.example.test:443/acme/app/");
    await client.beta.sessions.resources.update("sesrsc_0", {
      session_id: "sesn_1",
      authorization_token: "another-token-of-some-length",
    });
  });

  it("the vault is archived with its session, deleted or archived", async () => {
    for (const end of ["archive", "delete"] as const) {
      const session = await create("a-token-of-some-length");
      const { ownVaultId } = made.at(-1)!;
      // The end of a fork, which has it from its source, leaves it alone.
      forkedFromSessionId = "sesn_0";
      await client.beta.sessions[end](session.id);
      forkedFromSessionId = "";
      assert.equal((await vaultOf(ownVaultId)).archived_at, null);
      await client.beta.sessions[end](session.id);
      assert.notEqual((await vaultOf(ownVaultId)).archived_at, null);
    }
  });

  it("without a token there is no vault, and nothing may be pushed", async () => {
    await create(undefined);
    assert.equal(made.at(-1)!.ownVaultId, "");
    assert.equal(made.at(-1)!.repositories[0]!.mayPush, false);
  });

  it("a session that cannot be made leaves no vault behind", async () => {
    const count = async () =>
      (await client.beta.vaults.list({ include_archived: true } as never)).data.length;
    const before = await count();
    failure = new GanglionError({ code: "NOT_FOUND", reason: "AGENT_NOT_FOUND", message: "no such agent" });
    await assert.rejects(create("a-token-of-some-length"), Anthropic.NotFoundError);
    failure = undefined;
    assert.equal(await count(), before);
    const bad = client.beta.sessions.create({
      agent: "agent_1",
      environment_id: "env_1",
      resources: [{ type: "github_repository", url: URL_OF_REPOSITORY, authorization_token: "bad\ttoken" }],
    } as never);
    await assert.rejects(bad, (error: Error) => !error.message.includes("bad\ttoken"));
    assert.equal(await count(), before);
  });
});
