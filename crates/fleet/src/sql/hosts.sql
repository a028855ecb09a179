SELECT host.name, host.host_id, host.kernel, host.version,
    extract(epoch FROM host.last_seen)::float8 AS last_seen_unix_s,
    count(survey.device_key) AS storage,
    min(survey.read_ahead_kib) AS min_read_ahead_kib,
    max(survey.read_ahead_kib) AS max_read_ahead_kib,
    coalesce(json_agg(DISTINCT survey.origin) FILTER (WHERE survey.origin IS NOT NULL), '[]')
        AS origins,
    (SELECT jsonb_array_length(violations) FROM foreread.policy_check AS policy
     WHERE policy.host_id = host.host_id AND policy.valid_to IS NULL) AS violations
FROM foreread.host AS host
LEFT JOIN foreread.survey AS survey ON survey.host_id = host.host_id AND survey.valid_to IS NULL
WHERE host.name LIKE :name: AND (:origin: IS NULL OR EXISTS (
    SELECT FROM foreread.survey AS of_origin
    WHERE of_origin.host_id = host.host_id AND of_origin.valid_to IS NULL
        AND of_origin.origin = :origin:))
GROUP BY host.host_id
ORDER BY violations DESC NULLS LAST, host.name, host.host_id
LIMIT :limit: OFFSET :skip:
