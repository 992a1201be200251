import assert from "node:assert/strict";
import {
  type CreateSessionRequest,
  GetEventsRequest,
  type Lease,
  type Session,
  UpdateSessionRequest,
} from "../../../services/gen/ganglion/session/v1/session_service.ts";
import type { Event } from "../../../services/gen/ganglion/types/v1/event.ts";
import { type Caller, makeFixture, OTHER_WORKSPACE, type SessionKit } from "./session-kit.ts";

/** What the tests of one suite work with: callers that are theirs alone, an agent and an environment. */
export class Suite {
  client!: Caller;
  /** A client of another workspace. */
  stranger!: Caller;
  operator!: Caller;
  harness!: Caller;
  fixture!: Awaited<ReturnType<typeof makeFixture>>;
  /** The boot of the harness that `acquire` tells of. */
  readonly bootId: string;

  /** To be made inside `describe`; everything is there when the tests begin. The callers dial `address`. */
  constructor(kit: () => SessionKit, name: string, address = () => kit().service.listening.addr) {
    this.bootId = `boot-for-the-suite-${name}`;
    before(async () => {
      this.client = await kit().asClient("wrkspc_default", address());
      this.stranger = await kit().asClient(OTHER_WORKSPACE, address());
      this.operator = await kit().as("operator", "operator-1", address());
      this.harness = await kit().as("harness", `harness-${name}`, address());
      this.fixture = await makeFixture(this.client);
    });
  }

  /** A new session of the client's. */
  create(more: Partial<CreateSessionRequest> = {}): Promise<Session> {
    return this.fixture.create(more);
  }

  /** The harness takes that session. */
  async acquire(sessionId: string): Promise<Lease> {
    const { session } = this.harness;
    await session.harnessHeartbeat({ bootId: this.bootId, activeSessions: 0, isDraining: false });
    const { lease } = await session.acquireLease({ sessionId, bootId: this.bootId });
    assert.ok(lease);
    return lease;
  }

  /** The record of a session. */
  async get(sessionId: string, caller = this.client): Promise<Session> {
    const { session } = await caller.session.getSession({ sessionId });
    assert.ok(session);
    return session;
  }

  /** Changes a session. */
  async update(sessionId: string, more: Partial<UpdateSessionRequest>): Promise<Session> {
    const request = UpdateSessionRequest.fromPartial({ sessionId, ...more });
    const { session } = await this.client.session.updateSession(request);
    assert.ok(session);
    return session;
  }

  /** The first thousand events of a session, or those that `more` asks for. */
  async eventsOf(sessionId: string, more: Partial<GetEventsRequest> = {}): Promise<Event[]> {
    const request = GetEventsRequest.fromPartial({ sessionId, limit: 1000, ...more });
    return (await this.client.session.getEvents(request)).events;
  }
}
