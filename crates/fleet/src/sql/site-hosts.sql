, chosen AS (
    SELECT host.host_id, host.name, extract(epoch FROM host.last_seen)::float8 AS last_seen_unix_s,
        jsonb_array_length(policy.violations) AS violations, count(*) OVER () AS total
    FROM foreread.host AS host
    LEFT JOIN foreread.policy_check AS policy
        ON policy.host_id = host.host_id AND policy.valid_to IS NULL
    WHERE host.name LIKE :name: AND (:any_storage: OR EXISTS (
        SELECT FROM foreread.survey AS of_host
        WHERE of_host.host_id = host.host_id AND of_host.valid_to IS NULL
            AND of_host.name LIKE :storage: AND (:origin: IS NULL OR of_host.origin = :origin:)))
    ORDER BY violations DESC NULLS LAST, host.name, host.host_id
    LIMIT :limit: OFFSET :skip:
)
SELECT chosen.*, coalesce((
    SELECT json_agg(json_build_object(
        'name', present.name, 'read_ahead_kib', present.read_ahead_kib, 'origin', present.origin,
        'findings', present.findings, 'before_kib', before.read_ahead_kib,
        'before_origin', before.origin,
        'since_unix_s', extract(epoch FROM present.valid_from)::float8,
        'usual_kib', usual.read_ahead_kib) ORDER BY present.name)
    FROM foreread.survey AS present
    LEFT JOIN usual ON usual.name = present.name
    LEFT JOIN foreread.survey AS before ON before.host_id = present.host_id
        AND before.device_key = present.device_key AND before.valid_to = present.valid_from
        AND before.valid_to > now() - make_interval(days => :days:)
        AND (before.read_ahead_kib, before.origin)
            IS DISTINCT FROM (present.read_ahead_kib, present.origin)
    WHERE present.host_id = chosen.host_id AND present.valid_to IS NULL
        AND present.name LIKE :storage:
        AND (:origin: IS NULL OR present.origin = :origin:)), '[]') AS storage
FROM chosen
ORDER BY violations DESC NULLS LAST, name, host_id
