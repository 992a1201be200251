import assert from "node:assert/strict";
import { OtherReplicas } from "../../../services/session/live/other-replicas.ts";

describe("other replicas of the session service", () => {
  it("are reckoned with until nobody has said anything for long enough, and again when one does", () => {
    let now = 0;
    const others = new OtherReplicas(10, () => now);
    others.assume();
    assert.equal(others.mayListen, true);
    now = 9;
    assert.equal(others.heard(), "expected");
    now = 18;
    assert.equal(others.mayListen, true);
    now = 19;
    assert.equal(others.mayListen, false);
    assert.equal(others.heard(), "unexpected");
    assert.equal(others.heard(), "expected");
    assert.equal(others.mayListen, true);
  });

  it("are reckoned with anew by a connection that is new", () => {
    let now = 0;
    const others = new OtherReplicas(10, () => now);
    others.assume();
    now = 50;
    assert.equal(others.mayListen, false);
    others.assume();
    assert.equal(others.mayListen, true);
  });
});
