CREATE SCHEMA IF NOT EXISTS foreread;
CREATE TABLE foreread.version (number int NOT NULL);
INSERT INTO foreread.version VALUES (1);
CREATE TABLE foreread.host (
    host_id uuid PRIMARY KEY, -- derived from the machine-id, which stays on the host
    name text NOT NULL,
    version text NOT NULL,
    kernel text NOT NULL,
    first_seen timestamptz NOT NULL,
    last_seen timestamptz NOT NULL
);
-- One row for each time in which a storage had one value. It is the present one if valid_to is null.
CREATE TABLE foreread.survey (
    host_id uuid NOT NULL REFERENCES foreread.host,
    device_key text NOT NULL,
    valid_from timestamptz NOT NULL,
    valid_to timestamptz,
    name text NOT NULL,
    read_ahead_kib bigint NOT NULL,
    origin text NOT NULL,
    findings jsonb NOT NULL,
    PRIMARY KEY (host_id, device_key, valid_from)
);
CREATE UNIQUE INDEX survey_present ON foreread.survey (host_id, device_key) WHERE valid_to IS NULL;
CREATE INDEX survey_by_time ON foreread.survey (valid_from);
CREATE TABLE foreread.policy_check (
    host_id uuid NOT NULL REFERENCES foreread.host,
    policy_digest text NOT NULL,
    valid_from timestamptz NOT NULL,
    valid_to timestamptz,
    checks int NOT NULL,
    violations jsonb NOT NULL,
    PRIMARY KEY (host_id, policy_digest, valid_from)
);
CREATE UNIQUE INDEX policy_present ON foreread.policy_check (host_id) WHERE valid_to IS NULL;
CREATE TABLE foreread.run (
    run_uuid uuid PRIMARY KEY,
    host_id uuid NOT NULL REFERENCES foreread.host,
    number bigint NOT NULL,
    created timestamptz NOT NULL,
    command text NOT NULL,
    target text NOT NULL,
    status text NOT NULL,
    error text,
    version text NOT NULL,
    plan jsonb NOT NULL,
    machine jsonb NOT NULL
);
CREATE TABLE foreread.trial (
    run_uuid uuid NOT NULL REFERENCES foreread.run,
    number int NOT NULL,
    record jsonb NOT NULL,
    PRIMARY KEY (run_uuid, number)
);
