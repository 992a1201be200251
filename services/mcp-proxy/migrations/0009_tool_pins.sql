-- Pins of the tools of MCP servers (case A052): the definition of each tool as it was first seen, or approved later. A tool
-- whose server describes it otherwise is not called and its server not listed until somebody approves what was seen.
CREATE TABLE proxy.tool_pins (
  workspace_id    text NOT NULL,
  -- The server's URL in normal form.
  server_url      text NOT NULL,
  tool_name       text NOT NULL,
  -- SHA-256 of the definition that may be used.
  sha256          bytea NOT NULL,
  -- Its text, for people; empty when it is too long to be kept.
  definition      text NOT NULL,
  -- "first use", or who approved it.
  pinned_by       text NOT NULL,
  pinned_at       timestamptz NOT NULL DEFAULT now(),
  -- Over the key and sha256.
  mac             bytea NOT NULL,
  -- The other definition that the server gave last; null while there is none to judge.
  seen_sha256     bytea,
  seen_definition text,
  seen_at         timestamptz,
  PRIMARY KEY (workspace_id, server_url, tool_name)
);

-- pin_tools pins tools that have no pin, and notes for those that have another one what was seen instead. It answers
-- with the pins as they are now, so whoever lost a race learns what it lost to.
CREATE FUNCTION proxy.pin_tools(workspace_id text, server_url text, tools jsonb)
RETURNS TABLE (tool_name text, sha256 bytea, seen_sha256 bytea, mac bytea)
LANGUAGE sql SET search_path = pg_catalog, pg_temp AS $$
  INSERT INTO proxy.tool_pins AS p (workspace_id, server_url, tool_name, sha256, definition, pinned_by, mac)
  SELECT pin_tools.workspace_id, pin_tools.server_url, t ->> 'name', decode(t ->> 'sha256', 'hex'), t ->> 'definition',
         'first use', decode(t ->> 'mac', 'hex')
  FROM jsonb_array_elements(tools) t
  -- In one order, so that two that pin the same tools do not wait for each other.
  ORDER BY t ->> 'name'
  ON CONFLICT ON CONSTRAINT tool_pins_pkey DO UPDATE
    SET seen_sha256 = CASE WHEN p.sha256 = excluded.sha256 THEN p.seen_sha256 ELSE excluded.sha256 END,
        seen_definition = CASE WHEN p.sha256 = excluded.sha256 THEN p.seen_definition ELSE excluded.definition END,
        seen_at = CASE WHEN p.sha256 = excluded.sha256 THEN p.seen_at ELSE now() END
  RETURNING p.tool_name, p.sha256, p.seen_sha256, p.mac
$$;
REVOKE ALL ON FUNCTION proxy.pin_tools(text, text, jsonb) FROM PUBLIC;

DO $$
BEGIN
  IF EXISTS (SELECT FROM pg_roles WHERE rolname = 'ganglion_proxy') THEN
    GRANT SELECT, INSERT, UPDATE ON proxy.tool_pins TO ganglion_proxy;
    GRANT EXECUTE ON FUNCTION proxy.pin_tools(text, text, jsonb) TO ganglion_proxy;
  END IF;
END $$;
