import assert from "node:assert/strict";
import { RepositoryFailure_Kind as KIND } from "../../../services/gen/ganglion/sandbox/v1/sandbox_service.ts";
import { repositoryFailure } from "../../../services/harness/domain/repository-failures.ts";
import type { Hands } from "../../../services/harness/ports/hands.ts";
import { session, World } from "./fakes/brain.ts";
import { answer, bash } from "./fakes/scripted-parts.ts";

const URL = "https://git.example/acme/app";

describe("repositories of a session's hands", () => {
  it("each new hand is asked for with them; what is missing is told beside the hand, and the call runs", async () => {
    const [created, said] = session();
    const repositories = [{ id: "sesrsc_1", url: URL, mountPath: "/workspace/app", mayPush: false }];
    const world = new World(
      [{ ...created!, body: { ...created!.body, repositories } }, said!],
      answer("tool_use", bash("a", "pwd")),
      answer("end_turn", "Done."),
    );
    const asked: string[][] = [];
    const provision = world.hands.provision.bind(world.hands);
    world.hands.provision = async (request?: Parameters<Hands["provision"]>[0]) => {
      asked.push((request?.repositories ?? []).map(({ url, mountPath }) => `${url} ${mountPath}`));
      return { ...(await provision()), repositoryFailures: [{ url: URL, kind: KIND.KIND_NOT_FOUND }] };
    };
    await world.drive();
    assert.deepEqual(asked, [[`${URL} /workspace/app`]]);
    const types = world.log.types();
    assert.equal(types[types.indexOf("ganglionHandProvisioned") + 1], "sessionError");
    const [error] = world.log.all("sessionError");
    assert.deepEqual(
      [error?.errorType, error?.repositoryUrl, error?.retryStatus],
      ["repository_not_found_error", URL, 1],
    );
    assert.equal(world.log.all("agentToolResult")[0]?.isError, false);
    assert.equal(types.at(-1), "sessionStatusIdle");
  });

  it("each kind of failure has an error type of its own", () => {
    const kinds = Object.values(KIND).filter((kind) => kind !== KIND.KIND_UNSPECIFIED);
    const types = kinds.map((kind) => repositoryFailure({ url: URL, kind }).errorType);
    assert.deepEqual(types, [
      "repository_authentication_error",
      "repository_forbidden_error",
      "repository_not_found_error",
      "repository_checkout_error",
      "repository_clone_error",
    ]);
  });
});
