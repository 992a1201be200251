-- The log, the little state derived from it, and the registry of agents, environments and keys.
-- Every table and key carries workspace_id; harness instances alone belong to no workspace.

CREATE TABLE session.workspaces (
  workspace_id text PRIMARY KEY,
  created_at timestamptz NOT NULL DEFAULT clock_timestamp()
);
INSERT INTO session.workspaces (workspace_id) VALUES ('wrkspc_default');

CREATE TABLE session.api_keys (
  workspace_id text NOT NULL REFERENCES session.workspaces,
  api_key_id text NOT NULL,
  key_sha256 bytea NOT NULL CHECK (octet_length(key_sha256) = 32),
  name text NOT NULL,
  created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
  revoked_at timestamptz,
  PRIMARY KEY (workspace_id, api_key_id),
  CONSTRAINT api_keys_id UNIQUE (api_key_id),
  CONSTRAINT api_keys_sha256 UNIQUE (key_sha256)
);
CREATE INDEX api_keys_list ON session.api_keys (workspace_id, created_at, api_key_id);

CREATE TABLE session.agents (
  workspace_id text NOT NULL REFERENCES session.workspaces,
  agent_id text NOT NULL,
  version integer NOT NULL CHECK (version > 0),
  created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
  archived_at timestamptz,
  PRIMARY KEY (workspace_id, agent_id),
  CONSTRAINT agents_id UNIQUE (agent_id)
);
CREATE INDEX agents_list ON session.agents (workspace_id, created_at, agent_id);

-- Definitions are bytes: jsonb reorders keys, rewrites numbers and refuses U+0000 (M25, M26).
CREATE TABLE session.agent_versions (
  workspace_id text NOT NULL,
  agent_id text NOT NULL,
  version integer NOT NULL CHECK (version > 0),
  name text NOT NULL,
  definition bytea NOT NULL,
  created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
  PRIMARY KEY (workspace_id, agent_id, version),
  FOREIGN KEY (workspace_id, agent_id) REFERENCES session.agents
);

CREATE TABLE session.environments (
  workspace_id text NOT NULL REFERENCES session.workspaces,
  environment_id text NOT NULL,
  name text NOT NULL,
  description text,
  config bytea NOT NULL,
  metadata bytea NOT NULL,
  created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
  updated_at timestamptz NOT NULL DEFAULT clock_timestamp(),
  archived_at timestamptz,
  PRIMARY KEY (workspace_id, environment_id),
  CONSTRAINT environments_id UNIQUE (environment_id),
  CONSTRAINT environments_name UNIQUE (workspace_id, name)
);
CREATE INDEX environments_list ON session.environments (workspace_id, created_at, environment_id);

-- A create that is repeated with the same request id finds here what it made.
CREATE TABLE session.request_ids (
  workspace_id text NOT NULL REFERENCES session.workspaces,
  method text NOT NULL,
  request_id text NOT NULL,
  request_digest bytea NOT NULL,
  resource_id text NOT NULL,
  created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
  CONSTRAINT request_ids_pkey PRIMARY KEY (workspace_id, method, request_id)
);

-- One row for each harness instance; its leases live as long as its heartbeat.
CREATE TABLE session.harness_instances (
  spiffe_id text PRIMARY KEY,
  boot_id text NOT NULL,
  active_sessions integer NOT NULL DEFAULT 0,
  is_draining boolean NOT NULL DEFAULT false,
  beat_at timestamptz NOT NULL DEFAULT clock_timestamp()
);

-- What every append touches: kept narrow, and on pages with room for its next version.
CREATE TABLE session.sessions (
  workspace_id text NOT NULL REFERENCES session.workspaces,
  session_id text NOT NULL,
  head bigint NOT NULL CHECK (head > 0),
  status text NOT NULL CHECK (status IN ('idle', 'running', 'rescheduling', 'terminated')),
  runnable boolean NOT NULL,
  runnable_at timestamptz,
  owner text,
  owner_boot text,
  epoch bigint NOT NULL DEFAULT 0,
  agent_id text NOT NULL,
  agent_version integer NOT NULL,
  environment_id text NOT NULL,
  usage bytea,
  active_ms bigint NOT NULL DEFAULT 0,
  stop_reason bytea,
  created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
  updated_at timestamptz NOT NULL DEFAULT clock_timestamp(),
  archived_at timestamptz,
  PRIMARY KEY (workspace_id, session_id),
  CONSTRAINT sessions_id UNIQUE (session_id),
  CHECK (NOT (runnable AND status = 'terminated')),
  CHECK ((owner IS NULL) = (owner_boot IS NULL))
) WITH (fillfactor = 60);
CREATE INDEX sessions_list ON session.sessions (workspace_id, created_at, session_id);
CREATE INDEX sessions_runnable ON session.sessions (runnable_at) WHERE runnable;
CREATE INDEX sessions_owner ON session.sessions (owner) WHERE owner IS NOT NULL;

