import assert from "node:assert/strict";
import { NetworkingType } from "../../../../services/gen/ganglion/mcpproxy/v1/binding_service.ts";
import {
  type CreateSessionRequest,
  ForkSessionRequest,
} from "../../../../services/gen/ganglion/session/v1/session_service.ts";
import { Repository } from "../../../../services/gen/ganglion/types/v1/repository.ts";
import { json, refusedField, type SessionKit, same } from "../session-kit.ts";
import { Suite } from "../suite.ts";

const COMMIT = "0123456789abcdef0123456789abcdef01234567";

/** What hands of a session may reach, and what they get work trees of. */
export function repositoriesSuite(kit: () => SessionKit): void {
  describe("what hands may reach", () => {
    const suite = new Suite(kit, "repositories");
    const repository = (more: Partial<Repository>) =>
      Repository.fromPartial({ url: "https://git.example/acme/app.git", ...more });
    const bound = () => kit().proxy.bound.at(-1);

    it("repositories are bound with what may be done, and stand in the record and the log without a token", async () => {
      const session = await suite.create({
        repositories: [
          repository({ mayPush: true }),
          repository({
            url: "https://git.example/acme/lib",
            mountPath: "/workspace/vendor/lib",
            checkout: { $case: "commit", value: COMMIT },
          }),
        ],
        ownVaultId: "vlt_own",
        vaultIds: ["vlt_a"],
      });
      same(bound()?.gitRepositories, [
        {
          url: "https://git.example/acme/app.git",
          allowFetch: true,
          allowPush: true,
          refs: ["refs/heads/*", "refs/tags/*"],
        },
        { url: "https://git.example/acme/lib", allowFetch: true, allowPush: false, refs: [] },
      ]);
      same(bound()?.vaultIds, ["vlt_own", "vlt_a"]);
      same([session.vaultIds, session.ownVaultId], [["vlt_a"], "vlt_own"]);
      const [app, lib] = session.repositories;
      same([app?.mountPath, lib?.mountPath], ["/workspace/app", "/workspace/vendor/lib"]);
      assert.match(app?.id ?? "", /^sesrsc_/);
      assert.notEqual(app?.id, lib?.id);
      const [created] = await suite.eventsOf(session.id);
      assert.equal(created?.body?.$case, "ganglionSessionCreated");
      same(created.body.value.repositories, session.repositories);
      same(created.body.value.ownVaultId, "vlt_own");

      const request = ForkSessionRequest.fromPartial({ sessionId: session.id });
      const fork = (await suite.client.session.forkSession(request)).session;
      same([fork?.repositories, fork?.ownVaultId], [session.repositories, "vlt_own"]);
      same(bound()?.gitRepositories.length, 2);
      same(bound()?.vaultIds, ["vlt_own", "vlt_a"]);
      await suite.update(session.id, {
        agentMcpServersJson: json([{ type: "url", name: "n", url: "https://n.example/mcp" }]),
        agentToolsJson: json([{ type: "mcp_toolset", mcp_server_name: "n" }]),
      });
      same(
        [bound()?.replacesMcpServers, bound()?.gitRepositories.length, bound()?.vaultIds[0]],
        [true, 2, "vlt_own"],
      );
    });

    it("the environment's rule on hosts is bound; what it does not say is not allowed", async () => {
      await suite.create();
      same(bound()?.networking?.type, NetworkingType.NETWORKING_TYPE_UNRESTRICTED);
      const config = {
        type: "cloud",
        networking: {
          type: "limited",
          allowed_hosts: ["API.example", "*.cdn.example"],
          allow_package_managers: true,
        },
      };
      const environmentJson = json({ name: "limited rule", config });
      const { environment } = await suite.client.environments.createEnvironment({
        ...{ requestId: "", environmentJson, workspaceId: "" },
      });
      const session = await suite.create({ environmentId: environment?.id ?? "" });
      same(bound()?.networking, {
        type: NetworkingType.NETWORKING_TYPE_LIMITED,
        allowedHosts: ["api.example", "*.cdn.example"],
        allowMcpServers: false,
        allowPackageManagers: true,
      });
      assert.equal(JSON.parse(Buffer.from(session.environmentJson).toString()).networking.type, "limited");
    });

    it("what is no repository, folder, branch or commit is refused, field by field [A071]", async () => {
      const bad: [string, Partial<CreateSessionRequest>][] = [
        ...[
          ...[
            "",
            "git@git.example:acme/app",
            "ssh://git.example/acme/app",
            "file:///etc",
            "https://git.example",
          ],
          ...["https://user:pw@git.example/a/b", "https://git.example/a?b=c", "https://git.example/../a/b"],
          ...["https://good.example/a%0ahost=evil.example", "https://good.example/a\nhost=evil.example/b"],
          `https://git.example/${"a".repeat(2048)}`,
        ].map((url): [string, Partial<CreateSessionRequest>] => [
          "repositories[0].url",
          { repositories: [repository({ url })] },
        ]),
        ...[
          "/",
          "/workspace",
          "/etc/x",
          "relative",
          "/workspace/../etc",
          "/workspace/a//b",
          "/workspace/a\nb",
        ].map((mountPath): [string, Partial<CreateSessionRequest>] => [
          "repositories[0].mount_path",
          { repositories: [repository({ mountPath })] },
        ]),
        ...["", "--upload-pack=x", "a..b", "a b", "a~1", "/a", "a/", "x.lock"].map(
          (value): [string, Partial<CreateSessionRequest>] => [
            "repositories[0].branch",
            { repositories: [repository({ checkout: { $case: "branch", value } })] },
          ],
        ),
        [
          "repositories[0].commit",
          { repositories: [repository({ checkout: { $case: "commit", value: "main" } })] },
        ],
        ["repositories[0].id", { repositories: [repository({ id: "sesrsc_1" })] }],
        [
          "repositories[1].url",
          { repositories: [repository({}), repository({ url: "https://git.example/acme/app/" })] },
        ],
        [
          "repositories[1].mount_path",
          {
            repositories: [
              repository({}),
              repository({ url: "https://git.example/b/c", mountPath: "/workspace/app/c" }),
            ],
          },
        ],
        [
          "repositories",
          {
            repositories: Array.from({ length: 21 }, (_, n) =>
              repository({ url: `https://git.example/a/r${n}` }),
            ),
          },
        ],
        ["own_vault_id", { ownVaultId: "vlt_a", vaultIds: ["vlt_a"] }],
        ["own_vault_id", { ownVaultId: "not an id" }],
        ["vault_ids", { ownVaultId: "vlt_own", vaultIds: Array.from({ length: 20 }, (_, n) => `vlt_${n}`) }],
      ];
      const before = kit().proxy.bound.length;
      for (const [field, more] of bad) {
        await assert.rejects(suite.create(more), refusedField(field), `${field}: ${JSON.stringify(more)}`);
      }
      assert.equal(kit().proxy.bound.length, before, "nothing was bound");
    });
  });
}
