import type { HandName, HandSetup, WayOut, WaysOut } from "../domain/way-out.ts";
import { type DoorParts, HandDoor } from "./hand-door.ts";
import { HandToken } from "./hand-token.ts";

/** What the proxy is asked about hands. */
export interface ProxyBindings {
  /** What a hand is given; undefined = nothing may be reached from it. */
  getSetup(hand: HandName): Promise<HandSetup | undefined>;
  /** Another token for the hand. */
  issueToken(hand: HandName): Promise<string>;
}

/** ProxyWaysOut leads hands through mcp-proxy's egress door. */
export class ProxyWaysOut implements WaysOut {
  readonly #bindings: ProxyBindings;
  readonly #parts: DoorParts;

  constructor(bindings: ProxyBindings, parts: DoorParts) {
    this.#bindings = bindings;
    this.#parts = parts;
  }

  async find(hand: HandName): Promise<WayOut | undefined> {
    const setup = await this.#bindings.getSetup(hand);
    if (!setup) return undefined;
    const issue = () => this.#bindings.issueToken(hand);
    return {
      setup,
      maxConnections: this.#parts.limits.perHand,
      open: (folder) => HandDoor.open(folder, this.#parts, new HandToken(issue, () => performance.now())),
    };
  }
}
