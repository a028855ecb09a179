SELECT host.name AS host, host.host_id, after.name AS storage, after.device_key,
    before.read_ahead_kib AS before_kib, before.origin AS before_origin,
    after.read_ahead_kib, after.origin,
    extract(epoch FROM after.valid_from)::float8 AS since_unix_s
FROM foreread.survey AS after
JOIN foreread.survey AS before ON before.host_id = after.host_id
    AND before.device_key = after.device_key AND before.valid_to = after.valid_from
JOIN foreread.host AS host ON host.host_id = after.host_id
WHERE (before.read_ahead_kib, before.origin) IS DISTINCT FROM (after.read_ahead_kib, after.origin)
    AND after.valid_from > now() - make_interval(days => :days:)
    AND host.name LIKE :name: AND (:origin: IS NULL OR after.origin = :origin:)
ORDER BY after.valid_from DESC, host.name, after.name
LIMIT :limit: OFFSET :skip:
