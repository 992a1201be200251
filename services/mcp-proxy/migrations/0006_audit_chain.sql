-- The audit log becomes a hash chain with signed checkpoints; docs/AUDIT_FORMAT.md has the format. Hashes are computed here,
-- under the lock of the log's one head, so that no writer can leave them out.

ALTER TABLE proxy.audit_head
  ADD COLUMN log_id text NOT NULL DEFAULT '',
  ADD COLUMN hash   text NOT NULL DEFAULT repeat('0', 64);
UPDATE proxy.audit_head SET log_id = 'log_' || replace(gen_random_uuid()::text, '-', '');
ALTER TABLE proxy.audit_head ALTER COLUMN log_id DROP DEFAULT;

ALTER TABLE proxy.audit_records
  DROP CONSTRAINT audit_records_kind_check,
  ADD CONSTRAINT audit_records_kind_check CHECK (kind IN (
    'decision', 'dispatch', 'outcome', 'recovery', 'log_open', 'log_close', 'session_end', 'anomaly', 'key_change',
    'policy_change', 'honeytoken')),
  ADD COLUMN v             integer NOT NULL DEFAULT 1,
  ADD COLUMN log_id        text NOT NULL DEFAULT '',
  ADD COLUMN policy_digest text NOT NULL DEFAULT '',
  ADD COLUMN rule_id       text NOT NULL DEFAULT '',
  -- On a session_end: how many records of the session stand before it.
  ADD COLUMN record_count  bigint NOT NULL DEFAULT 0,
  ADD COLUMN detail        text NOT NULL DEFAULT '',
  ADD COLUMN prev          text NOT NULL DEFAULT '',
  ADD COLUMN hash          text NOT NULL DEFAULT '';
-- Records of a process, a session or a key belong to no request.
DROP INDEX proxy.audit_records_request;
CREATE UNIQUE INDEX audit_records_request ON proxy.audit_records (request_id, kind) WHERE request_id <> '';
CREATE UNIQUE INDEX audit_records_session_end ON proxy.audit_records (session_id) WHERE kind = 'session_end';
CREATE INDEX audit_records_key_change ON proxy.audit_records (detail) WHERE kind = 'key_change';

