import assert from "node:assert/strict";
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { GanglionError } from "../../../services/common/errors/ganglion-error.ts";
import { removeFolder } from "../../kit/remove-folder.ts";
import { SandboxKit } from "./sandbox-kit.ts";
import { giveTo, makeDataFolder, sandboxUser } from "./sandbox-process.ts";

describe("sandbox: where hands can have no user id of their own", function () {
  this.timeout(60_000);
  const user = sandboxUser();
  let folder: string;
  let data: string;

  before(() => {
    // Only its owner may enter the folder above: another user's jail cannot be made of what lies below it.
    folder = makeDataFolder(user);
    mkdirSync(join(folder, "closed"), { mode: 0o700 });
    data = join(folder, "closed", "data");
    mkdirSync(data);
    giveTo(user, folder);
  });
  after(() => removeFolder(folder));

  it("hands share the service's, and the service says why", async () => {
    const kit = await SandboxKit.start({ GANGLION_DATA_DIR: data });
    try {
      const hand = await kit.newHand();
      assert.equal((await hand.bash("id -u; pwd")).output, "1000\n/workspace");
      const answer = (await (await fetch(`http://${kit.process.adminAddr}/readyz`)).json()) as unknown;
      assert.match(JSON.stringify(answer), /"per_hand_uid"[^}]*"off: /);
    } finally {
      await kit.stop();
    }
  });

  it("none is made when ids of their own are required", async () => {
    const kit = await SandboxKit.start({ GANGLION_DATA_DIR: data, GANGLION_HAND_UIDS: "required" });
    try {
      const refused = (error: unknown) => GanglionError.is(error, "DRIVER_UNAVAILABLE");
      await assert.rejects(kit.newHand(), refused);
      const answer = await fetch(`http://${kit.process.adminAddr}/readyz`);
      assert.equal(answer.status, 503);
    } finally {
      await kit.stop();
    }
  });
});
