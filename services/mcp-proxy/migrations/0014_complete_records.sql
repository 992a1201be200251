-- What records say since version 3 of the format: with which certificate was asked and for which door the token is, what the
-- bodies were, with which Vault token the secret was read, how far a request came, and which build wrote it. Records of before
-- keep their canonical form, and with it their hashes.
ALTER TABLE proxy.audit_records
  -- SHA-256 (hexadecimal) of the certificate that was shown at the door; empty where nobody asked from outside.
  ADD COLUMN caller_cert_sha256        text    NOT NULL DEFAULT '',
  -- "harness" or "hand"; empty where the token is not known.
  ADD COLUMN token_audience            text    NOT NULL DEFAULT '',
  -- HMACs (hexadecimal) with keys that the database does not have, and the id of the key that they follow from.
  ADD COLUMN request_body_hmac         text    NOT NULL DEFAULT '',
  ADD COLUMN response_body_hmac        text    NOT NULL DEFAULT '',
  ADD COLUMN vault_token_accessor_hmac text    NOT NULL DEFAULT '',
  ADD COLUMN hmac_key_id               text    NOT NULL DEFAULT '',
  -- An answer came, and it or the rest of it did not reach the caller.
  ADD COLUMN response_withheld         boolean NOT NULL DEFAULT false,
  -- How far it came outside: "none", "sent", "complete" or "unknown" on outcomes and recoveries, else empty.
  ADD COLUMN upstream_effect           text    NOT NULL DEFAULT '',
  -- Program and version that wrote it; empty in what an older replica writes while this is applied already.
  ADD COLUMN build                     text    NOT NULL DEFAULT '';

