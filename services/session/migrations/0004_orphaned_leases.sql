-- The holder was restarted before anybody took the session over: whoever takes it next takes it over.
ALTER TABLE session.sessions ADD COLUMN is_orphaned boolean NOT NULL DEFAULT false;
GRANT UPDATE (is_orphaned) ON session.sessions TO ganglion_session;
