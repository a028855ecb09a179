CREATE TEMP TABLE merged (
    surveys int DEFAULT 0, outdated int DEFAULT 0, storage_rows int DEFAULT 0,
    policy_rows int DEFAULT 0, runs int DEFAULT 0, trials int DEFAULT 0
) ON COMMIT DROP;
INSERT INTO merged DEFAULT VALUES;
DO $merge$
DECLARE
    one record;
    id uuid;
    taken timestamptz;
    previous timestamptz;
    changed int;
BEGIN
    FOR one IN
        SELECT doc FROM incoming WHERE kind = 'survey'
        ORDER BY (doc ->> 'taken_unix_s')::float8, doc #>> '{host,id}'
    LOOP
        id := (one.doc #>> '{host,id}')::uuid;
        taken := to_timestamp((one.doc ->> 'taken_unix_s')::float8);
        previous := (SELECT last_seen FROM foreread.host WHERE host_id = id);
        IF previous >= taken THEN
            UPDATE merged SET outdated = outdated + 1;
            CONTINUE;
        END IF;
        INSERT INTO foreread.host
            VALUES (id, one.doc #>> '{host,name}', one.doc ->> 'version', one.doc ->> 'kernel',
                    taken, taken)
            ON CONFLICT (host_id) DO UPDATE SET name = excluded.name, version = excluded.version,
                kernel = excluded.kernel, last_seen = excluded.last_seen;
        UPDATE foreread.survey AS present SET valid_to = taken
            WHERE host_id = id AND valid_to IS NULL AND NOT EXISTS (
                SELECT FROM jsonb_to_recordset(one.doc -> 'storage') AS new
                    (key text, name text, read_ahead_kib bigint, origin text, findings jsonb)
                WHERE (new.key, new.name, new.read_ahead_kib, new.origin, new.findings)
                    = (present.device_key, present.name, present.read_ahead_kib, present.origin,
                       present.findings));
        INSERT INTO foreread.survey
            SELECT id, new.key, taken, NULL, new.name, new.read_ahead_kib, new.origin, new.findings
            FROM jsonb_to_recordset(one.doc -> 'storage') AS new
                (key text, name text, read_ahead_kib bigint, origin text, findings jsonb)
            WHERE NOT EXISTS (
                SELECT FROM foreread.survey AS present
                WHERE present.host_id = id AND present.device_key = new.key
                    AND present.valid_to IS NULL);
        GET DIAGNOSTICS changed = ROW_COUNT;
        UPDATE merged SET surveys = surveys + 1, storage_rows = storage_rows + changed;
        CONTINUE WHEN jsonb_typeof(one.doc -> 'policy') IS DISTINCT FROM 'object';
        UPDATE foreread.policy_check SET valid_to = taken
            WHERE host_id = id AND valid_to IS NULL
                AND (policy_digest, checks, violations) IS DISTINCT FROM
                    (one.doc #>> '{policy,digest}', (one.doc #>> '{policy,checks}')::int,
                     one.doc #> '{policy,violations}');
        INSERT INTO foreread.policy_check
            SELECT id, one.doc #>> '{policy,digest}', taken, NULL,
                (one.doc #>> '{policy,checks}')::int, one.doc #> '{policy,violations}'
            WHERE NOT EXISTS (
                SELECT FROM foreread.policy_check WHERE host_id = id AND valid_to IS NULL);
        GET DIAGNOSTICS changed = ROW_COUNT;
        UPDATE merged SET policy_rows = policy_rows + changed;
    END LOOP;
    INSERT INTO foreread.run
        SELECT (doc ->> 'run_uuid')::uuid, (doc ->> 'host_id')::uuid, (doc ->> 'number')::bigint,
            to_timestamp((doc ->> 'created_unix_s')::float8), doc ->> 'command', doc ->> 'target',
            doc ->> 'status', doc ->> 'error', doc ->> 'version', doc -> 'plan', doc -> 'machine'
        FROM incoming WHERE kind = 'run'
        ON CONFLICT (run_uuid) DO UPDATE SET status = excluded.status, error = excluded.error
            WHERE (run.status, run.error) IS DISTINCT FROM (excluded.status, excluded.error);
    GET DIAGNOSTICS changed = ROW_COUNT;
    UPDATE merged SET runs = changed;
    INSERT INTO foreread.trial
        SELECT (doc ->> 'run_uuid')::uuid, (doc ->> 'number')::int, doc - 'run_uuid' - 'number'
        FROM incoming WHERE kind = 'trial'
        ON CONFLICT (run_uuid, number) DO NOTHING;
    GET DIAGNOSTICS changed = ROW_COUNT;
    UPDATE merged SET trials = changed;
END
$merge$;
SELECT row_to_json(merged) FROM merged;
COMMIT;
