-- What was seen of the connection over which a request went. Records that have it are of format version 2; those of version 1
-- keep their canonical form, and with it their hashes.
ALTER TABLE proxy.audit_records
  -- "TLSv1.3", "TLSv1.2", "none" (plain HTTP) or "tunnel" (TLS of a hand's own); empty where no connection was used.
  ADD COLUMN tls_version      text NOT NULL DEFAULT '',
  ADD COLUMN peer_spki_sha256 text NOT NULL DEFAULT '';

-- audit_parts as before, with the new keys in records of version 2.
CREATE OR REPLACE FUNCTION proxy.audit_parts(r proxy.audit_records) RETURNS text[]
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
    || CASE WHEN r.v > 1 THEN ',"peer_spki_sha256":' || to_json(r.peer_spki_sha256)::text ELSE '' END
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
    || CASE WHEN r.v > 1 THEN ',"tls_version":' || to_json(r.tls_version)::text ELSE '' END
    || ',"token_id":' || to_json(r.token_id)::text
    || ',"v":' || r.v
    || ',"vault_request_id":' || to_json(r.vault_request_id)::text
    || ',"workspace_id":' || to_json(r.workspace_id)::text || '}'];
END $$;

-- write_records as before; what it writes is of version 2.
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
  blank.v := 2;
  blank.request_id := ''; blank.session_id := ''; blank.workspace_id := ''; blank.epoch := 0;
  blank.caller := ''; blank.token_id := ''; blank.operation := ''; blank.destination := ''; blank.target := '';
  blank.effect := ''; blank.reason := ''; blank.policy_digest := ''; blank.rule_id := '';
  blank.credential_id := ''; blank.credential_version := 0; blank.vault_request_id := ''; blank.peer_address := '';
  blank.peer_spki_sha256 := ''; blank.tls_version := '';
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
      rec.v := 2;
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