-- What is read with a session and written rarely.
CREATE TABLE session.session_settings (
  workspace_id text NOT NULL,
  session_id text NOT NULL,
  title text NOT NULL,
  metadata bytea NOT NULL,
  agent_json bytea NOT NULL,
  environment_json bytea NOT NULL,
  vault_ids text[] NOT NULL,
  PRIMARY KEY (workspace_id, session_id)
);

-- The log. body is the encoded protobuf of the event's body, verbatim.
-- No foreign key: the append holds the session's row while it inserts, so does the removal.
CREATE TABLE session.events (
  workspace_id text NOT NULL,
  session_id text NOT NULL,
  position bigint NOT NULL CHECK (position > 0),
  event_id text NOT NULL,
  type text NOT NULL,
  thread_id text NOT NULL,
  epoch bigint NOT NULL,
  actor_role smallint NOT NULL,
  actor_subject text NOT NULL,
  traceparent text NOT NULL,
  may_ignore boolean NOT NULL,
  body bytea NOT NULL,
  body_digest bytea NOT NULL,
  created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
  CONSTRAINT events_pkey PRIMARY KEY (workspace_id, session_id, position),
  CONSTRAINT events_id UNIQUE (workspace_id, session_id, event_id)
) PARTITION BY HASH (session_id);
CREATE TABLE session.events_0 PARTITION OF session.events FOR VALUES WITH (MODULUS 8, REMAINDER 0);
CREATE TABLE session.events_1 PARTITION OF session.events FOR VALUES WITH (MODULUS 8, REMAINDER 1);
CREATE TABLE session.events_2 PARTITION OF session.events FOR VALUES WITH (MODULUS 8, REMAINDER 2);
CREATE TABLE session.events_3 PARTITION OF session.events FOR VALUES WITH (MODULUS 8, REMAINDER 3);
CREATE TABLE session.events_4 PARTITION OF session.events FOR VALUES WITH (MODULUS 8, REMAINDER 4);
CREATE TABLE session.events_5 PARTITION OF session.events FOR VALUES WITH (MODULUS 8, REMAINDER 5);
CREATE TABLE session.events_6 PARTITION OF session.events FOR VALUES WITH (MODULUS 8, REMAINDER 6);
CREATE TABLE session.events_7 PARTITION OF session.events FOR VALUES WITH (MODULUS 8, REMAINDER 7);

-- The only way to remove events: a whole session that is not running, with everything of it.
CREATE FUNCTION session.delete_session(p_workspace_id text, p_session_id text) RETURNS boolean
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  DELETE FROM session.sessions s
    WHERE s.workspace_id = p_workspace_id AND s.session_id = p_session_id AND s.status NOT IN ('running', 'rescheduling');
  IF NOT FOUND THEN
    RETURN false;
  END IF;
  DELETE FROM session.events e WHERE e.workspace_id = p_workspace_id AND e.session_id = p_session_id;
  DELETE FROM session.session_settings t WHERE t.workspace_id = p_workspace_id AND t.session_id = p_session_id;
  RETURN true;
END
$$;
REVOKE ALL ON FUNCTION session.delete_session(text, text) FROM PUBLIC;

-- The service may add events and read them, and never change or remove one (case A137).
GRANT USAGE ON SCHEMA session TO ganglion_session;
GRANT SELECT, INSERT ON session.events TO ganglion_session;
GRANT SELECT, INSERT ON session.workspaces, session.request_ids TO ganglion_session;
GRANT SELECT, INSERT ON session.api_keys TO ganglion_session;
GRANT UPDATE (revoked_at) ON session.api_keys TO ganglion_session;
GRANT SELECT, INSERT ON session.agents, session.agent_versions TO ganglion_session;
GRANT UPDATE (version, archived_at) ON session.agents TO ganglion_session;
GRANT SELECT, INSERT, DELETE ON session.environments TO ganglion_session;
GRANT UPDATE (name, description, config, metadata, updated_at, archived_at) ON session.environments TO ganglion_session;
GRANT SELECT, INSERT ON session.sessions TO ganglion_session;
GRANT UPDATE (head, status, runnable, runnable_at, owner, owner_boot, epoch, usage, active_ms, stop_reason,
  updated_at, archived_at) ON session.sessions TO ganglion_session;
GRANT SELECT, INSERT ON session.session_settings TO ganglion_session;
GRANT UPDATE (title, metadata) ON session.session_settings TO ganglion_session;
GRANT SELECT, INSERT, UPDATE ON session.harness_instances TO ganglion_session;
GRANT EXECUTE ON FUNCTION session.delete_session(text, text) TO ganglion_session;
