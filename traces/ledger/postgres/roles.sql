-- The roles of a ledger. An administrator runs these statements with psql, as often as needed, and then gives each role that
-- logs in a password or a certificate.
DO $$ DECLARE name text; BEGIN
    FOREACH name IN ARRAY ARRAY['pgfsm_serve', 'pgfsm_prune', 'pgfsm_migrate'] LOOP
        CONTINUE WHEN EXISTS (SELECT FROM pg_roles WHERE rolname = name);
        BEGIN
            EXECUTE format('CREATE ROLE %I LOGIN', name);
        EXCEPTION WHEN duplicate_object OR unique_violation THEN NULL; -- made for another ledger of this cluster at the same time
        END;
    END LOOP;
END $$;
SET search_path = SCHEMA_OF_LEDGER;

-- In this database, the roles find the tables without a schema in front of their names.
ALTER ROLE pgfsm_serve IN DATABASE DATABASE_OF_LEDGER SET search_path = SCHEMA_OF_LEDGER;
ALTER ROLE pgfsm_prune IN DATABASE DATABASE_OF_LEDGER SET search_path = SCHEMA_OF_LEDGER;
ALTER ROLE pgfsm_migrate IN DATABASE DATABASE_OF_LEDGER SET search_path = SCHEMA_OF_LEDGER;

-- pgfsm ledger init
GRANT ALL ON SCHEMA SCHEMA_OF_LEDGER TO pgfsm_migrate;
ALTER TABLE log OWNER TO pgfsm_migrate;
ALTER TABLE replicas OWNER TO pgfsm_migrate;
ALTER TABLE entries OWNER TO pgfsm_migrate;
ALTER TABLE runs OWNER TO pgfsm_migrate;
ALTER TABLE blobs OWNER TO pgfsm_migrate;
ALTER VIEW requests OWNER TO pgfsm_migrate;
ALTER VIEW events OWNER TO pgfsm_migrate;
ALTER VIEW decisions OWNER TO pgfsm_migrate;
ALTER TABLE tokens OWNER TO pgfsm_migrate;
ALTER TABLE blocks OWNER TO pgfsm_migrate;
ALTER TABLE connections OWNER TO pgfsm_migrate;
ALTER TABLE deliveries OWNER TO pgfsm_migrate;
ALTER TABLE delivered OWNER TO pgfsm_migrate;
ALTER TABLE sessions OWNER TO pgfsm_migrate;
ALTER TABLE told OWNER TO pgfsm_migrate;
ALTER TABLE pgfsm_version OWNER TO pgfsm_migrate;
ALTER TABLE pgfsm_migration OWNER TO pgfsm_migrate;

-- pgfsm serve, and all other commands: entries and blobs are only added.
GRANT USAGE ON SCHEMA SCHEMA_OF_LEDGER TO pgfsm_serve;
GRANT SELECT ON log, replicas, entries, runs, blobs, tokens, blocks, connections, deliveries, delivered, sessions, told, requests, events, decisions,
  pgfsm_version TO pgfsm_serve;
GRANT INSERT ON replicas, entries, runs, blobs, tokens, blocks, connections, deliveries, delivered, sessions, told TO pgfsm_serve;
GRANT UPDATE ON log, replicas, runs, tokens, blocks, connections, deliveries, delivered, sessions, told TO pgfsm_serve;
GRANT DELETE ON replicas, blocks, connections, sessions, told TO pgfsm_serve;

-- pgfsm ledger prune and rebuild: also empties entries, whose hashes stay.
GRANT pgfsm_serve TO pgfsm_prune;
GRANT UPDATE (run, body, header) ON entries TO pgfsm_prune;
GRANT DELETE ON runs, blobs, deliveries, tokens TO pgfsm_prune;
