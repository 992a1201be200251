-- What lies beside the log: content that is too large for an event, and cached folds.

-- Content in pieces of 1 MiB, the last one shorter, under the id of the upload that brought it. What no payload names is
-- invisible: a broken upload, or one whose payload id another upload got first.
CREATE TABLE session.payload_chunks (
  workspace_id text NOT NULL,
  upload_id text NOT NULL,
  nth integer NOT NULL CHECK (nth >= 0),
  data bytea NOT NULL CHECK (octet_length(data) BETWEEN 1 AND 1048576),
  created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
  PRIMARY KEY (workspace_id, upload_id, nth)
);
-- Pieces are read at offsets; images do not compress.
ALTER TABLE session.payload_chunks ALTER COLUMN data SET STORAGE EXTERNAL;
CREATE INDEX payload_chunks_age ON session.payload_chunks (created_at) WHERE nth = 0;

-- A session's payloads. A fork's payloads share the content of its source's.
CREATE TABLE session.payloads (
  workspace_id text NOT NULL,
  session_id text NOT NULL,
  payload_id text NOT NULL,
  upload_id text NOT NULL,
  size_bytes bigint NOT NULL CHECK (size_bytes BETWEEN 1 AND 33554432),
  sha256 bytea NOT NULL CHECK (octet_length(sha256) = 32),
  content_type text NOT NULL,
  created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
  PRIMARY KEY (workspace_id, session_id, payload_id)
);
CREATE INDEX payloads_upload ON session.payloads (workspace_id, upload_id);
CREATE INDEX payloads_age ON session.payloads (created_at);

-- That an event names a payload, or was about to: such a payload stays as long as its session.
CREATE TABLE session.payload_names (
  workspace_id text NOT NULL,
  session_id text NOT NULL,
  payload_id text NOT NULL,
  PRIMARY KEY (workspace_id, session_id, payload_id),
  FOREIGN KEY (workspace_id, session_id, payload_id) REFERENCES session.payloads
);

-- A harness's fold of the log up to a position; it may be thrown away at any time.
CREATE TABLE session.checkpoints (
  workspace_id text NOT NULL,
  session_id text NOT NULL,
  format text NOT NULL,
  position bigint NOT NULL CHECK (position > 0),
  data bytea NOT NULL,
  created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
  PRIMARY KEY (workspace_id, session_id, format)
);
ALTER TABLE session.checkpoints ALTER COLUMN data SET STORAGE EXTERNAL;

-- Whatever removes a session removes what lies beside its log.
CREATE FUNCTION session.remove_beside_log() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  uploads text[];
BEGIN
  DELETE FROM session.checkpoints c WHERE c.workspace_id = OLD.workspace_id AND c.session_id = OLD.session_id;
  DELETE FROM session.payload_names n WHERE n.workspace_id = OLD.workspace_id AND n.session_id = OLD.session_id;
  WITH removed AS (
    DELETE FROM session.payloads p WHERE p.workspace_id = OLD.workspace_id AND p.session_id = OLD.session_id
    RETURNING p.upload_id
  )
  SELECT array_agg(r.upload_id) INTO uploads FROM removed r;
  DELETE FROM session.payload_chunks c
    WHERE c.workspace_id = OLD.workspace_id AND c.upload_id = ANY (uploads)
      AND NOT EXISTS (SELECT FROM session.payloads p
        WHERE p.workspace_id = c.workspace_id AND p.upload_id = c.upload_id);
  RETURN NULL;
END
$$;
REVOKE ALL ON FUNCTION session.remove_beside_log() FROM PUBLIC;
CREATE TRIGGER sessions_beside_log AFTER DELETE ON session.sessions
  FOR EACH ROW EXECUTE FUNCTION session.remove_beside_log();

-- Removes the pieces of an upload that no payload names.
CREATE FUNCTION session.discard_upload(p_workspace_id text, p_upload_id text) RETURNS void
LANGUAGE sql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
  DELETE FROM session.payload_chunks c
    WHERE c.workspace_id = p_workspace_id AND c.upload_id = p_upload_id
      AND NOT EXISTS (SELECT FROM session.payloads p
        WHERE p.workspace_id = p_workspace_id AND p.upload_id = p_upload_id)
$$;
REVOKE ALL ON FUNCTION session.discard_upload(text, text) FROM PUBLIC;

-- Removes some content older than a day that no event names; returns how many payloads and uploads went. Whoever names a
-- payload at the same moment wins: the removal is then left for the next time.
CREATE FUNCTION session.remove_old_payloads() RETURNS integer
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  gone integer := 0;
  old record;
BEGIN
  FOR old IN
    SELECT p.workspace_id, p.session_id, p.payload_id FROM session.payloads p
    WHERE p.created_at < clock_timestamp() - interval '1 day' AND NOT EXISTS (SELECT FROM session.payload_names n
      WHERE n.workspace_id = p.workspace_id AND n.session_id = p.session_id AND n.payload_id = p.payload_id)
    ORDER BY p.created_at LIMIT 20
  LOOP
    BEGIN
      DELETE FROM session.payloads p WHERE p.workspace_id = old.workspace_id AND p.session_id = old.session_id
        AND p.payload_id = old.payload_id;
      gone := gone + 1;
    EXCEPTION WHEN foreign_key_violation THEN
      NULL;
    END;
  END LOOP;
  FOR old IN
    SELECT c.workspace_id, c.upload_id FROM session.payload_chunks c
    WHERE c.nth = 0 AND c.created_at < clock_timestamp() - interval '1 day'
      AND NOT EXISTS (SELECT FROM session.payloads p
        WHERE p.workspace_id = c.workspace_id AND p.upload_id = c.upload_id)
    ORDER BY c.created_at LIMIT 20
  LOOP
    DELETE FROM session.payload_chunks c WHERE c.workspace_id = old.workspace_id AND c.upload_id = old.upload_id;
    gone := gone + 1;
  END LOOP;
  RETURN gone;
END
$$;
REVOKE ALL ON FUNCTION session.remove_old_payloads() FROM PUBLIC;

GRANT SELECT, INSERT ON session.payload_chunks, session.payloads, session.payload_names TO ganglion_session;
GRANT SELECT, INSERT, UPDATE ON session.checkpoints TO ganglion_session;
GRANT EXECUTE ON FUNCTION session.discard_upload(text, text), session.remove_old_payloads() TO ganglion_session;
