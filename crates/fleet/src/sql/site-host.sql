SELECT host.name, host.host_id, host.kernel, host.version,
    extract(epoch FROM host.first_seen)::float8 AS first_seen_unix_s,
    extract(epoch FROM host.last_seen)::float8 AS last_seen_unix_s,
    (SELECT json_build_object('checks', checks, 'violations', violations,
        'since_unix_s', extract(epoch FROM valid_from)::float8)
     FROM foreread.policy_check AS policy
     WHERE policy.host_id = host.host_id AND policy.valid_to IS NULL) AS policy,
    coalesce((SELECT json_agg(period) FROM (
        SELECT name, device_key, read_ahead_kib, origin, findings,
            extract(epoch FROM valid_from)::float8 AS since_unix_s,
            extract(epoch FROM valid_to)::float8 AS until_unix_s
        FROM foreread.survey AS survey WHERE survey.host_id = host.host_id
        ORDER BY valid_to DESC NULLS FIRST, name LIMIT :limit:) AS period), '[]') AS periods
FROM foreread.host AS host WHERE host.host_id = :host:::uuid
