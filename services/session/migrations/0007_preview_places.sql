-- Which replica a session's holder streams its previews to. A hint: it may be late, or wrong after a crash.
CREATE TABLE session.preview_places (
  workspace_id text NOT NULL,
  session_id text NOT NULL,
  epoch bigint NOT NULL,
  address text NOT NULL,
  PRIMARY KEY (workspace_id, session_id),
  FOREIGN KEY (workspace_id, session_id) REFERENCES session.sessions ON DELETE CASCADE
) WITH (fillfactor = 70);
GRANT SELECT, INSERT, UPDATE, DELETE ON session.preview_places TO ganglion_session;