-- audit_parts as before, with the new keys in records of version 3.
CREATE OR REPLACE FUNCTION proxy.audit_parts(r proxy.audit_records) RETURNS text[]
LANGUAGE plpgsql STABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  RETURN ARRAY[
    '{"boot_id":' || to_json(r.boot_id)::text
    || CASE WHEN r.v > 2 THEN ',"build":' || to_json(r.build)::text ELSE '' END
    || ',"call_key":' || to_json(r.call_key)::text
    || ',"caller":' || to_json(r.caller)::text
    || CASE WHEN r.v > 2 THEN ',"caller_cert_sha256":' || to_json(r.caller_cert_sha256)::text ELSE '' END
    || ',"created_at":"' || to_char(r.created_at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"')
    || '","credential_id":' || to_json(r.credential_id)::text
    || ',"credential_version":"' || r.credential_version
    || '","destination":' || to_json(r.destination)::text
    || ',"detail":' || to_json(r.detail)::text
    || ',"effect":' || to_json(r.effect)::text
    || ',"epoch":"' || r.epoch || '",',
    CASE WHEN r.v > 2 THEN '"hmac_key_id":' || to_json(r.hmac_key_id)::text || ',' ELSE '' END
    || '"instance":' || to_json(r.instance)::text
    || ',"kind":' || to_json(r.kind)::text
    || ',"log_id":' || to_json(r.log_id)::text
    || ',"operation":' || to_json(r.operation)::text
    || ',"peer_address":' || to_json(r.peer_address)::text
    || CASE WHEN r.v > 1 THEN ',"peer_spki_sha256":' || to_json(r.peer_spki_sha256)::text ELSE '' END
    || ',"policy_digest":' || to_json(r.policy_digest)::text
    || ',"prev":' || to_json(r.prev)::text
    || ',"reason":' || to_json(r.reason)::text
    || ',"record_count":"' || r.record_count
    || '","redactions":"' || r.redactions
    || '"' || CASE WHEN r.v > 2 THEN ',"request_body_hmac":' || to_json(r.request_body_hmac)::text ELSE '' END
    || ',"request_bytes":"' || r.request_bytes
    || '","request_id":' || to_json(r.request_id)::text
    || CASE WHEN r.v > 2 THEN ',"response_body_hmac":' || to_json(r.response_body_hmac)::text ELSE '' END
    || ',"response_bytes":"' || r.response_bytes || '"'
    || CASE WHEN r.v > 2 THEN ',"response_withheld":' || to_json(r.response_withheld)::text ELSE '' END
    || ',"rule_id":' || to_json(r.rule_id)::text
    || ',"sequence":"' || r.sequence
    || '","session_id":' || to_json(r.session_id)::text
    || ',"status":' || r.status
    || ',"target":' || to_json(r.target)::text
    || CASE WHEN r.v > 1 THEN ',"tls_version":' || to_json(r.tls_version)::text ELSE '' END
    || CASE WHEN r.v > 2 THEN ',"token_audience":' || to_json(r.token_audience)::text ELSE '' END
    || ',"token_id":' || to_json(r.token_id)::text
    || CASE WHEN r.v > 2 THEN ',"upstream_effect":' || to_json(r.upstream_effect)::text ELSE '' END
    || ',"v":' || r.v
    || ',"vault_request_id":' || to_json(r.vault_request_id)::text
    || CASE WHEN r.v > 2 THEN ',"vault_token_accessor_hmac":' || to_json(r.vault_token_accessor_hmac)::text ELSE '' END
    || ',"workspace_id":' || to_json(r.workspace_id)::text || '}'];
END $$;

-- write_records as before; what it writes is of version 3.
CREATE OR REPLACE FUNCTION proxy.write_records(entries jsonb)
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
  blank.v := 3;
  blank.request_id := ''; blank.session_id := ''; blank.workspace_id := ''; blank.epoch := 0;
  blank.caller := ''; blank.token_id := ''; blank.operation := ''; blank.destination := ''; blank.target := '';
  blank.effect := ''; blank.reason := ''; blank.policy_digest := ''; blank.rule_id := '';
  blank.credential_id := ''; blank.credential_version := 0; blank.vault_request_id := ''; blank.peer_address := '';
  blank.peer_spki_sha256 := ''; blank.tls_version := '';
  blank.caller_cert_sha256 := ''; blank.token_audience := ''; blank.request_body_hmac := ''; blank.response_body_hmac := '';
  blank.vault_token_accessor_hmac := ''; blank.hmac_key_id := ''; blank.response_withheld := false;
  blank.upstream_effect := ''; blank.build := '';
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
      IF rec.kind = 'dispatch' THEN
        UPDATE proxy.open_requests AS o SET is_dispatched = true WHERE o.request_id = rec.request_id;
        IF NOT FOUND THEN refusal := 'REQUEST_CLOSED'; END IF;
      ELSIF rec.kind IN ('outcome', 'recovery') THEN
        DELETE FROM proxy.open_requests AS o WHERE o.request_id = rec.request_id;
        IF NOT FOUND THEN refusal := 'REQUEST_CLOSED'; END IF;
      END IF;
    END IF;
    IF refusal IS NULL THEN
      head.sequence := head.sequence + 1;
      sequence := head.sequence;
      -- What a writer cannot choose.
      rec.v := 3;
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
      END IF;
    END IF;
    RETURN NEXT;
  END LOOP;
  UPDATE proxy.audit_head AS h SET sequence = head.sequence, hash = head.hash;
END $$;

-- write_session_ends as before, with the build of the writer.
CREATE FUNCTION proxy.write_session_ends(instance text, boot_id text, most integer, build text)
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
           'build', write_session_ends.build,
           'record_count', (SELECT count(*) FROM proxy.audit_records r
                            WHERE r.session_id = f.session_id AND r.session_id <> ''))) ORDER BY f.session_id)
  INTO entries
  FROM proxy.fences f LEFT JOIN proxy.bindings b USING (session_id) WHERE f.session_id = ANY (sessions);
  RETURN QUERY SELECT w.ordinal, w.sequence, w.refusal, w.line FROM proxy.write_records(entries) w;
END $$;

-- For replicas that were there before; they say nothing of their build.
CREATE OR REPLACE FUNCTION proxy.write_session_ends(instance text, boot_id text, most integer)
RETURNS TABLE (ordinal integer, sequence bigint, refusal text, line text)
LANGUAGE sql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
  SELECT w.ordinal, w.sequence, w.refusal, w.line FROM proxy.write_session_ends($1, $2, $3, '') w;
$$;

REVOKE ALL ON FUNCTION proxy.write_session_ends(text, text, integer, text) FROM PUBLIC;
DO $$
BEGIN
  IF EXISTS (SELECT FROM pg_roles WHERE rolname = 'ganglion_proxy') THEN
    GRANT EXECUTE ON FUNCTION proxy.write_session_ends(text, text, integer, text) TO ganglion_proxy;
  END IF;
END $$;