-- audit_parts is the canonical form of a record (RFC 8785) in two pieces: what stands before the key "hash" and what after.
CREATE FUNCTION proxy.audit_parts(r proxy.audit_records) RETURNS text[]
LANGUAGE plpgsql STABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  RETURN ARRAY[
    '{"boot_id":' || to_json(r.boot_id)::text
    || ',"call_key":' || to_json(r.call_key)::text
    || ',"caller":' || to_json(r.caller)::text
    || ',"created_at":"' || to_char(r.created_at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"')
    || '","credential_id":' || to_json(r.credential_id)::text
    || ',"credential_version":"' || r.credential_version
    || '","destination":' || to_json(r.destination)::text
    || ',"detail":' || to_json(r.detail)::text
    || ',"effect":' || to_json(r.effect)::text
    || ',"epoch":"' || r.epoch || '",',
    '"instance":' || to_json(r.instance)::text
    || ',"kind":' || to_json(r.kind)::text
    || ',"log_id":' || to_json(r.log_id)::text
    || ',"operation":' || to_json(r.operation)::text
    || ',"peer_address":' || to_json(r.peer_address)::text
    || ',"policy_digest":' || to_json(r.policy_digest)::text
    || ',"prev":' || to_json(r.prev)::text
    || ',"reason":' || to_json(r.reason)::text
    || ',"record_count":"' || r.record_count
    || '","redactions":"' || r.redactions
    || '","request_bytes":"' || r.request_bytes
    || '","request_id":' || to_json(r.request_id)::text
    || ',"response_bytes":"' || r.response_bytes
    || '","rule_id":' || to_json(r.rule_id)::text
    || ',"sequence":"' || r.sequence
    || '","session_id":' || to_json(r.session_id)::text
    || ',"status":' || r.status
    || ',"target":' || to_json(r.target)::text
    || ',"token_id":' || to_json(r.token_id)::text
    || ',"v":' || r.v
    || ',"vault_request_id":' || to_json(r.vault_request_id)::text
    || ',"workspace_id":' || to_json(r.workspace_id)::text || '}'];
END $$;

-- audit_line is a record as it stands in an export, without the line feed.
CREATE FUNCTION proxy.audit_line(r proxy.audit_records) RETURNS text
LANGUAGE plpgsql STABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  parts text[] := proxy.audit_parts(r);
BEGIN
  RETURN parts[1] || '"hash":' || to_json(r.hash)::text || ',' || parts[2];
END $$;

-- Records that are here already are chained in their order.
DO $$
DECLARE
  rec proxy.audit_records%ROWTYPE;
  parts text[];
  head proxy.audit_head%ROWTYPE;
BEGIN
  SELECT h.* INTO head FROM proxy.audit_head h;
  FOR rec IN SELECT r.* FROM proxy.audit_records r ORDER BY r.sequence LOOP
    rec.log_id := head.log_id;
    rec.prev := head.hash;
    parts := proxy.audit_parts(rec);
    head.hash := encode(sha256('\x00'::bytea || convert_to(parts[1] || parts[2], 'UTF8')), 'hex');
    UPDATE proxy.audit_records AS a SET log_id = rec.log_id, prev = rec.prev, hash = head.hash
    WHERE a.sequence = rec.sequence;
  END LOOP;
  UPDATE proxy.audit_head SET hash = head.hash;
END $$;
ALTER TABLE proxy.audit_records
  ALTER COLUMN log_id DROP DEFAULT, ALTER COLUMN prev DROP DEFAULT, ALTER COLUMN hash DROP DEFAULT,
  ADD CONSTRAINT audit_records_hash_check CHECK (length(hash) = 64 AND length(prev) = 64);

-- write_records appends records, each with the next sequence and its hash, in one transaction. An entry whose guard fails is
-- left out and says why. Nobody may insert any other way. `line` is the record as exported.
DROP FUNCTION proxy.write_records(jsonb);
CREATE FUNCTION proxy.write_records(entries jsonb)
RETURNS TABLE (ordinal integer, sequence bigint, refusal text, line text)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
#variable_conflict use_column
DECLARE
  head proxy.audit_head%ROWTYPE;
  entry jsonb;
  blank proxy.audit_records%ROWTYPE;
  rec proxy.audit_records%ROWTYPE;
  parts text[];
BEGIN
  blank.v := 1;
  blank.request_id := ''; blank.session_id := ''; blank.workspace_id := ''; blank.epoch := 0;
  blank.caller := ''; blank.token_id := ''; blank.operation := ''; blank.destination := ''; blank.target := '';
  blank.effect := ''; blank.reason := ''; blank.policy_digest := ''; blank.rule_id := '';
  blank.credential_id := ''; blank.credential_version := 0; blank.vault_request_id := ''; blank.peer_address := '';
  blank.status := 0; blank.request_bytes := 0; blank.response_bytes := 0; blank.call_key := '';
  blank.redactions := 0; blank.record_count := 0; blank.detail := '';
  SELECT h.* INTO head FROM proxy.audit_head h FOR UPDATE;
  ordinal := -1;
  FOR entry IN SELECT e.value FROM jsonb_array_elements(entries) WITH ORDINALITY AS e (value, n) ORDER BY e.n LOOP
    ordinal := ordinal + 1;
    refusal := NULL;
    sequence := 0;
    line := NULL;
    IF entry ? 'guard' THEN refusal := proxy.check_guard(entry -> 'guard'); END IF;
    IF refusal IS NULL THEN
      rec := jsonb_populate_record(blank, entry -> 'record');
      head.sequence := head.sequence + 1;
      sequence := head.sequence;
      -- What a writer cannot choose.
      rec.v := 1;
      rec.sequence := head.sequence;
      rec.created_at := clock_timestamp();
      rec.log_id := head.log_id;
      rec.prev := head.hash;
      parts := proxy.audit_parts(rec);
      rec.hash := encode(sha256('\x00'::bytea || convert_to(parts[1] || parts[2], 'UTF8')), 'hex');
      head.hash := rec.hash;
      line := parts[1] || '"hash":"' || rec.hash || '",' || parts[2];
      INSERT INTO proxy.audit_records SELECT rec.*;
      IF rec.kind = 'decision' AND rec.effect = 'allow' THEN
        INSERT INTO proxy.open_requests (request_id, instance, boot_id)
        VALUES (rec.request_id, rec.instance, rec.boot_id);
      ELSIF rec.kind = 'dispatch' THEN
        UPDATE proxy.open_requests AS o SET is_dispatched = true WHERE o.request_id = rec.request_id;
      ELSIF rec.kind IN ('outcome', 'recovery') THEN
        DELETE FROM proxy.open_requests AS o WHERE o.request_id = rec.request_id;
      END IF;
    END IF;
    RETURN NEXT;
  END LOOP;
  UPDATE proxy.audit_head AS h SET sequence = head.sequence, hash = head.hash;
END $$;

-- The end of each session is recorded once, whichever replica comes first. What ended before this version stays without.
ALTER TABLE proxy.fences ADD COLUMN end_recorded boolean NOT NULL DEFAULT false;
UPDATE proxy.fences SET end_recorded = true WHERE ended;
CREATE INDEX fences_end_unrecorded ON proxy.fences (session_id) WHERE ended AND NOT end_recorded;

-- write_session_ends appends the session_end of up to `most` sessions that have ended and have no open request any more, or
-- ended 10 s ago.
CREATE FUNCTION proxy.write_session_ends(instance text, boot_id text, most integer)
RETURNS TABLE (ordinal integer, sequence bigint, refusal text, line text)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
#variable_conflict use_column
DECLARE
  sessions text[];
  entries jsonb;
BEGIN
  -- Fences first and the head after: who raises a fence holds no head, and is never waited for with the head in hand.
  SELECT array_agg(p.session_id) INTO sessions FROM (
    SELECT f.session_id FROM proxy.fences f
    WHERE f.ended AND NOT f.end_recorded
      AND (f.raised_at < now() - interval '10 s' OR NOT EXISTS (
        SELECT FROM proxy.open_requests o
        JOIN proxy.audit_records r ON r.request_id = o.request_id AND r.kind = 'decision'
        WHERE r.session_id = f.session_id AND r.request_id <> ''))
    ORDER BY f.session_id LIMIT write_session_ends.most FOR UPDATE OF f SKIP LOCKED) p;
  IF sessions IS NULL THEN RETURN; END IF;
  UPDATE proxy.fences AS f SET end_recorded = true WHERE f.session_id = ANY (sessions);
  PERFORM FROM proxy.audit_head h FOR UPDATE;
  SELECT jsonb_agg(jsonb_build_object('record', jsonb_build_object(
           'kind', 'session_end', 'session_id', f.session_id, 'workspace_id', COALESCE(b.workspace_id, ''),
           'epoch', f.lowest_epoch, 'instance', write_session_ends.instance, 'boot_id', write_session_ends.boot_id,
           'record_count', (SELECT count(*) FROM proxy.audit_records r
                            WHERE r.session_id = f.session_id AND r.session_id <> ''))) ORDER BY f.session_id)
  INTO entries
  FROM proxy.fences f LEFT JOIN proxy.bindings b USING (session_id) WHERE f.session_id = ANY (sessions);
  RETURN QUERY SELECT w.ordinal, w.sequence, w.refusal, w.line FROM proxy.write_records(entries) w;
END $$;

-- Checkpoints: signed notes. `prev` is the digest of the one before, so there is one after each.
CREATE TABLE proxy.audit_checkpoints (
  size       bigint PRIMARY KEY,
  head_hash  text NOT NULL,
  prev       text NOT NULL UNIQUE,
  digest     text NOT NULL UNIQUE,
  note       text NOT NULL,
  created_at timestamptz NOT NULL DEFAULT now()
);

-- add_checkpoint stores a checkpoint that extends the last one and names the hash that its record has; false when it does not:
-- another replica came first.
CREATE FUNCTION proxy.add_checkpoint(size bigint, head_hash text, prev text, digest text, note text) RETURNS boolean
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
#variable_conflict use_column
DECLARE
  last proxy.audit_checkpoints%ROWTYPE;
BEGIN
  -- One at a time; readers do not wait.
  LOCK TABLE proxy.audit_checkpoints IN SHARE ROW EXCLUSIVE MODE;
  SELECT c.* INTO last FROM proxy.audit_checkpoints c ORDER BY c.size DESC LIMIT 1;
  IF COALESCE(last.size, 0) >= add_checkpoint.size
     OR COALESCE(last.digest, repeat('0', 64)) <> add_checkpoint.prev
     OR NOT EXISTS (SELECT FROM proxy.audit_records r
                    WHERE r.sequence = add_checkpoint.size AND r.hash = add_checkpoint.head_hash) THEN
    RETURN false;
  END IF;
  INSERT INTO proxy.audit_checkpoints (size, head_hash, prev, digest, note)
  VALUES (add_checkpoint.size, add_checkpoint.head_hash, add_checkpoint.prev, add_checkpoint.digest, add_checkpoint.note);
  RETURN true;
END $$;

REVOKE ALL ON proxy.audit_checkpoints FROM PUBLIC;
REVOKE ALL ON FUNCTION proxy.audit_parts(proxy.audit_records), proxy.audit_line(proxy.audit_records),
  proxy.write_records(jsonb), proxy.write_session_ends(text, text, integer),
  proxy.add_checkpoint(bigint, text, text, text, text) FROM PUBLIC;
DO $$
BEGIN
  IF EXISTS (SELECT FROM pg_roles WHERE rolname = 'ganglion_proxy') THEN
    GRANT SELECT ON proxy.audit_checkpoints TO ganglion_proxy;
    GRANT EXECUTE ON FUNCTION proxy.audit_parts(proxy.audit_records), proxy.audit_line(proxy.audit_records),
      proxy.write_records(jsonb), proxy.write_session_ends(text, text, integer),
      proxy.add_checkpoint(bigint, text, text, text, text) TO ganglion_proxy;
  END IF;
END $$;
